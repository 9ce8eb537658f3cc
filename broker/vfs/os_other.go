//go:build !linux

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error { return f.Sync() }

func preallocate(*os.File, int64) error { return nil }

// lockFile takes a BSD lock, which excludes other holders in this process too.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// Usage implements FS.
func (OS) Usage(name string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return Usage{}, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return Usage{Total: int64(st.Blocks) * int64(st.Bsize), Free: int64(st.Bavail) * int64(st.Bsize)}, nil
}

// SyncAll implements FS.
func (OS) SyncAll(string) error { return errors.ErrUnsupported }
