package zkutil

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
)

// watchMark stands at the end of a path for a read that shall leave a watch. wireConn takes it off and sets
// the packet's watch flag. go-zk must not know of watches: it would set them again after a reconnect relative
// to a zxid that an answer on the new connection may have moved already, and the change in between would
// never be told. The mark is a noncharacter; check refuses paths that hold it.
const watchMark = "\ufdd0"

// watchTable holds the watches of one session that have not fired, and the zxid up to which the client has
// seen the tree: what the server has to be told after a reconnect.
//
// mu guards everything; nothing is called with it held.
type watchTable struct {
	mu                 sync.Mutex
	session            int64
	seen               int64
	data, exist, child map[string]struct{}
}

// begin is called when a session has been granted. It returns the packets that set the session's watches
// again; none for a new session, which has no watches.
func (w *watchTable) begin(session int64) [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != session {
		w.session, w.seen = session, 0
		w.data, w.exist, w.child = map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}
	}
	return w.packets()
}

// registered notes the watch of an answered read: of a missing node only exists leaves one.
func (w *watchTable) registered(op int32, path string, missing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case op == opExists && missing:
		w.exist[path] = struct{}{}
	case missing:
	case op == opGetChildren2:
		w.child[path] = struct{}{}
	default:
		w.data[path] = struct{}{}
	}
}

// fired drops the watches that an event has used up.
func (w *watchTable) fired(kind int32, path string) {
	const created, deleted, changed, children = 1, 2, 3, 4
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == created || kind == deleted || kind == changed {
		delete(w.exist, path)
		delete(w.data, path)
	}
	if kind == deleted || kind == children {
		delete(w.child, path)
	}
}

// saw notes the zxid of an answer.
func (w *watchTable) saw(zxid int64) {
	if zxid <= 0 {
		return
	}
	w.mu.Lock()
	w.seen = max(w.seen, zxid)
	w.mu.Unlock()
}

// packets makes SetWatches requests of at most setWatchesBytes each. mu is held.
func (w *watchTable) packets() [][]byte {
	lists := [3][]string{
		slices.Collect(maps.Keys(w.data)), slices.Collect(maps.Keys(w.exist)), slices.Collect(maps.Keys(w.child)),
	}
	var out [][]byte
	for len(lists[0])+len(lists[1])+len(lists[2]) > 0 {
		p := binary.BigEndian.AppendUint64(packetHead(xidSetWatches, opSetWatches), uint64(w.seen))
		for i := range lists {
			n, size := 0, len(p)
			for n < len(lists[i]) && size < setWatchesBytes {
				size += 4 + len(lists[i][n])
				n++
			}
			p = binary.BigEndian.AppendUint32(p, uint32(n))
			for _, path := range lists[i][:n] {
				p = appendText(p, path)
			}
			lists[i] = lists[i][n:]
		}
		out = append(out, sealPacket(p))
	}
	return out
}

const setWatchesBytes = 128 << 10

func packetHead(xid, op int32) []byte {
	p := make([]byte, 4, 64)
	p = binary.BigEndian.AppendUint32(p, uint32(xid))
	return binary.BigEndian.AppendUint32(p, uint32(op))
}

func sealPacket(p []byte) []byte {
	binary.BigEndian.PutUint32(p, uint32(len(p)-4))
	return p
}

func appendText[T ~string | ~[]byte](p []byte, s T) []byte {
	return append(binary.BigEndian.AppendUint32(p, uint32(len(s))), s...)
}

// authPacket presents a credential.
func authPacket(a Auth) []byte {
	p := binary.BigEndian.AppendUint32(packetHead(xidAuth, opSetAuth), 0)
	return sealPacket(appendText(appendText(p, a.Scheme), a.Credential))
}
