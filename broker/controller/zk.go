package controller

import (
	"bytes"
	"errors"
	"slices"

	"kctl/broker/invariant"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// The bounds of one multi: V3 point A.10 asks for batches, jute.maxbuffer (1 MiB) bounds them.
const (
	multiOpsMax   = 100
	multiBytesMax = 400 << 10
)

// zk emits one round of requests; then runs with the responses. Whoever calls it must be the running job.
func (c *Controller) zk(reqs []zkop.Request, then func([]zkop.Response)) {
	invariant.Assert(c.zkThen == nil && c.zkRetry == nil, "two ZooKeeper rounds at a time")
	if len(reqs) == 0 {
		then(nil)
		return
	}
	c.next.zk++
	c.zkID, c.zkThen = c.next.zk, then
	c.emit(ZK{ID: c.zkID, Session: c.session, Requests: reqs})
}

// zkAside emits requests whose answer nobody waits for.
func (c *Controller) zkAside(reqs ...zkop.Request) {
	c.next.zk++
	c.emit(ZK{ID: c.next.zk, Session: c.session, Requests: reqs})
}

func (c *Controller) zkDone(ev ZKDone) {
	if c.zkThen == nil || ev.ID != c.zkID {
		return // of an earlier term of office
	}
	then := c.zkThen
	c.zkThen = nil
	for i := range ev.Responses {
		if err := ev.Responses[i].Err; errors.Is(err, zkop.ErrSessionExpired) || errors.Is(err, zkop.ErrClosed) {
			c.sessionEnded(SessionEnded{At: ev.At, Reason: err.Error()})
			return
		}
	}
	then(ev.Responses)
}

// afterBackoff runs retry after a short wait, so that a dead connection is not hammered.
func (c *Controller) afterBackoff(retry func()) {
	c.zkRetry = retry
	c.emit(ArmTimer{Timer: Timer{Kind: TimerZKRetry}, At: c.now.Add(zkRetryDelay)})
}

// read runs idempotent requests until each has a known outcome.
func (c *Controller) read(reqs []zkop.Request, then func([]zkop.Response)) {
	c.zk(reqs, func(got []zkop.Response) {
		invariant.Assert(len(got) == len(reqs), "%d responses to %d requests", len(got), len(reqs))
		var again []int
		for i := range got {
			if errors.Is(got[i].Err, zkop.ErrOutcomeUnknown) {
				again = append(again, i)
			}
		}
		if len(again) == 0 {
			then(got)
			return
		}
		rest := make([]zkop.Request, len(again))
		for k, i := range again {
			rest[k] = reqs[i]
		}
		c.afterBackoff(func() {
			c.read(rest, func(more []zkop.Response) {
				for k, i := range again {
					got[i] = more[k]
				}
				then(got)
			})
		})
	})
}

// writeOp is a group of operations that must be applied together; the last one is read back to learn
// whether a group with a lost reply was applied. alone keeps it out of batches: it may well fail.
type writeOp struct {
	reqs  []zkop.Request
	alone bool
}

func (w writeOp) last() zkop.Request { return w.reqs[len(w.reqs)-1] }

func (w writeOp) size() int {
	n := 0
	for i := range w.reqs {
		n += len(w.reqs[i].Path) + len(w.reqs[i].Data) + 32
	}
	return n
}

// writeResult is the fate of a writeOp: nil, or the error of its first failing operation. version is the
// data version that the last operation left, mzxid its transaction.
type writeResult struct {
	err     error
	version int32
	mzxid   int64
}

// fencedWrite is one run of write: its groups, their fates, and which still have to be tried.
type fencedWrite struct {
	c       *Controller
	ops     []writeOp
	results []writeResult
	unsure  []bool // a reply of this group was lost at least once
	then    func([]writeResult)
}

// write applies groups of operations, each multi fenced by the version of /controller_epoch and batched up
// to its bounds. The groups are independent: when a batch fails, its groups are tried one by one. Lost
// replies are read back. A failing fence ends the role and then is not called.
func (c *Controller) write(ops []writeOp, then func([]writeResult)) {
	if len(ops) == 0 {
		then(nil)
		return
	}
	w := &fencedWrite{c: c, ops: ops, results: make([]writeResult, len(ops)), unsure: make([]bool, len(ops)), then: then}
	w.send(w.batches())
}

// batches cuts the groups, in order, into multis.
func (w *fencedWrite) batches() [][]int {
	var out [][]int
	var cur []int
	count, size := 0, 0
	for i, op := range w.ops {
		n, s := len(op.reqs), op.size()
		if len(cur) > 0 && (op.alone || w.ops[cur[0]].alone || count+n > multiOpsMax || size+s > multiBytesMax) {
			out, cur, count, size = append(out, cur), nil, 0, 0
		}
		cur, count, size = append(cur, i), count+n, size+s
	}
	return append(out, cur)
}

func (w *fencedWrite) send(batches [][]int) {
	if len(batches) == 0 {
		w.then(w.results)
		return
	}
	reqs := make([]zkop.Request, len(batches))
	for b, batch := range batches {
		var ops []zkop.Request
		for _, i := range batch {
			ops = append(ops, w.ops[i].reqs...)
		}
		reqs[b] = znode.Fenced(w.c.epochVersion, ops...)
	}
	w.c.zk(reqs, func(got []zkop.Response) { w.sent(batches, got) })
}

// sent sorts the answered batches: applied, to be split, to be read back.
func (w *fencedWrite) sent(batches [][]int, got []zkop.Response) {
	var single, unknown []int
	for b, batch := range batches {
		r := &got[b]
		switch {
		case r.Err == nil:
			w.applied(batch, r)
		case errors.Is(r.Err, zkop.ErrOutcomeUnknown):
			unknown = append(unknown, batch...)
		case fenceFailed(r):
			w.c.resign("fenced: /controller_epoch has moved on")
			return
		case len(batch) > 1:
			single = append(single, batch...)
		default:
			i := batch[0]
			w.results[i].err = multiError(r)
			if w.unsure[i] {
				unknown = append(unknown, i)
			}
		}
	}
	w.readBack(unknown, func(again []int) {
		single = append(single, again...)
		slices.Sort(single) // in the order they were given: parents before children
		next := make([][]int, len(single))
		for k, i := range single {
			next[k] = []int{i}
		}
		w.send(next)
	})
}

func (w *fencedWrite) applied(batch []int, r *zkop.Response) {
	at := 1 // Results[0] is the fence
	for _, i := range batch {
		op := w.ops[i]
		at += len(op.reqs)
		w.results[i] = writeResult{}
		if op.last().Kind == zkop.Set && at-1 < len(r.Results) {
			last := r.Results[at-1].Stat
			w.results[i].version, w.results[i].mzxid = last.Version, last.Mzxid
		}
	}
}

// readBack learns what became of groups whose reply was lost; those that were not applied are handed to
// then to be tried (once more) on their own.
func (w *fencedWrite) readBack(unknown []int, then func(again []int)) {
	if len(unknown) == 0 {
		then(nil)
		return
	}
	reqs := make([]zkop.Request, len(unknown))
	for k, i := range unknown {
		reqs[k] = zkop.Request{Kind: zkop.Get, Path: w.ops[i].last().Path}
	}
	w.c.afterBackoff(func() {
		w.c.read(reqs, func(got []zkop.Response) {
			var again []int
			for k, i := range unknown {
				if w.judge(i, &got[k]) {
					again = append(again, i)
				}
			}
			then(again)
		})
	})
}

// judge decides from the node's present value whether group i was applied; true: it was not, try it again.
func (w *fencedWrite) judge(i int, now *zkop.Response) (retry bool) {
	op, first := w.ops[i].last(), !w.unsure[i]
	w.unsure[i] = true
	missing := errors.Is(now.Err, zkop.ErrNoNode)
	refused := w.results[i].err // of an earlier try after a lost reply
	switch {
	case op.Kind == zkop.Delete && missing,
		op.Kind == zkop.Create && !missing && bytes.Equal(now.Data, op.Data),
		op.Kind == zkop.Set && !missing && bytes.Equal(now.Data, op.Data) && (op.Version < 0 || now.Stat.Version == op.Version+1):
		w.results[i] = writeResult{version: now.Stat.Version, mzxid: now.Stat.Mzxid}
		return false
	case refused != nil:
		return false
	case op.Kind == zkop.Set && missing:
		w.results[i].err = zkop.ErrNoNode
	case op.Kind == zkop.Set && op.Version >= 0 && now.Stat.Version != op.Version:
		w.results[i].err = zkop.ErrBadVersion
	case op.Kind == zkop.Create && !missing:
		w.results[i].err = zkop.ErrNodeExists
	default:
		return first || now.Err == nil || missing
	}
	return false
}

// fenceFailed: the check of /controller_epoch is what failed the multi.
func fenceFailed(r *zkop.Response) bool {
	if len(r.Results) == 0 {
		return false
	}
	err := r.Results[0].Err
	return errors.Is(err, zkop.ErrBadVersion) || errors.Is(err, zkop.ErrNoNode)
}

// multiError is the error of the operation that failed a multi.
func multiError(r *zkop.Response) error {
	for i := range r.Results {
		if err := r.Results[i].Err; err != nil && !errors.Is(err, zkop.ErrRolledBack) {
			return err
		}
	}
	return r.Err
}

// usable reports whether a read succeeded; a missing node is not usable. Anything but a missing node is an
// error that should not happen (no authorisation, bad path): it is noted.
func (c *Controller) usable(path string, r *zkop.Response) bool {
	if r.Err == nil {
		return true
	}
	if !errors.Is(r.Err, zkop.ErrNoNode) {
		c.emit(Note{Kind: NoteBadZnode, Reason: path + ": " + r.Err.Error()})
	}
	return false
}

func setOp(path string, data []byte, version int32) writeOp {
	return writeOp{reqs: []zkop.Request{{Kind: zkop.Set, Path: path, Data: data, Version: version}}}
}

func createOp(path string, data []byte) writeOp {
	return writeOp{reqs: []zkop.Request{{Kind: zkop.Create, Path: path, Data: data}}}
}

func deleteOp(path string) writeOp {
	return writeOp{reqs: []zkop.Request{{Kind: zkop.Delete, Path: path, Version: zkop.AnyVersion}}}
}
