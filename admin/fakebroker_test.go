package admin

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/kafkatest"
)

// fakeBroker speaks as much of the protocol as a test gives it answers for, and counts what it is asked.
type fakeBroker struct {
	addr    string
	answer  map[kmsg.Key]func(kmsg.Request) kmsg.Response // nil answer: the connection is closed
	highest map[kmsg.Key]int16                            // announced versions; those of answer by default

	mu    sync.Mutex
	asked map[kmsg.Key]int
}

// startFake serves on ln (nil: a new listener on 127.0.0.1) until the test ends.
func startFake(t *testing.T, ln net.Listener, answer map[kmsg.Key]func(kmsg.Request) kmsg.Response) *fakeBroker {
	t.Helper()
	if ln == nil {
		var err error
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	b := &fakeBroker{addr: ln.Addr().String(), answer: answer, highest: map[kmsg.Key]int16{}, asked: map[kmsg.Key]int{}}
	kafkatest.EachConn(t, ln, func(conn net.Conn) { kafkatest.Serve(conn, b.handle) })
	return b
}

// count returns how often a request came.
func (b *fakeBroker) count(key kmsg.Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[key]
}

func (b *fakeBroker) handle(req kmsg.Request) (kmsg.Response, kafkatest.Then) {
	key := kmsg.Key(req.Key())
	b.mu.Lock()
	b.asked[key]++
	b.mu.Unlock()
	if key == kmsg.ApiVersions {
		return b.apiVersions(req.GetVersion()), kafkatest.Answer
	}
	if fn := b.answer[key]; fn != nil {
		if resp := fn(req); resp != nil {
			return resp, kafkatest.Answer
		}
	}
	return nil, kafkatest.HangUp
}

func (b *fakeBroker) apiVersions(version int16) kmsg.Response {
	r := kmsg.NewPtrApiVersionsResponse()
	add := func(key kmsg.Key) {
		a := kmsg.NewApiVersionsResponseApiKey()
		a.ApiKey, a.MaxVersion = int16(key), kmsg.RequestForKey(int16(key)).MaxVersion()
		if h, ok := b.highest[key]; ok {
			a.MaxVersion = h
		}
		r.ApiKeys = append(r.ApiKeys, a)
	}
	add(kmsg.ApiVersions)
	if b.answer[kmsg.Produce] == nil {
		add(kmsg.Produce) // every broker has it; clients take its absence for one that tells nothing
	}
	for key := range b.answer {
		add(key)
	}
	if version > 3 {
		r.ErrorCode, version = 35, 0
	}
	r.SetVersion(version)
	return r
}

// node is the broker as Metadata names it.
func (b *fakeBroker) node(id int32) kmsg.MetadataResponseBroker {
	host, port, _ := net.SplitHostPort(b.addr)
	n, _ := strconv.Atoi(port)
	mb := kmsg.NewMetadataResponseBroker()
	mb.NodeID, mb.Host, mb.Port = id, host, int32(n)
	return mb
}

// openFake opens a client on fake brokers.
func openFake(t *testing.T, cfg Config, brokers ...*fakeBroker) *Client {
	t.Helper()
	for _, b := range brokers {
		cfg.Bootstrap = append(cfg.Bootstrap, b.addr)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute // a busy machine has the time it needs
	}
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
