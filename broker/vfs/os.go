package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// OS is the file system of the operating system. The zero value is ready.
type OS struct{}

var _ FS = OS{}

type osFile struct{ f *os.File }

// OSFile returns the open file for sendfile and the like; it stays owned by the File.
func (f osFile) OSFile() *os.File { return f.f }

func (f osFile) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

func (f osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.f.WriteAt(p, off)
	return n, osErr(err)
}

func (f osFile) Close() error { return f.f.Close() }

func (f osFile) Size() (int64, error) {
	st, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f osFile) Truncate(size int64) error { return osErr(f.f.Truncate(size)) }

func (f osFile) Sync() error { return osErr(datasync(f.f)) }

func (f osFile) Preallocate(size int64) error { return osErr(preallocate(f.f, size)) }

// osErr adds ErrNoSpace to errors that mean a full disk or quota.
func osErr(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", err, ErrNoSpace)
	}
	return err
}

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, osErr(err)
	}
	return osFile{f}, nil
}

// Open implements FS.
func (OS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

// OpenReadWrite implements FS.
func (OS) OpenReadWrite(name string) (File, error) { return openOS(name, os.O_RDWR) }

// Create implements FS.
func (OS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// Mkdir implements FS.
func (OS) Mkdir(name string) error { return osErr(os.Mkdir(name, 0o755)) }

// MkdirAll implements FS.
func (OS) MkdirAll(name string) error { return osErr(os.MkdirAll(name, 0o755)) }

// List implements FS.
func (OS) List(name string) ([]Entry, error) {
	des, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(des))
	for i, de := range des {
		out[i] = Entry{Name: de.Name(), IsDir: de.IsDir()}
	}
	return out, nil
}

// Stat implements FS.
func (OS) Stat(name string) (Info, error) {
	st, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: st.Size(), IsDir: st.IsDir(), ModTime: st.ModTime().UnixMilli()}, nil
}

// Rename implements FS.
func (OS) Rename(oldName, newName string) error { return osErr(os.Rename(oldName, newName)) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// RemoveAll implements FS.
func (OS) RemoveAll(name string) error { return os.RemoveAll(name) }

// SyncDir implements FS.
func (OS) SyncDir(name string) error {
	d, err := os.Open(filepath.Clean(name))
	if err != nil {
		return err
	}
	return errors.Join(osErr(d.Sync()), d.Close())
}

// Lock implements FS.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, osErr(err)
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}
