package zkutil

import "context"

// Connect opens a session and returns the Client that keeps it. It blocks until the first session is there
// and the chroot is seen, or ctx ends; the error then names every server that was tried and what each said.
func Connect(ctx context.Context, cfg Config) (Client, error) {
	return connect(ctx, cfg.withDefaults())
}
