//go:build unix

package iostreams

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// lookEveryMs is how often the other end of a pipe is looked after.
const lookEveryMs = 200

// UntilReaderGone returns a context that also ends when nobody reads Out any more: a command that waits for what comes next
// would otherwise notice only when it writes the next time, which may be never (kctl consume orders | head -1). Only a pipe
// or a socket has such an end; stop releases the context and waits for its goroutine.
func (s *IOStreams) UntilReaderGone(ctx context.Context) (out context.Context, stop func()) {
	file, ok := s.Out.(*os.File)
	if !ok {
		return ctx, func() {}
	}
	if info, err := file.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fds := []unix.PollFd{{Fd: int32(file.Fd())}} // no events asked for: only errors and the end are told
			if n, err := unix.Poll(fds, lookEveryMs); err != nil && err != unix.EINTR {
				return
			} else if n > 0 {
				cancel()
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}
