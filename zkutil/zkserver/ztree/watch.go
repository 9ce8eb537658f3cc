package ztree

import (
	"sort"
	"strings"

	"kctl/zkutil/zkop"
)

// watchBits says which events of a path a session waits for.
type watchBits uint8

const (
	watchData  watchBits = 1 << iota // one-shot: created, changed, deleted
	watchChild                       // one-shot: children changed, deleted
	watchPersistent
	watchRecursive
	watchOneShot = watchData | watchChild
)

type watcher struct {
	session int64
	bits    watchBits
}

// watchTable keeps the watches by path, and per path in the order in which they were set. One session has one
// entry per path, so that it gets one event however many ways it watches.
type watchTable struct {
	byPath    map[string][]watcher
	bySession map[int64]map[string]struct{}
	recursive int // entries with watchRecursive; 0 spares the walk to the root
	count     int // entries
}

func newWatchTable() watchTable {
	return watchTable{byPath: make(map[string][]watcher), bySession: make(map[int64]map[string]struct{})}
}

func (w *watchTable) add(path string, session int64, bits watchBits) {
	list := w.byPath[path]
	for i := range list {
		if list[i].session == session {
			if bits&watchRecursive != 0 && list[i].bits&watchRecursive == 0 {
				w.recursive++
			}
			list[i].bits |= bits
			return
		}
	}
	if bits&watchRecursive != 0 {
		w.recursive++
	}
	w.count++
	w.byPath[path] = append(list, watcher{session, bits})
	paths := w.bySession[session]
	if paths == nil {
		paths = make(map[string]struct{})
		w.bySession[session] = paths
	}
	paths[path] = struct{}{}
}

// clear takes bits from the session's entry and drops it when none is left. False: it had none of them.
func (w *watchTable) clear(path string, session int64, bits watchBits) bool {
	list := w.byPath[path]
	for i := range list {
		if list[i].session != session {
			continue
		}
		had := list[i].bits & bits
		if had&watchRecursive != 0 {
			w.recursive--
		}
		list[i].bits &^= bits
		if list[i].bits == 0 {
			w.setList(path, append(list[:i], list[i+1:]...))
			w.forget(path, session)
		}
		return had != 0
	}
	return false
}

func (w *watchTable) setList(path string, list []watcher) {
	if len(list) == 0 {
		delete(w.byPath, path)
		return
	}
	w.byPath[path] = list
}

func (w *watchTable) forget(path string, session int64) {
	w.count--
	paths := w.bySession[session]
	delete(paths, path)
	if len(paths) == 0 {
		delete(w.bySession, session)
	}
}

// fire collects the events that a change of path means for its watchers and takes the one-shot watches away.
func (t *Tree) fire(path string, typ zkop.EventType, acl []zkop.ACL) {
	w := &t.watches
	if w.count == 0 {
		return
	}
	wanted, taken := watchData|watchPersistent|watchRecursive, watchData
	switch typ {
	case zkop.NodeDeleted:
		wanted, taken = wanted|watchChild, watchOneShot
	case zkop.NodeChildrenChanged:
		wanted, taken = watchChild|watchPersistent, watchChild
	}
	if list, ok := w.byPath[path]; ok {
		kept := list[:0]
		for _, e := range list {
			if e.bits&wanted != 0 {
				t.emit(e.session, path, typ, acl)
				e.bits &^= taken
			}
			if e.bits == 0 {
				w.forget(path, e.session)
			} else {
				kept = append(kept, e)
			}
		}
		w.setList(path, kept)
	}
	if w.recursive > 0 && typ != zkop.NodeChildrenChanged {
		t.fireAbove(path, typ, acl)
	}
}

// fireAbove tells the recursive watchers of the ancestors, each session once.
func (t *Tree) fireAbove(path string, typ zkop.EventType, acl []zkop.ACL) {
	for at := path; at != "/"; {
		i := strings.LastIndexByte(at, '/')
		at = at[:max(i, 1)]
		for _, e := range t.watches.byPath[at] {
			if e.bits&watchRecursive != 0 && !t.told(e.session, path, typ) {
				t.emit(e.session, path, typ, acl)
			}
		}
	}
}

func (t *Tree) told(session int64, path string, typ zkop.EventType) bool {
	for i := len(t.fired) - 1; i >= 0; i-- {
		f := &t.fired[i]
		if f.Event.Path != path || f.Event.Type != typ {
			return false
		}
		if f.Session == session {
			return true
		}
	}
	return false
}

func (t *Tree) emit(session int64, path string, typ zkop.EventType, acl []zkop.ACL) {
	t.fired = append(t.fired, FiredWatch{Session: session, Event: zkop.Event{Type: typ, Path: path}, Zxid: t.zxid, acl: acl})
}

// DropWatches removes all watches of a session: its connection is gone. The client sets them again with
// SetWatches when it comes back.
func (t *Tree) DropWatches(session int64) {
	for path := range t.watches.bySession[session] {
		t.watches.clear(path, session, watchOneShot|watchPersistent|watchRecursive)
	}
}

// SetWatches re-establishes the watches of a client that reconnected and last saw relative. Watches whose event
// happened meanwhile fire at once instead. The fired watches are valid until the next call.
func (t *Tree) SetWatches(session, relative int64, data, exist, child, persistent, recursive []string) []FiredWatch {
	t.fired = t.fired[:0]
	for _, path := range data {
		n := t.nodes[path]
		switch {
		case n == nil:
			t.emit(session, path, zkop.NodeDeleted, nil)
		case n.mzxid > relative:
			t.emit(session, path, zkop.NodeDataChanged, nil)
		default:
			t.watches.add(path, session, watchData)
		}
	}
	for _, path := range exist {
		if t.nodes[path] != nil {
			t.emit(session, path, zkop.NodeCreated, nil)
		} else {
			t.watches.add(path, session, watchData)
		}
	}
	for _, path := range child {
		n := t.nodes[path]
		switch {
		case n == nil:
			t.emit(session, path, zkop.NodeDeleted, nil)
		case n.pzxid > relative:
			t.emit(session, path, zkop.NodeChildrenChanged, nil)
		default:
			t.watches.add(path, session, watchChild)
		}
	}
	for _, path := range persistent {
		t.watches.add(path, session, watchPersistent)
	}
	for _, path := range recursive {
		t.watches.add(path, session, watchRecursive)
	}
	return t.fired
}

// AddPersistentWatch adds a watch that stays after it fired; recursive ones also see everything below path, but
// no NodeChildrenChanged.
func (t *Tree) AddPersistentWatch(session int64, path string, recursive bool) {
	bits := watchPersistent
	if recursive {
		bits = watchRecursive
	}
	t.watches.add(path, session, bits)
}

// WatchKind selects the watches of RemoveWatch and HasWatch; the values are those of the protocol.
type WatchKind int32

// The kinds of watches that can be removed.
const (
	ChildWatch WatchKind = iota + 1
	DataWatch
	AnyWatch
	PersistentWatch
	PersistentRecursiveWatch
)

func (k WatchKind) bits() watchBits {
	switch k {
	case ChildWatch:
		return watchChild
	case DataWatch:
		return watchData
	case AnyWatch:
		return watchOneShot | watchPersistent | watchRecursive
	case PersistentWatch:
		return watchPersistent
	case PersistentRecursiveWatch:
		return watchRecursive
	default:
		return 0
	}
}

// RemoveWatch removes the session's watches of that kind from path; false if there was none.
func (t *Tree) RemoveWatch(session int64, path string, kind WatchKind) bool {
	return t.watches.clear(path, session, kind.bits())
}

// HasWatch tells whether the session has a watch of that kind on path.
func (t *Tree) HasWatch(session int64, path string, kind WatchKind) bool {
	for _, e := range t.watches.byPath[path] {
		if e.session == session {
			return e.bits&kind.bits() != 0
		}
	}
	return false
}

// WatchCounts returns the number of watches (one per session and path), watched paths and watching sessions.
func (t *Tree) WatchCounts() (watches, paths, sessions int) {
	return t.watches.count, len(t.watches.byPath), len(t.watches.bySession)
}

// WatchedPaths lists the paths a session watches, sorted.
func (t *Tree) WatchedPaths(session int64) []string {
	out := make([]string, 0, len(t.watches.bySession[session]))
	for path := range t.watches.bySession[session] {
		out = append(out, path)
	}
	sort.Strings(out)
	return out
}
