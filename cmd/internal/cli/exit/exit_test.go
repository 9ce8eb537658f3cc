package exit_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"kctl/admin"
	"kctl/cmd/internal/cli/exit"
)

// TestCodeOf: an errno means a network only when it comes from one.
func TestCodeOf(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	for _, tt := range []struct {
		err  error
		want exit.Code
	}{
		{nil, exit.OK},
		{full, exit.Failed},
		{fmt.Errorf("print: %w", full), exit.Failed},
		{&admin.Error{Kind: admin.BadInput, Err: full}, exit.Usage},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, exit.Unreachable},
		{context.DeadlineExceeded, exit.Unreachable},
		{context.Canceled, exit.Failed},
		{exit.Usagef("x"), exit.Usage},
	} {
		if got := exit.CodeOf(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}
