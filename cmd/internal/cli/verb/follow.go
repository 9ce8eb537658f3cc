package verb

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"kctl/cmd/internal/cli/exit"
)

// Follow are the flags of commands that print changes as they happen, and how these end.
type Follow struct {
	count int
	limit time.Duration
	seen  int
	stop  context.CancelFunc // of the running watch
	timer *time.Timer        // nil: the watch does not stand yet, or has no end
}

// errEnough ends a watch whose count is reached.
var errEnough = errors.New("enough changes")

// AddFlags declares --count and --for.
func (f *Follow) AddFlags(fl *pflag.FlagSet) {
	fl.IntVar(&f.count, "count", 0, "end after this many changes (0: never)")
	fl.DurationVar(&f.limit, "for", 0, "end after this time (0: never)")
}

// Check refuses values that mean nothing.
func (f *Follow) Check() error {
	if f.count < 0 || f.limit < 0 {
		return exit.Usagef("--count and --for must not be below zero")
	}
	return nil
}

// Run calls watch with a context that ends with --for, whose time begins with Armed. An end by --for or --count is none by error.
func (f *Follow) Run(ctx context.Context, watch func(context.Context) error) error {
	ctx, f.stop = context.WithCancel(ctx)
	defer f.stop()
	err := watch(ctx)
	if f.timer != nil {
		f.timer.Stop()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Armed says that the watch stands: from now on the time of --for runs. What it takes to reach the cluster and to read it is
// not watched, and a short --for does not hide that it failed.
func (f *Follow) Armed() {
	if f.limit > 0 {
		f.timer = time.AfterFunc(f.limit, f.stop)
	}
}

// Seen counts one change; its error ends the watch.
func (f *Follow) Seen() error {
	if f.seen++; f.seen == f.count {
		return errEnough
	}
	return nil
}
