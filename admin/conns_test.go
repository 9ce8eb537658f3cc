package admin

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestNamedBrokerDies: when the one broker that was named has died, the others, of which it told, are asked.
func TestNamedBrokerDies(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var brokers []kmsg.MetadataResponseBroker
	metadata := map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.Metadata: func(kmsg.Request) kmsg.Response {
		r := kmsg.NewPtrMetadataResponse()
		r.Brokers = brokers
		return r
	}}
	dying := map[kmsg.Key]func(kmsg.Request) kmsg.Response{}
	named, other := startFake(t, ln, dying), startFake(t, nil, metadata)
	brokers = []kmsg.MetadataResponseBroker{named.node(1), other.node(2)}
	dying[kmsg.Metadata] = func(r kmsg.Request) kmsg.Response {
		if named.count(kmsg.Metadata) > 1 {
			return nil // it hangs up from now on
		}
		return metadata[kmsg.Metadata](r)
	}
	c := openFake(t, Config{}, named)
	for i := range 2 {
		if _, err := c.metadata(t.Context(), []string{}); err != nil {
			t.Fatal(i, err)
		}
	}
	if named.count(kmsg.Metadata) < 2 || other.count(kmsg.Metadata) != 1 {
		t.Errorf("asked %d times and %d times", named.count(kmsg.Metadata), other.count(kmsg.Metadata))
	}
}

// TestTimeToDiagnose: the search for a cause has time of its own when the operation has none left, and ends with an interrupt.
func TestTimeToDiagnose(t *testing.T) {
	c := openFake(t, Config{Bootstrap: []string{"127.0.0.1:1"}})
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	search, stop := c.toDiagnose(over)
	defer stop()
	deadline, _ := search.Deadline()
	if before, _ := over.Deadline(); !deadline.After(before.Add(leastDiagnoseTime)) || errors.Is(search.Err(), context.Canceled) {
		t.Errorf("the search ends at %v, %v", deadline, search.Err())
	}
	running, interrupt := context.WithCancel(t.Context())
	search, stop = c.toDiagnose(running)
	defer stop()
	if search.Err() != nil {
		t.Error(search.Err())
	}
	interrupt()
	<-search.Done()
}
