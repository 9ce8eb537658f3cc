package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// lockFile takes an open-file-description lock: it conflicts with the POSIX locks of a JVM and, unlike
// those, also between two holders in this process.
func lockFile(f *os.File) error {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 0, Len: 0}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
}

// Usage implements FS.
func (OS) Usage(name string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return Usage{}, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return Usage{Total: int64(st.Blocks) * int64(st.Bsize), Free: int64(st.Bavail) * int64(st.Bsize)}, nil
}

// SyncAll implements FS with syncfs.
func (OS) SyncAll(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(osErr(unix.Syncfs(int(d.Fd()))), d.Close())
}
