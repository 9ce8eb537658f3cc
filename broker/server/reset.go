package server

import (
	"errors"
	"syscall"
)

// isReset reports whether the client went away without a goodbye.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
