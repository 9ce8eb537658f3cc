package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Mem is a file system in memory for tests and simulation. It remembers what a power cut would leave:
// contents as of each file's last Sync and folder entries as of the last SyncDir (see CrashClone). Safe for
// concurrent use; the mutex is a leaf of every lock order and is never held while a hook runs.
type Mem struct {
	mu       sync.Mutex
	root     *memNode
	journal  []dirOp // folder changes that are not durable yet, oldest first
	locks    map[string]bool
	rules    []*Rule
	hook     func(Op, string)
	capacity int64
	used     int64
	clock    int64
	nowMs    func() int64
}

var _ FS = (*Mem)(nil)

// memNode is a file or a folder. durable mirrors children as a crash would leave them.
type memNode struct {
	dir      bool
	children map[string]*memNode
	durable  map[string]*memNode
	file     memData
	links    int
	modTime  int64
}

// dirOp is one change of folder entries, possibly of two folders (rename).
type dirOp struct {
	from     *memNode // loses name, if set
	fromName string
	to       *memNode // gains node under toName, if set
	toName   string
	node     *memNode
}

// NewMem returns an empty file system. nowMs stamps modification times (Unix ms); nil counts operations.
func NewMem(nowMs func() int64) *Mem {
	return &Mem{root: newDirNode(), locks: map[string]bool{}, nowMs: nowMs}
}

func newDirNode() *memNode {
	return &memNode{dir: true, children: map[string]*memNode{}, durable: map[string]*memNode{}, links: 1}
}

func (m *Mem) tick() int64 {
	if m.nowMs != nil {
		return m.nowMs()
	}
	m.clock++
	return m.clock
}

func pathErr(op Op, name string, err error) error {
	return &fs.PathError{Op: string(op), Path: name, Err: err}
}

func split(name string) []string {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// find returns the node of a path, nil when there is none.
func (m *Mem) find(name string) *memNode {
	n := m.root
	for _, part := range split(name) {
		if n == nil || !n.dir {
			return nil
		}
		n = n.children[part]
	}
	return n
}

// parent returns the folder that holds (or would hold) name, and its last element.
func (m *Mem) parent(name string) (*memNode, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", fs.ErrInvalid
	}
	dir := m.find(strings.Join(parts[:len(parts)-1], "/"))
	if dir == nil || !dir.dir {
		return nil, "", fs.ErrNotExist
	}
	return dir, parts[len(parts)-1], nil
}

// begin runs hook and rules; the caller must then lock.
func (m *Mem) begin(op Op, name string) error {
	if r := m.check(op, name); r != nil {
		return pathErr(op, name, r.Err)
	}
	return nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenReadWrite implements FS.
func (m *Mem) OpenReadWrite(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, write bool) (File, error) {
	if err := m.begin(OpOpen, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, pathErr(OpOpen, name, fs.ErrNotExist)
	}
	if n.dir {
		return nil, pathErr(OpOpen, name, errors.New("is a directory"))
	}
	return &memFile{m: m, n: n, name: name, write: write}, nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	if err := m.begin(OpCreate, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return nil, pathErr(OpCreate, name, err)
	}
	n := dir.children[base]
	switch {
	case n == nil:
		n = &memNode{links: 1, modTime: m.tick()}
		dir.children[base] = n
		m.journal = append(m.journal, dirOp{to: dir, toName: base, node: n})
	case n.dir:
		return nil, pathErr(OpCreate, name, errors.New("is a directory"))
	default:
		m.used -= n.file.truncate(0)
		n.modTime = m.tick()
	}
	return &memFile{m: m, n: n, name: name, write: true}, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string) error {
	if err := m.begin(OpMkdir, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mkdirLocked(name)
}

func (m *Mem) mkdirLocked(name string) error {
	dir, base, err := m.parent(name)
	if err != nil {
		return pathErr(OpMkdir, name, err)
	}
	if dir.children[base] != nil {
		return pathErr(OpMkdir, name, fs.ErrExist)
	}
	n := newDirNode()
	n.modTime = m.tick()
	dir.children[base] = n
	m.journal = append(m.journal, dirOp{to: dir, toName: base, node: n})
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	if err := m.begin(OpMkdir, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := split(name)
	for i := range parts {
		p := strings.Join(parts[:i+1], "/")
		n := m.find(p)
		if n == nil {
			if err := m.mkdirLocked(p); err != nil {
				return err
			}
			continue
		}
		if !n.dir {
			return pathErr(OpMkdir, name, errors.New("not a directory"))
		}
	}
	return nil
}

// List implements FS.
func (m *Mem) List(name string) ([]Entry, error) {
	if err := m.begin(OpList, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, pathErr(OpList, name, fs.ErrNotExist)
	}
	if !n.dir {
		return nil, pathErr(OpList, name, errors.New("not a directory"))
	}
	var out []Entry
	for _, k := range slices.Sorted(maps.Keys(n.children)) {
		out = append(out, Entry{Name: k, IsDir: n.children[k].dir})
	}
	return out, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	if err := m.begin(OpStat, name); err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return Info{}, pathErr(OpStat, name, fs.ErrNotExist)
	}
	return Info{Size: int64(len(n.file.data)), IsDir: n.dir, ModTime: n.modTime}, nil
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	if err := m.begin(OpRename, oldName); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	from, fromBase, err := m.parent(oldName)
	if err != nil {
		return pathErr(OpRename, oldName, err)
	}
	n := from.children[fromBase]
	if n == nil {
		return pathErr(OpRename, oldName, fs.ErrNotExist)
	}
	to, toBase, err := m.parent(newName)
	if err != nil {
		return pathErr(OpRename, newName, err)
	}
	if old := to.children[toBase]; old != nil && old != n {
		if old.dir && (!n.dir || len(old.children) > 0) || !old.dir && n.dir {
			return pathErr(OpRename, newName, fs.ErrExist)
		}
		m.unlink(old)
	}
	delete(from.children, fromBase)
	to.children[toBase] = n
	m.journal = append(m.journal, dirOp{from: from, fromName: fromBase, to: to, toName: toBase, node: n})
	return nil
}

func (m *Mem) unlink(n *memNode) {
	n.links--
	m.used -= int64(len(n.file.data))
	for _, c := range n.children {
		m.unlink(c)
	}
}

// Remove implements FS.
func (m *Mem) Remove(name string) error { return m.remove(name, false) }

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error { return m.remove(name, true) }

func (m *Mem) remove(name string, all bool) error {
	if err := m.begin(OpRemove, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	var n *memNode
	if err == nil {
		n = dir.children[base]
	}
	if n == nil {
		if all {
			return nil
		}
		return pathErr(OpRemove, name, fs.ErrNotExist)
	}
	if !all && len(n.children) > 0 {
		return pathErr(OpRemove, name, errors.New("directory not empty"))
	}
	m.unlink(n)
	delete(dir.children, base)
	m.journal = append(m.journal, dirOp{from: dir, fromName: base, node: n})
	return nil
}

// SyncDir implements FS: all folder changes up to the last one of this folder become durable, in order, as
// a journaling file system does.
func (m *Mem) SyncDir(name string) error {
	if err := m.begin(OpSyncDir, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || !n.dir {
		return pathErr(OpSyncDir, name, fs.ErrNotExist)
	}
	last := -1
	for i, op := range m.journal {
		if op.from == n || op.to == n {
			last = i
		}
	}
	for _, op := range m.journal[:last+1] {
		op.apply(func(d *memNode) map[string]*memNode { return d.durable })
	}
	m.journal = slices.Delete(m.journal, 0, last+1)
	return nil
}

// SyncAll implements FS: the whole file system becomes durable.
func (m *Mem) SyncAll(name string) error {
	if err := m.begin(OpSync, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(name) == nil {
		return pathErr(OpSync, name, fs.ErrNotExist)
	}
	for _, op := range m.journal {
		op.apply(func(d *memNode) map[string]*memNode { return d.durable })
	}
	m.journal = nil
	m.root.syncTree()
	return nil
}

func (n *memNode) syncTree() {
	n.file.sync()
	for _, c := range n.children {
		c.syncTree()
	}
}

// apply performs the change on the maps that of returns for its folders.
func (op dirOp) apply(of func(*memNode) map[string]*memNode) {
	if op.from != nil {
		delete(of(op.from), op.fromName)
	}
	if op.to != nil {
		of(op.to)[op.toName] = op.node
	}
}

type memLock struct {
	m    *Mem
	name string
	once sync.Once
}

// Close releases the lock.
func (l *memLock) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.locks, l.name)
	})
	return nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	if err := m.begin(OpLock, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return nil, pathErr(OpLock, name, err)
	}
	key := path.Clean("/" + name)
	if m.locks[key] {
		return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
	}
	if dir.children[base] == nil {
		n := &memNode{links: 1, modTime: m.tick()}
		dir.children[base] = n
		m.journal = append(m.journal, dirOp{to: dir, toName: base, node: n})
	}
	m.locks[key] = true
	return &memLock{m: m, name: key}, nil
}

// Usage implements FS. Without a capacity the volume is 1 TiB.
func (m *Mem) Usage(name string) (Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(name) == nil {
		return Usage{}, pathErr(OpStat, name, fs.ErrNotExist)
	}
	total := m.capacity
	if total == 0 {
		total = 1 << 40
	}
	return Usage{Total: total, Free: max(0, total-m.used)}, nil
}
