package controllershell

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/broker/peer"
	"kctl/zkutil/cluster"
)

// sender delivers control requests to one broker, one at a time, over a connection that it keeps (V3 point
// 2.9). Failures go back to the core, which decides when to try again.
type sender struct {
	broker cluster.BrokerID
	work   chan controller.Send // the core has at most one under way
	addr   atomic.Pointer[string]
	stop   context.CancelFunc
}

// connect starts the sender of a broker, or tells the present one its new address.
func (l *loop) connect(b cluster.Broker) {
	addr := l.s.address(b)
	if snd := l.senders[b.ID]; snd != nil {
		snd.addr.Store(&addr)
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	snd := &sender{broker: b.ID, work: make(chan controller.Send, 1), stop: stop}
	snd.addr.Store(&addr)
	l.senders[b.ID] = snd
	l.work.Go(func() { l.runSender(ctx, snd) })
}

func (l *loop) disconnect(id cluster.BrokerID) {
	if snd := l.senders[id]; snd != nil {
		snd.stop()
		delete(l.senders, id)
	}
}

// address is where the broker takes control requests; empty when it has no such listener.
func (s *Shell) address(b cluster.Broker) string {
	for _, listener := range []string{s.opts.Listener, s.opts.InterBrokerListener} {
		if e, ok := b.Endpoint(listener); ok {
			return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
		}
	}
	return ""
}

func (l *loop) runSender(ctx context.Context, snd *sender) {
	var link connection
	defer link.close()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-snd.work:
			begin := time.Now()
			resp, err := link.exchange(ctx, l.s, *snd.addr.Load(), e.Request)
			l.s.metrics.requestTime.Observe(time.Since(begin).Seconds())
			if err != nil {
				l.s.metrics.requestFailures.Inc()
			}
			l.post(controller.Answered{At: l.s.opts.Now(), Broker: snd.broker, Token: e.Token, Response: resp, Err: err})
		}
	}
}

// connection is a sender's connection, made when it is needed.
type connection struct {
	conn *peer.Conn
	addr string
}

func (c *connection) close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing was promised on it
		c.conn = nil
	}
}

// exchange sends a request and waits for its answer. A kept connection may have been closed by the other
// side for idleness, so a failure on one is tried once more on a fresh one: control requests may arrive
// twice without harm, their epochs see to that.
func (c *connection) exchange(ctx context.Context, s *Shell, addr string, req kmsg.Request) (kmsg.Response, error) {
	if addr == "" {
		return nil, fmt.Errorf("broker has no listener %s", s.opts.Listener)
	}
	if c.addr != addr {
		c.close()
		c.addr = addr
	}
	kept := c.conn != nil
	begin := time.Now()
	resp, err := c.once(ctx, s, req)
	if err != nil && kept && ctx.Err() == nil && time.Since(begin) < s.opts.Config.RequestTimeout {
		resp, err = c.once(ctx, s, req)
	}
	return resp, err
}

func (c *connection) once(ctx context.Context, s *Shell, req kmsg.Request) (kmsg.Response, error) {
	if c.conn == nil {
		dialCtx, cancel := context.WithTimeout(ctx, s.opts.Config.RequestTimeout)
		defer cancel()
		conn, err := peer.Dial(dialCtx, s.opts.Dial, c.addr, fmt.Sprintf("controller-%d", s.opts.BrokerID), s.opts.Config.RequestTimeout)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	resp, err := c.conn.Do(ctx, req)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("controller request to %s: %w", c.addr, err)
	}
	return resp, nil
}
