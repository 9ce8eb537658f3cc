package admin

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
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
	eachConn(t, ln, b.serve)
	return b
}

// eachConn handles the connections of a listener beside each other until the test ends. One after the other would not do: kctl
// asks several questions at once, each over a connection of its own, and one that is not answered would hold back the others.
func eachConn(t *testing.T, ln net.Listener, handle func(net.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	open, over := map[net.Conn]bool{}, false
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if open[conn] = true; over {
				_ = conn.Close()
			}
			mu.Unlock()
			wg.Go(func() { defer conn.Close(); handle(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		over = true
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
}

// count returns how often a request came.
func (b *fakeBroker) count(key kmsg.Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[key]
}

func (b *fakeBroker) serve(conn net.Conn) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[:])
		if size < 10 || size > 64<<20 {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		resp := b.handle(body)
		if resp == nil {
			return
		}
		out := append([]byte{0, 0, 0, 0}, body[4:8]...)
		if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
			out = append(out, 0)
		}
		out = resp.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

func (b *fakeBroker) handle(body []byte) kmsg.Response {
	key, version := kmsg.Key(binary.BigEndian.Uint16(body)), int16(binary.BigEndian.Uint16(body[2:]))
	b.mu.Lock()
	b.asked[key]++
	b.mu.Unlock()
	if key == kmsg.ApiVersions {
		return b.apiVersions(version)
	}
	fn := b.answer[key]
	req := kmsg.RequestForKey(int16(key))
	if fn == nil || req == nil {
		return nil
	}
	req.SetVersion(version)
	rest := body[8:]
	if n := int16(binary.BigEndian.Uint16(rest)); n > 0 {
		rest = rest[2+n:]
	} else {
		rest = rest[2:]
	}
	if req.IsFlexible() {
		rest = rest[1:] // no tags in the header
	}
	if err := req.ReadFrom(rest); err != nil {
		return nil
	}
	resp := fn(req)
	if resp != nil {
		resp.SetVersion(version)
	}
	return resp
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
