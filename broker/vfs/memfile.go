package vfs

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
)

// memData is a file's contents: as processes see them (data), as of the last Sync (synced), and the hull of
// the bytes that differ (from dirtyFrom up to dirtyTo).
type memData struct {
	data, synced       []byte
	dirtyFrom, dirtyTo int64
}

func (d *memData) touch(from, to int64) {
	if from >= to {
		return
	}
	if d.dirtyFrom == d.dirtyTo {
		d.dirtyFrom, d.dirtyTo = from, to
		return
	}
	d.dirtyFrom, d.dirtyTo = min(d.dirtyFrom, from), max(d.dirtyTo, to)
}

// truncate changes the length and returns how many bytes fewer the file holds.
func (d *memData) truncate(size int64) int64 {
	old := int64(len(d.data))
	switch {
	case size < old:
		clear(d.data[size:])
		d.data = d.data[:size]
	case size <= int64(cap(d.data)):
		d.data = d.data[:size]
	default:
		d.data = append(d.data, make([]byte, size-old)...)
	}
	d.touch(min(size, old), max(size, old))
	return old - size
}

func (d *memData) sync() {
	n := int64(len(d.data))
	if int64(len(d.synced)) > n {
		d.synced = d.synced[:n]
	}
	if grow := n - int64(len(d.synced)); grow > 0 {
		d.synced = append(d.synced, make([]byte, grow)...)
	}
	if from, to := min(d.dirtyFrom, n), min(d.dirtyTo, n); from < to {
		copy(d.synced[from:to], d.data[from:to])
	}
	d.dirtyFrom, d.dirtyTo = 0, 0
}

type memFile struct {
	m      *Mem
	n      *memNode
	name   string
	write  bool
	closed atomic.Bool
}

func (f *memFile) usable(op Op, write bool) error {
	if f.closed.Load() {
		return pathErr(op, f.name, fs.ErrClosed)
	}
	if write && !f.write {
		return pathErr(op, f.name, fs.ErrPermission)
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.usable(OpRead, false); err != nil {
		return 0, err
	}
	if err := f.m.begin(OpRead, f.name); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathErr(OpRead, f.name, fs.ErrInvalid)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off >= int64(len(f.n.file.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.n.file.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.usable(OpWrite, true); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathErr(OpWrite, f.name, fs.ErrInvalid)
	}
	failed := f.m.check(OpWrite, f.name)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if failed != nil {
		n := min(failed.ShortWrite, len(p))
		f.m.writeLocked(f.n, p[:n], off)
		return n, pathErr(OpWrite, f.name, failed.Err)
	}
	if n := f.m.writeLocked(f.n, p, off); n < len(p) {
		return n, pathErr(OpWrite, f.name, ErrNoSpace)
	}
	return len(p), nil
}

// writeLocked writes what the capacity allows and returns how much that was.
func (m *Mem) writeLocked(n *memNode, p []byte, off int64) int {
	d := &n.file
	if len(p) == 0 {
		return 0
	}
	linked := n.links > 0
	if m.capacity > 0 && linked {
		room := max(0, m.capacity-m.used)
		if grow := off + int64(len(p)) - int64(len(d.data)); grow > room {
			p = p[:max(0, int64(len(p))-(grow-room))]
		}
	}
	if len(p) == 0 {
		return 0
	}
	end := off + int64(len(p))
	if end > int64(len(d.data)) {
		freed := d.truncate(end)
		if linked {
			m.used -= freed
		}
	}
	copy(d.data[off:], p)
	d.touch(off, end)
	n.modTime = m.tick()
	return len(p)
}

// Close implements io.Closer. A second Close is an error, so that double closes show.
func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return pathErr("close", f.name, fs.ErrClosed)
	}
	return nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	if err := f.usable(OpStat, false); err != nil {
		return 0, err
	}
	if err := f.m.begin(OpStat, f.name); err != nil {
		return 0, err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return int64(len(f.n.file.data)), nil
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	if err := f.usable(OpTruncate, true); err != nil {
		return err
	}
	if size < 0 {
		return pathErr(OpTruncate, f.name, fs.ErrInvalid)
	}
	if err := f.m.begin(OpTruncate, f.name); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if grow := size - int64(len(f.n.file.data)); grow > 0 && f.m.capacity > 0 && f.m.used+grow > f.m.capacity {
		return pathErr(OpTruncate, f.name, ErrNoSpace)
	}
	freed := f.n.file.truncate(size)
	if f.n.links > 0 {
		f.m.used -= freed
	}
	f.n.modTime = f.m.tick()
	return nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	if err := f.usable(OpSync, false); err != nil {
		return err
	}
	if err := f.m.begin(OpSync, f.name); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.file.sync()
	return nil
}

// Preallocate implements File; space in memory is not reserved, a full disk shows at the write.
func (f *memFile) Preallocate(size int64) error {
	if size < 0 {
		return errors.New("preallocate: negative size")
	}
	return f.usable(OpWrite, true)
}
