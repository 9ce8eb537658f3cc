package admin_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/admin"
)

// TestTimedOut: a broker that says that what it asked did not answer has timed out, exit 5, as if it had not answered itself.
func TestTimedOut(t *testing.T) {
	if got := admin.KindOf(fmt.Errorf("configuration of topic/orders: %w", kerr.RequestTimedOut)); got != admin.Unreachable {
		t.Errorf("kind %d", got)
	}
	if hint := admin.HintOf(fmt.Errorf("create topic: %w", kerr.RequestTimedOut)); hint == "" {
		t.Error("no hint")
	}
}
