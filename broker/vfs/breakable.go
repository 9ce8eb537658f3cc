package vfs

import (
	"errors"
	"io"
	"path"
	"strings"
	"sync"
)

// ErrInput is what operations on a broken path answer unless told otherwise.
var ErrInput = errors.New("input/output error")

// Breakable passes everything to another FS, except what lies below a path that was broken: that fails, with open
// files too, until it is mended. It stands in for a disk that dies under a real broker. Safe for concurrent use.
type Breakable struct {
	FS

	mu     sync.RWMutex
	broken map[string]error
}

// Break lets every operation at and below name fail; nil is ErrInput.
func (b *Breakable) Break(name string, err error) {
	if err == nil {
		err = ErrInput
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.broken = map[string]error{}
	}
	b.broken[path.Clean(name)] = err
}

// Mend undoes Break.
func (b *Breakable) Mend(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.broken, path.Clean(name))
}

func (b *Breakable) check(names ...string) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for broken, err := range b.broken {
		for _, name := range names {
			if name = path.Clean(name); name == broken || strings.HasPrefix(name, broken+"/") {
				return err
			}
		}
	}
	return nil
}

func (b *Breakable) file(name string, open func(string) (File, error)) (File, error) {
	if err := b.check(name); err != nil {
		return nil, err
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return &breakableFile{f, b, name}, nil
}

// Open is that of FS, as are the methods that follow.
func (b *Breakable) Open(name string) (File, error) { return b.file(name, b.FS.Open) }

// OpenReadWrite opens for reading and writing.
func (b *Breakable) OpenReadWrite(name string) (File, error) { return b.file(name, b.FS.OpenReadWrite) }

// Create makes a file.
func (b *Breakable) Create(name string) (File, error) { return b.file(name, b.FS.Create) }

// Mkdir makes a folder.
func (b *Breakable) Mkdir(name string) error {
	return b.unless(func() error { return b.FS.Mkdir(name) }, name)
}

// MkdirAll makes a folder and its parents.
func (b *Breakable) MkdirAll(name string) error {
	return b.unless(func() error { return b.FS.MkdirAll(name) }, name)
}

// Rename moves a file or folder.
func (b *Breakable) Rename(oldName, newName string) error {
	return b.unless(func() error { return b.FS.Rename(oldName, newName) }, oldName, newName)
}

// Remove deletes a file or an empty folder.
func (b *Breakable) Remove(name string) error {
	return b.unless(func() error { return b.FS.Remove(name) }, name)
}

// RemoveAll deletes a tree.
func (b *Breakable) RemoveAll(name string) error {
	return b.unless(func() error { return b.FS.RemoveAll(name) }, name)
}

// SyncDir makes entries durable.
func (b *Breakable) SyncDir(name string) error {
	return b.unless(func() error { return b.FS.SyncDir(name) }, name)
}

// SyncAll makes a tree durable.
func (b *Breakable) SyncAll(name string) error {
	return b.unless(func() error { return b.FS.SyncAll(name) }, name)
}

func (b *Breakable) unless(do func() error, names ...string) error {
	if err := b.check(names...); err != nil {
		return err
	}
	return do()
}

// List returns the entries of a folder.
func (b *Breakable) List(name string) ([]Entry, error) {
	if err := b.check(name); err != nil {
		return nil, err
	}
	return b.FS.List(name)
}

// Stat describes a file.
func (b *Breakable) Stat(name string) (Info, error) {
	if err := b.check(name); err != nil {
		return Info{}, err
	}
	return b.FS.Stat(name)
}

// Lock takes a lock.
func (b *Breakable) Lock(name string) (io.Closer, error) {
	if err := b.check(name); err != nil {
		return nil, err
	}
	return b.FS.Lock(name)
}

// Usage describes a volume.
func (b *Breakable) Usage(name string) (Usage, error) {
	if err := b.check(name); err != nil {
		return Usage{}, err
	}
	return b.FS.Usage(name)
}

// breakableFile hides the file's OSFile: what goes past it could not fail.
type breakableFile struct {
	f    File
	b    *Breakable
	name string
}

func (f *breakableFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.b.check(f.name); err != nil {
		return 0, err
	}
	return f.f.ReadAt(p, off)
}

func (f *breakableFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.b.check(f.name); err != nil {
		return 0, err
	}
	return f.f.WriteAt(p, off)
}

func (f *breakableFile) Size() (int64, error) {
	if err := f.b.check(f.name); err != nil {
		return 0, err
	}
	return f.f.Size()
}

func (f *breakableFile) Truncate(size int64) error {
	return f.b.unless(func() error { return f.f.Truncate(size) }, f.name)
}

func (f *breakableFile) Sync() error { return f.b.unless(f.f.Sync, f.name) }

func (f *breakableFile) Preallocate(size int64) error {
	return f.b.unless(func() error { return f.f.Preallocate(size) }, f.name)
}

func (f *breakableFile) Close() error { return f.f.Close() }
