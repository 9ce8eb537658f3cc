package verb_test

import (
	"context"
	"errors"
	"testing"

	"github.com/spf13/pflag"

	"kctl/cmd/internal/cli/verb"
)

// TestForBeginsWhenTheWatchStands: --for does not end what comes before, however short it is: a failure to begin stays one.
func TestForBeginsWhenTheWatchStands(t *testing.T) {
	var f verb.Follow
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(fl)
	if err := fl.Parse([]string{"--for", "1ns"}); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("topic lgo does not exist")
	err := f.Run(t.Context(), func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			t.Errorf("the time is over before the watch stands: %v", err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	err = f.Run(t.Context(), func(ctx context.Context) error {
		f.Armed()
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Errorf("got %v", err)
	}
}
