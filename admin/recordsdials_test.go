package admin

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestConsumerGivesUpOnABrokerThatCannotBeReached: the end comes when a broker was out of reach for the limit without
// records from anywhere, and not before; it names the address that was advertised.
func TestConsumerGivesUpOnABrokerThatCannotBeReached(t *testing.T) {
	now := time.Unix(0, 0)
	ctx, give := context.WithCancelCause(context.Background())
	c := &Client{cfg: Config{Bootstrap: []string{"127.0.0.1:9092"}}}
	d := c.watchDials()
	d.limit, d.give, d.now = 30*time.Second, give, func() time.Time { return now }
	broker := kgo.BrokerMetadata{NodeID: 2, Host: "10.0.0.2", Port: 9093}
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	step := func(after time.Duration, err error) error {
		now = now.Add(after)
		d.OnBrokerConnect(broker, 0, nil, err)
		return context.Cause(ctx)
	}
	for _, s := range []struct {
		after time.Duration
		err   error
	}{{0, refused}, {29 * time.Second, refused}, {0, nil}, {time.Hour, refused}, {29 * time.Second, refused}} {
		if err := step(s.after, s.err); err != nil {
			t.Fatalf("after %v: %v", s.after, err)
		}
	}
	d.arrived()
	if err := step(29*time.Second, refused); err != nil {
		t.Fatalf("although records came: %v", err)
	}
	err := step(time.Second, refused)
	if err == nil || KindOf(err) != Unreachable || !strings.Contains(err.Error(), "broker 2 cannot be reached: its advertised address 10.0.0.2:9093") {
		t.Errorf("%v", err)
	}
	if got := produceErr(kgo.ErrRecordTimeout, "t", d.unreachable()); !strings.Contains(got.Error(), "10.0.0.2:9093") || KindOf(got) != Unreachable {
		t.Errorf("produce: %v", got)
	}
	d.OnBrokerConnect(broker, 0, nil, nil)
	if err := d.unreachable(); err != nil {
		t.Errorf("after a connection was made: %v", err)
	}
	// An address that the user gave is no advertised one.
	ctx, d.give = context.WithCancelCause(context.Background())
	broker = kgo.BrokerMetadata{NodeID: -1 << 31, Host: "127.0.0.1", Port: 9092}
	step(0, refused)
	err = step(time.Minute, refused)
	if _, ok := errors.AsType[*Error](err); !ok || KindOf(err) != Unreachable || !strings.Contains(err.Error(), "no connection to 127.0.0.1:9092") {
		t.Errorf("%v", err)
	}
}
