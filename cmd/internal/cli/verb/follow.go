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

// Run calls watch with a context that ends with --for. An end by --for or --count is none by error.
func (f *Follow) Run(ctx context.Context, watch func(context.Context) error) error {
	if f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	if err := watch(ctx); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// Seen counts one change; its error ends the watch.
func (f *Follow) Seen() error {
	if f.seen++; f.seen == f.count {
		return errEnough
	}
	return nil
}
