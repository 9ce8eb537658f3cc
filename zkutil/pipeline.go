package zkutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"kctl/zkutil/zkop"
)

// How requests keep their order on the wire although each go-zk call blocks until its answer: every call
// runs in its own goroutine, but the next one is started only when wireConn has seen the packet of the one
// before. Only the holder of the turn starts calls, so a packet seen belongs to the last one started. Reads
// of different nodes that stand side by side do not depend on each other and start together.
const (
	windowRequests = 512 // unanswered requests of one client; the next waits
	readRun        = 64  // reads that are started together
)

type answer struct {
	index int
	resp  zkop.Response
}

// batch is one call of Do.
type batch struct {
	reqs    []zkop.Request
	chroot  string
	resps   []zkop.Response
	open    []bool // sent and not answered
	pending int
	ended   atomic.Int64 // calls that have returned
	answers chan answer  // capacity len(reqs): a late answer never blocks its goroutine
}

// Do see Client.
func (c *conn) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	return c.do(ctx, session, c.servers.Chroot, reqs)
}

func (c *conn) do(ctx context.Context, session uint64, chroot string, reqs []zkop.Request) []zkop.Response {
	b := &batch{
		chroot: chroot, reqs: make([]zkop.Request, len(reqs)), resps: make([]zkop.Response, len(reqs)),
		open: make([]bool, len(reqs)), answers: make(chan answer, len(reqs)),
	}
	for i, r := range reqs {
		b.reqs[i] = rooted(chroot, r)
		if b.resps[i].Err = check(r); b.resps[i].Err == nil {
			b.resps[i].Err = checkSize(b.reqs[i], c.cfg.MaxRequestBytes)
		}
	}
	if len(reqs) == 0 {
		return b.resps
	}
	generation, err := c.takeTurn(ctx, session)
	if err == nil {
		err = c.issue(ctx, b, generation)
	}
	if err != nil {
		b.fillUnsent(err)
	}
	c.collect(ctx, b)
	return b.resps
}

// fillUnsent gives err to every request that was neither sent nor refused.
func (b *batch) fillUnsent(err error) {
	for i := range b.resps {
		if !b.open[i] && b.resps[i].Err == nil {
			b.resps[i].Err = err
		}
	}
}

// takeTurn waits until the session is connected and no other Do is sending.
func (c *conn) takeTurn(ctx context.Context, session uint64) (generation uint64, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		s, _, changed := c.sessions.snapshot()
		switch {
		case s.State == Closed:
			return 0, zkop.ErrClosed
		case session != AnySession && (s.Epoch != session || s.State == Expired):
			return 0, zkop.ErrSessionExpired
		case s.State != Connected:
			if err := wait(ctx, changed); err != nil {
				return 0, err
			}
			continue
		}
		select {
		case <-c.turn:
		case <-changed:
			continue
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
		}
		// The session may have changed meanwhile; what counts is what holds now, with the turn in hand.
		if now, generation, _ := c.sessions.snapshot(); now.State == Connected && now.Epoch == s.Epoch {
			return generation, nil
		}
		c.turn <- struct{}{}
	}
}

func wait(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	}
}

// issue starts the requests in order on one connection and gives the turn back when the last has been sent.
// The error belongs to those that were not started.
func (c *conn) issue(ctx context.Context, b *batch, generation uint64) error {
	c.gate.generation.Store(generation)
	for i := 0; i < len(b.reqs); {
		n := b.run(i)
		if n == 0 { // refused by check
			i++
			continue
		}
		if _, now, _ := c.sessions.snapshot(); now != generation {
			c.turn <- struct{}{}
			return ErrNotSent
		}
		want := c.gate.issued.Load() + uint64(n)
		if err := c.start(ctx, b, i, n); err != nil {
			c.turn <- struct{}{}
			return err
		}
		if err := c.awaitIssued(ctx, b, want); err != nil {
			return err
		}
		i += n
	}
	c.turn <- struct{}{}
	return nil
}

// run is the number of requests from i that may be started together: reads of different nodes, since those that are started
// together reach the server in any order.
func (b *batch) run(i int) int {
	n := 0
	for i+n < len(b.reqs) && n < readRun && b.resps[i+n].Err == nil {
		if slices.ContainsFunc(b.reqs[i:i+n], func(r zkop.Request) bool { return r.Path == b.reqs[i+n].Path }) {
			return n
		}
		switch b.reqs[i+n].Kind {
		case zkop.Get, zkop.Exists, zkop.Children:
			n++
		default:
			return max(n, 1)
		}
	}
	return n
}

// start runs n calls, each in its goroutine, once the window has room for all of them.
func (c *conn) start(ctx context.Context, b *batch, i, n int) error {
	for k := range n {
		select {
		case c.window <- struct{}{}:
		case <-ctx.Done():
			for range k {
				<-c.window
			}
			return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
		}
	}
	for k := i; k < i+n; k++ {
		b.open[k] = true
		b.pending++
		c.calls.Go(func() {
			resp := run(c.zk, b.reqs[k])
			<-c.window
			b.answers <- answer{k, resp}
			b.ended.Add(1)
			c.gate.settled()
		})
	}
	return nil
}

// settled wakes the holder of the turn when a call has ended, perhaps without having been sent.
func (g *gate) settled() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// awaitIssued waits until the packets have been seen, or their calls have ended without one. If ctx ends
// first, the turn stays taken until that is decided, by a goroutine that Close waits for.
func (c *conn) awaitIssued(ctx context.Context, b *batch, want uint64) error {
	started := int64(b.pending) // nothing is collected yet
	decided := func() bool { return c.gate.issued.Load() >= want || b.ended.Load() >= started }
	for !decided() {
		select {
		case <-c.gate.wake:
		case <-ctx.Done():
			c.calls.Go(func() {
				for !decided() {
					<-c.gate.wake
				}
				c.turn <- struct{}{}
			})
			return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
		}
	}
	return nil
}

// collect waits for the answers of what was sent.
func (c *conn) collect(ctx context.Context, b *batch) {
	for b.pending > 0 {
		select {
		case a := <-b.answers:
			c.take(b, a)
		case <-ctx.Done():
			for i, open := range b.open {
				if open {
					b.resps[i] = zkop.Response{Err: fmt.Errorf("%w: %w", zkop.ErrOutcomeUnknown, ctx.Err())}
				}
			}
			return
		}
	}
}

func (c *conn) take(b *batch, a answer) {
	b.pending--
	b.open[a.index] = false
	r := a.resp
	if errors.Is(r.Err, zkop.ErrOutcomeUnknown) && c.sessions.get().State == Closed {
		r.Err = fmt.Errorf("%w: %w", zkop.ErrClosed, r.Err)
	}
	if b.chroot != "" {
		r.Path, _ = withoutRoot(b.chroot, r.Path)
		for i := range r.Results {
			r.Results[i].Path, _ = withoutRoot(b.chroot, r.Results[i].Path)
		}
	}
	b.resps[a.index] = r
}
