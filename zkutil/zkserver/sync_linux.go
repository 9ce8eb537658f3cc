package zkserver

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the file's content durable; unlike fsync it spares the time stamps.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR { //nolint:errorlint // a bare errno
			return err
		}
	}
}
