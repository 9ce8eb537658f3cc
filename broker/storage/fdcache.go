package storage

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"kctl/broker/vfs"
)

// fdCache keeps files open that were used lately and closes others, so that a broker with more segments than
// file descriptors works. Readers and writers hold a handle while they use a file; eviction only drops the
// cache's own reference, the last holder closes.
//
// Lock order: fileRef.mu before fdCache.mu; both are leaves otherwise.
type fdCache struct {
	fs    vfs.FS
	limit int

	mu   sync.Mutex
	ring []*fileRef // files with an open handle, in clock order
	hand int
}

// fileRef names a file that is opened when it is needed. The zero folder pointer is invalid.
type fileRef struct {
	cache  *fdCache
	folder *atomic.Pointer[string] // of the partition; changes when the log is deleted
	made   *atomic.Bool            // set when the file is created: the folder wants a sync then
	base   int64
	ext    string

	h  atomic.Pointer[handle]
	mu sync.Mutex // serialises opening
}

// handle is an open file with a count of its users, of which the cache is one.
type handle struct {
	vfs.File
	refs atomic.Int32
	used atomic.Bool
}

func (h *handle) tryRef() bool {
	for {
		n := h.refs.Load()
		if n == 0 {
			return false
		}
		if h.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives the handle back; the last one closes the file. What Close says is not interesting: durability
// comes from Sync alone.
func (h *handle) release() {
	if h.refs.Add(-1) == 0 {
		_ = h.Close()
	}
}

func (r *fileRef) path() string { return segmentPath(*r.folder.Load(), r.base, r.ext) }

// acquire opens the file if need be and returns a handle that the caller must release.
func (r *fileRef) acquire() (*handle, error) { return r.get(false) }

// acquireCreate is acquire for a file that may not exist yet.
func (r *fileRef) acquireCreate() (*handle, error) { return r.get(true) }

func (r *fileRef) get(create bool) (*handle, error) {
	if h := r.h.Load(); h != nil && h.tryRef() {
		if !h.used.Load() {
			h.used.Store(true)
		}
		return h, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.h.Load(); h != nil && h.tryRef() {
		return h, nil
	}
	f, err := r.open(create)
	if err != nil {
		return nil, err
	}
	h := &handle{File: f}
	h.refs.Store(2)
	h.used.Store(true)
	r.h.Store(h)
	r.cache.added(r)
	return h, nil
}

func (r *fileRef) open(create bool) (vfs.File, error) {
	for attempt := 0; ; attempt++ {
		f, err := r.cache.fs.OpenReadWrite(r.path())
		if create && errors.Is(err, vfs.ErrNotExist) {
			f, err = r.cache.fs.Create(r.path())
			r.made.Store(true)
		}
		tooMany := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
		if !tooMany || attempt == 4 {
			return f, err
		}
		r.cache.shrink()
	}
}

// drop closes the file when its users are done; the next acquire opens it anew.
func (r *fileRef) drop() {
	if h := r.h.Swap(nil); h != nil {
		h.release()
	}
}

// added notes an opened file and evicts one that was not used since the hand last passed.
func (c *fdCache) added(r *fileRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring = append(c.ring, r)
	for range 2 * len(c.ring) {
		if len(c.ring) <= c.limit {
			return
		}
		c.stepLocked()
	}
}

// stepLocked looks at one file: removes it when its handle is gone or idle, else gives it another round.
func (c *fdCache) stepLocked() {
	if c.hand >= len(c.ring) {
		c.hand = 0
	}
	r := c.ring[c.hand]
	h := r.h.Load()
	if h != nil && h.used.Swap(false) {
		c.hand++
		return
	}
	if h != nil && r.h.CompareAndSwap(h, nil) {
		h.release()
	}
	last := len(c.ring) - 1
	c.ring[c.hand] = c.ring[last]
	c.ring[last] = nil
	c.ring = c.ring[:last]
}

// shrink closes a quarter of the idle files after the system refused to open more.
func (c *fdCache) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := len(c.ring) * 3 / 4
	for range 2 * len(c.ring) {
		if len(c.ring) <= want {
			return
		}
		c.stepLocked()
	}
}

// closeAll drops every file.
func (c *fdCache) closeAll() {
	c.mu.Lock()
	ring := c.ring
	c.ring = nil
	c.mu.Unlock()
	for _, r := range ring {
		r.drop()
	}
}

// defaultOpenFiles is a quarter of the process's limit: sockets and other managers need some too.
func defaultOpenFiles() int {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 256
	}
	return int(min(max(uint64(lim.Cur)/4, 64), 8192))
}
