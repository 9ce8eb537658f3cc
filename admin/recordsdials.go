package admin

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/zkutil/cluster"
)

// dialWatch knows which brokers cannot be reached: the library tries again for ever, or until its time is up, and does
// not say why. It is a hook of kgo and safe for concurrent use.
type dialWatch struct {
	now     func() time.Time
	explain func(id cluster.BrokerID, addr string, err error) error

	// A consumer that cannot reach a broker and gets no records from the others either is ended by give after limit.
	limit time.Duration
	give  context.CancelCauseFunc

	mu     sync.Mutex
	failed map[string]dialFailure // by address, of those whose latest connection failed
}

type dialFailure struct {
	since time.Time // when the failures began, or the last records came, whichever is later
	err   error
}

func (c *Client) watchDials() *dialWatch {
	return &dialWatch{now: time.Now, explain: c.explainAddress, failed: map[string]dialFailure{}}
}

// OnBrokerConnect notes how a connection was made, or not.
func (d *dialWatch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	addr := net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.failed, addr)
		return
	}
	err = d.explain(cluster.BrokerID(meta.NodeID), addr, err)
	if _, explained := errors.AsType[*Error](err); !explained {
		err = wrap(err, "no connection to %s", addr)
	}
	f, known := d.failed[addr]
	if !known {
		f.since = d.now()
	}
	f.err = err
	d.failed[addr] = f
	if d.give != nil && d.now().Sub(f.since) >= d.limit {
		d.give(err)
	}
}

// arrived notes that there were records.
func (d *dialWatch) arrived() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for addr, f := range d.failed {
		f.since = d.now()
		d.failed[addr] = f
	}
}

// unreachable returns why a broker cannot be reached at the moment, nil when all that were tried can.
func (d *dialWatch) unreachable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, addr := range slices.Sorted(maps.Keys(d.failed)) {
		return d.failed[addr].err
	}
	return nil
}
