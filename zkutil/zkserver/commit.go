package zkserver

import (
	"fmt"
	"time"

	"kctl/zkutil/zkserver/jute"
	"kctl/zkutil/zkserver/ztree"
)

// commitLoop is the committer: the only goroutine that changes nodes and sessions. It ends when the queue is
// closed or the log fails.
func (s *Server) commitLoop() error {
	var batch []*request
	for {
		if batch = s.queue.take(batch); batch == nil {
			return nil
		}
		last := s.prepareBatch(batch)
		if last != 0 && s.wal != nil {
			if err := s.wal.commit(last); err != nil {
				return err
			}
		}
		s.finishBatch(batch)
		for i, r := range batch {
			if r.c != nil && (i+1 == len(batch) || batch[i+1].c != r.c) {
				r.c.kick()
			}
		}
		s.kickNotified()
		if err := s.maybeSnapshot(); err != nil {
			return err
		}
	}
}

// prepareBatch validates the batch and puts its transactions into the log's frame. It returns the last zxid;
// 0: nothing to log.
func (s *Server) prepareBatch(batch []*request) int64 {
	now := time.Now()
	last := int64(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wal != nil {
		s.wal.begin()
	}
	for _, r := range batch {
		s.prepare(r, now)
		if r.txn == nil {
			continue
		}
		last = r.txn.Zxid
		s.txnsSince++
		if s.wal != nil {
			s.wal.add(r.txn)
		}
	}
	return last
}

func (s *Server) prepare(r *request, now time.Time) {
	switch r.op {
	case opOpenSession:
		r.txn = s.tree.PrepareOpenSession(now, r.timeout)
		r.session = r.txn.Session
	case opReattach:
		s.reattach(r)
	case opExpire:
		r.txn = s.tree.PrepareCloseSession(now, r.session)
	case opDeleteExpired:
		r.txn = s.tree.PrepareDeleteLeftover(now, r.z.Path)
	default:
		// The connection may have lost its session to another one, or to expiry, while the request was queued.
		// Its owner has then been told that the outcome is unknown; running the request after that owner's reads
		// would turn a "no" into a "yes" behind its back.
		if s.owners[r.session] != r.c {
			r.skip = true
			return
		}
		if r.op == opCloseSession {
			r.txn = s.tree.PrepareCloseSession(now, r.session)
		} else if r.write {
			r.txn, r.resp = s.tree.Prepare(now, r.session, r.auth, &r.z)
		}
	}
}

// reattach gives a live session to a new connection. It takes effect here, in the order of the queue: requests
// of the old connection before it are done, later ones are dropped.
func (s *Server) reattach(r *request) {
	if _, live := s.tree.SessionTimeout(r.session); !live || r.code != codeOK {
		r.code = codeSessionExpired
		return
	}
	if old := s.owners[r.session]; old != nil {
		old.abort()
	}
	s.tree.DropWatches(r.session)
	s.tree.SetTimeout(s.clock(), r.session, r.timeout)
	s.owners[r.session] = r.c
}

// finishBatch makes the batch visible and answers it, in order. One exclusive section: a read sees all of a
// batch's writes or none, and no connection gets a reply that shows a change before the event of its watch.
func (s *Server) finishBatch(batch []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range batch {
		if r.txn != nil {
			resp, fired := s.tree.Apply(r.txn)
			r.resp = resp
			s.notify(fired)
			s.lastZxid.Store(r.txn.Zxid)
		}
		switch r.op {
		case opOpenSession, opReattach:
			s.finishHandshake(r)
			continue
		case opExpire:
			s.finishExpiry(r)
			continue
		case opDeleteExpired:
			continue
		}
		if !r.skip {
			s.answer(r)
		}
		if r.op == opCloseSession && !r.skip {
			delete(s.owners, r.session)
			r.c.finish()
		}
		r.c.pending.Add(-1)
	}
}

func (s *Server) finishHandshake(r *request) {
	c := r.c
	resp := struct {
		timeout  int32
		session  int64
		password []byte
	}{password: make([]byte, passwordSize)}
	ok := r.code == codeOK
	if ok {
		resp.timeout, resp.session, resp.password = int32(r.timeout.Milliseconds()), r.session, s.password(r.session)
		c.session.Store(r.session)
		if r.op == opOpenSession {
			s.tree.SetTimeout(s.clock(), r.session, r.timeout)
			s.owners[r.session] = c
		}
		if c.gone && s.owners[r.session] == c {
			delete(s.owners, r.session)
		}
	}
	c.append(func(b []byte) []byte {
		start := len(b)
		b = jute.AppendInt(b, 0)
		b = jute.AppendInt(b, 0) // protocol version
		b = jute.AppendInt(b, resp.timeout)
		b = jute.AppendLong(b, resp.session)
		b = jute.AppendBuffer(b, resp.password)
		if r.mode != 0 {
			b = jute.AppendBool(b, false) // not read-only
		}
		return endFrame(b, start)
	})
	if !ok {
		c.finish()
	}
	c.ready <- ok
}

func (s *Server) finishExpiry(r *request) {
	if r.txn == nil {
		return
	}
	s.stats.expired.Add(1)
	c := s.owners[r.session]
	delete(s.owners, r.session)
	remote := ""
	if c != nil {
		remote = c.remote
		c.abort()
	}
	s.log.Info("zkserver session expired", "session", fmt.Sprintf("0x%x", r.session), "remote", remote,
		"ephemerals", len(r.txn.Changes))
}

// notify appends the events of fired watches to their connections. The caller holds mu exclusively.
func (s *Server) notify(fired []ztree.FiredWatch) {
	for i := range fired {
		f := &fired[i]
		c := s.owners[f.Session]
		if c == nil || !f.Readable(*c.auth.Load()) {
			continue
		}
		c.append(func(b []byte) []byte { return appendEvent(b, f.Event, f.Zxid) })
		s.stats.sent.Add(1)
		if n := len(s.notified); n == 0 || s.notified[n-1] != c {
			s.notified = append(s.notified, c)
		}
	}
}

// kickNotified makes the events of the last batch leave. It is the committer's, as notified is.
func (s *Server) kickNotified() {
	for i, c := range s.notified {
		c.kick()
		s.notified[i] = nil
	}
	s.notified = s.notified[:0]
}

// readNow answers a read in the goroutine of its connection.
func (s *Server) readNow(r *request) error {
	if !r.exclusive() {
		s.mu.RLock()
		s.answer(r)
		s.mu.RUnlock()
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if watches, _, _ := s.tree.WatchCounts(); watches >= s.cfg.MaxWatches {
		return fmt.Errorf("more than %d watches on this server", s.cfg.MaxWatches)
	}
	s.answer(r)
	return nil
}

// answer runs a read, or takes the result of a write that was applied, and appends the reply. The caller holds
// mu; exclusively if the request is.
func (s *Server) answer(r *request) {
	if !r.write && r.code == codeOK {
		if s.owners[r.session] != r.c {
			return
		}
		s.read(r)
	}
	code := r.code
	if code == codeOK && r.resp.Results == nil { // a multi carries its errors in its results
		code = codeOf(r.resp.Err)
	}
	s.stats.sent.Add(1)
	r.c.send(r, s.tree.Zxid(), code)
}

// read runs everything that is no write.
func (s *Server) read(r *request) {
	switch r.op {
	case opSetWatches, opSetWatches2:
		w := r.watches
		s.notifyOwn(r.c, s.tree.SetWatches(r.session, w.relative, w.data, w.exist, w.child, w.persistent, w.recursive))
	case opAddWatch:
		if r.mode != 0 && r.mode != 1 {
			r.code = codeMarshalling
			return
		}
		s.tree.AddPersistentWatch(r.session, r.z.Path, r.mode == 1)
	case opCheckWatches:
		if !s.tree.HasWatch(r.session, r.z.Path, r.kind) {
			r.code = codeNoWatcher
		}
	case opRemoveWatches:
		if !s.tree.RemoveWatch(r.session, r.z.Path, r.kind) {
			r.code = codeNoWatcher
		}
	case opGetEphemerals:
		for _, path := range s.tree.Ephemerals(r.session) {
			if len(r.z.Path) == 0 || len(path) >= len(r.z.Path) && path[:len(r.z.Path)] == r.z.Path {
				r.resp.Children = append(r.resp.Children, path)
			}
		}
	case opAllChildren:
		n, err := s.tree.Descendants(r.z.Path, r.auth)
		r.resp.Stat.NumChildren, r.resp.Err = int32(n), err
	case opWhoAmI:
	default:
		r.resp = s.tree.ReadShared(r.session, r.auth, &r.z)
	}
}

// notifyOwn sends a connection the events that its setWatches found; the connection flushes itself.
func (s *Server) notifyOwn(c *conn, fired []ztree.FiredWatch) {
	for i := range fired {
		f := &fired[i]
		c.append(func(b []byte) []byte { return appendEvent(b, f.Event, f.Zxid) })
		s.stats.sent.Add(1)
	}
}
