package verb

import (
	"context"
	"errors"
	"testing"
	"time"

	"kctl/cmd/internal/cli/exit"
)

// TestWatchThatIsCutOff: a look that the end of the watch cuts off does not count; the whole one before does.
func TestWatchThatIsCutOff(t *testing.T) {
	found, broken := exit.Silent(exit.Problems), errors.New("broken")
	for name, tt := range map[string]struct {
		late  bool    // the end is that of a time, not an interrupt
		looks []error // the last one is cut off
		want  error
	}{
		"interrupted in the first look":      {false, []error{context.Canceled}, nil},
		"interrupted in the second":          {false, []error{found, context.Canceled}, found},
		"interrupted behind a good one":      {false, []error{nil, context.Canceled}, nil},
		"interrupted behind a broken one":    {false, []error{broken, context.Canceled}, broken},
		"no time for the first":              {true, []error{broken}, broken},
		"no time for the second":             {true, []error{found, context.DeadlineExceeded}, found},
		"interrupted when it had been shown": {false, []error{nil, found}, found},
	} {
		base, end := context.WithCancel(t.Context())
		ctx := context.Context(base)
		if tt.late {
			ctx = timedOut{base}
		}
		n := 0
		err := Watch(ctx, time.Nanosecond, func() (bool, error) {
			if n++; n == len(tt.looks) {
				end()
			}
			return false, tt.looks[n-1]
		})
		end()
		if !errors.Is(err, tt.want) && !(err == nil && tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// timedOut is a context whose cancellation is the end of its time.
type timedOut struct{ context.Context }

func (c timedOut) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}
