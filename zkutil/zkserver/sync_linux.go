package zkserver

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the file's content durable; unlike fsync it spares the time stamps.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
