package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// handlerFunc answers with the function.
type handlerFunc func(ctx context.Context, req *Request)

func (f handlerFunc) Serve(ctx context.Context, req *Request) { f(ctx, req) }

// echo answers with the request's rest.
func echo(_ context.Context, req *Request) { reply(req, req.Rest) }

func reply(req *Request, body []byte) {
	b := NewBytes(req.CorrelationID, len(body)+8)
	b.Buf.B = append(b.Buf.B, body...)
	b.Seal()
	req.Reply(b)
}

// start runs a server with one listener and returns its address.
func start(t *testing.T, opts Options) (*Server, string) {
	t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	s := New(opts)
	addr, err := s.Listen("TEST", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		s.Close()
		wg.Wait()
	})
	return s, addr.String()
}

// patience bounds every wait for what must happen. Only a test that fails waits so long.
const patience = time.Minute

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// request makes a frame.
func request(key int16, correlation int32, rest []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(headerBytes+len(rest)))
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	return append(b, rest...)
}

// answer reads a frame.
func answer(t *testing.T, c net.Conn) (correlation int32, body []byte) {
	t.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatalf("read answer: %v", err)
	}
	body = make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatalf("read answer: %v", err)
	}
	return int32(binary.BigEndian.Uint32(head[4:])), body
}

func wantClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read gave %d bytes and error %v, want a closed connection", n, err)
	}
}

func TestFramesOfEverySize(t *testing.T) {
	_, addr := start(t, Options{Handler: handlerFunc(echo)})
	c := dial(t, addr)
	for i, size := range []int{0, 1, 400, 501, 504, 505, 512, 4096, firstFrameBytes, 100_000, 1 << 20, 5 << 20, 3, 1 << 20} {
		want := bytes.Repeat([]byte{byte(i + 1)}, size)
		go func() { _, _ = c.Write(request(0, int32(i), want)) }()
		if corr, got := answer(t, c); corr != int32(i) || !bytes.Equal(got, want) {
			t.Fatalf("size %d: answer %d of %d bytes differs", size, corr, len(got))
		}
	}
}

// TestPiecemeal sends several frames byte by byte.
func TestPiecemeal(t *testing.T) {
	_, addr := start(t, Options{Handler: handlerFunc(echo)})
	c := dial(t, addr)
	stream := append(request(1, 1, []byte("first")), request(2, 2, bytes.Repeat([]byte("b"), 700))...)
	go func() {
		for i := range stream {
			if _, err := c.Write(stream[i : i+1]); err != nil {
				return
			}
		}
	}()
	for want := int32(1); want <= 2; want++ {
		if got, _ := answer(t, c); got != want {
			t.Fatalf("answer %d, want %d", got, want)
		}
	}
}

func TestImpossibleSizesCloseAtOnce(t *testing.T) {
	called := make(chan struct{}, 1)
	_, addr := start(t, Options{MaxRequestBytes: 1 << 20, Handler: handlerFunc(func(ctx context.Context, req *Request) {
		called <- struct{}{}
		echo(ctx, req)
	})})
	for _, size := range []int32{-1, -1 << 31, 0, 7, 1<<20 + 1, 1<<31 - 1} {
		c := dial(t, addr)
		if _, err := c.Write(binary.BigEndian.AppendUint32(nil, uint32(size))); err != nil {
			t.Fatal(err)
		}
		wantClosed(t, c)
	}
	if len(called) > 0 {
		t.Error("a frame of impossible size reached the handler")
	}
}

// TestClaimedSizeCostsNothing opens many connections that announce 100 MiB and send nothing.
func TestClaimedSizeCostsNothing(t *testing.T) {
	s, addr := start(t, Options{Handler: handlerFunc(echo)})
	const conns = 200
	before := heap()
	for range conns {
		c := dial(t, addr)
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, 100<<20), "only a few bytes"...)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, func() bool { return s.Connections() == conns })
	if used := heap() - before; used > conns*4*firstFrameBytes {
		t.Errorf("%d connections that claim 100 MiB each cost %d bytes", conns, used)
	}
}

// TestFrameMemoryIsBounded lets connections fill what all frames together may hold: the next one is closed, and
// when the memory is free again large frames go through.
func TestFrameMemoryIsBounded(t *testing.T) {
	const size = 1 << 20
	s, addr := start(t, Options{MaxFrameBytes: 3*size + size/2, Handler: handlerFunc(echo)})
	frame := request(0, 1, make([]byte, size))
	var held []net.Conn
	for i := range 3 {
		c := dial(t, addr)
		held = append(held, c)
		if _, err := c.Write(frame[:len(frame)-1]); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return s.frameBytes.Load() >= int64(i+1)*size })
	}
	over := dial(t, addr)
	_, _ = over.Write(frame)
	if n, err := io.Copy(io.Discard, over); n != 0 && err == nil {
		t.Fatalf("a frame beyond the limit was answered with %d bytes", n)
	}
	for _, c := range held {
		go func() { _, _ = c.Write(frame[len(frame)-1:]) }()
		answer(t, c)
	}
	await(t, func() bool { return s.frameBytes.Load() == 0 })
	last := dial(t, addr)
	go func() { _, _ = last.Write(frame) }()
	answer(t, last)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// await polls an observed condition.
func await(t *testing.T, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatal("condition not met in time")
		case <-tick.C:
		}
	}
}

// TestOrder answers later requests first; on the wire they must come in order.
func TestOrder(t *testing.T) {
	const n = 50
	var mu sync.Mutex
	var held []*Request
	release := make(chan struct{})
	_, addr := start(t, Options{Handler: handlerFunc(func(ctx context.Context, req *Request) {
		if req.Key == 1 {
			echo(ctx, req) // at once, though earlier ones are still held
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if held = append(held, req); len(held) == n {
			close(release)
		}
	})})
	c := dial(t, addr)
	for i := range n {
		if _, err := c.Write(append(request(0, int32(2*i), nil), request(1, int32(2*i+1), nil)...)); err != nil {
			t.Fatal(err)
		}
	}
	<-release
	var wg sync.WaitGroup
	for i := n - 1; i >= 0; i-- {
		wg.Go(func() { reply(held[i], nil) })
	}
	for want := range int32(2 * n) {
		if got, _ := answer(t, c); got != want {
			t.Fatalf("answer %d, want %d", got, want)
		}
	}
	wg.Wait()
}

func TestNoReplyKeepsOrderAndAbortHangsUp(t *testing.T) {
	_, addr := start(t, Options{Handler: handlerFunc(func(ctx context.Context, req *Request) {
		switch req.Key {
		case 0:
			echo(ctx, req)
		case 1:
			req.NoReply()
		default:
			req.Abort()
		}
	})})
	c := dial(t, addr)
	stream := append(request(0, 1, nil), request(1, 2, nil)...)
	stream = append(append(stream, request(0, 3, nil)...), request(9, 4, nil)...)
	if _, err := c.Write(stream); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int32{1, 3} {
		if got, _ := answer(t, c); got != want {
			t.Fatalf("answer %d, want %d", got, want)
		}
	}
	wantClosed(t, c)
}

// countedBody counts its releases.
type countedBody struct {
	Bytes
	released chan struct{}
}

func (b countedBody) Release() {
	b.Bytes.Release()
	b.released <- struct{}{}
}

// TestReleaseAfterClientLeft answers a request whose client has gone: its body must be released all the same.
func TestReleaseAfterClientLeft(t *testing.T) {
	got := make(chan *Request, 2)
	s, addr := start(t, Options{Handler: handlerFunc(func(_ context.Context, req *Request) { got <- req })})
	c := dial(t, addr)
	if _, err := c.Write(append(request(0, 1, nil), request(0, 2, nil)...)); err != nil {
		t.Fatal(err)
	}
	first, second := <-got, <-got
	released := make(chan struct{}, 2)
	body := func() Body { return countedBody{NewBytes(0, 8), released} }
	second.Reply(body()) // before the client leaves, but not first in the queue
	c.Close()
	await(t, func() bool { return s.Connections() == 0 })
	first.Reply(body()) // after it left
	for range 2 {
		select {
		case <-released:
		case <-time.After(patience):
			t.Fatal("a body was not released")
		}
	}
}

// TestBackpressure stops reading when too many answers are outstanding.
func TestBackpressure(t *testing.T) {
	var mu sync.Mutex
	var held []*Request
	_, addr := start(t, Options{Handler: handlerFunc(func(_ context.Context, req *Request) {
		mu.Lock()
		held = append(held, req)
		mu.Unlock()
	})})
	c := dial(t, addr)
	const n = 2 * pendingMax
	go func() {
		for i := range n {
			if _, err := c.Write(request(0, int32(i), nil)); err != nil {
				return
			}
		}
	}()
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(held) }
	await(t, func() bool { return count() == pendingMax })
	for i := range n {
		await(t, func() bool { return count() > i })
		if count() > i+pendingMax {
			t.Fatalf("%d requests are outstanding, the limit is %d", count()-i, pendingMax)
		}
		mu.Lock()
		req := held[i]
		mu.Unlock()
		reply(req, nil)
		if got, _ := answer(t, c); got != int32(i) {
			t.Fatalf("answer %d, want %d", got, i)
		}
	}
}

// TestSlowReader cuts off a client that does not take its answers.
func TestSlowReader(t *testing.T) {
	big := make([]byte, 4<<20)
	s, addr := start(t, Options{WriteTimeout: 200 * time.Millisecond, Handler: handlerFunc(func(_ context.Context, req *Request) { reply(req, big) })})
	c := dial(t, addr)
	if tc, ok := c.(*net.TCPConn); ok {
		_ = tc.SetReadBuffer(4096)
	}
	for i := range 4 {
		if _, err := c.Write(request(0, int32(i), nil)); err != nil {
			break
		}
	}
	await(t, func() bool { return s.Connections() == 0 })
}

func TestIdleConnectionIsClosed(t *testing.T) {
	const idle = 50 * time.Millisecond
	s, addr := start(t, Options{IdleTimeout: idle, Handler: handlerFunc(echo)})
	begin := time.Now()
	c := dial(t, addr)
	wantClosed(t, c)
	if took := time.Since(begin); took < idle {
		t.Errorf("closed after %v, before it was idle for %v", took, idle)
	}
	await(t, func() bool { return s.Connections() == 0 })
}

func TestLimits(t *testing.T) {
	_, addr := start(t, Options{MaxConnectionsPerIP: 2, Handler: handlerFunc(echo)})
	for i := range 2 {
		c := dial(t, addr)
		if _, err := c.Write(request(0, int32(i), nil)); err != nil {
			t.Fatal(err)
		}
		answer(t, c)
	}
	wantClosed(t, dial(t, addr))
}

// TestDrain lets the answer of a request in progress leave, and closes idle connections.
func TestDrain(t *testing.T) {
	got := make(chan *Request, 1)
	s, addr := start(t, Options{Handler: handlerFunc(func(_ context.Context, req *Request) { got <- req })})
	idle, busy := dial(t, addr), dial(t, addr)
	if _, err := busy.Write(request(0, 5, nil)); err != nil {
		t.Fatal(err)
	}
	req := <-got
	drained := make(chan struct{})
	go func() { s.Drain(t.Context()); close(drained) }()
	wantClosed(t, idle)
	select {
	case <-drained:
		t.Fatal("drained before the request was answered")
	default:
	}
	reply(req, []byte("done"))
	if corr, body := answer(t, busy); corr != 5 || string(body) != "done" {
		t.Fatalf("answer %d %q", corr, body)
	}
	wantClosed(t, busy)
	<-drained
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still accepting after Drain")
	}
}

// TestIdleConnectionsAreCheap bounds the memory of many idle connections.
func TestIdleConnectionsAreCheap(t *testing.T) {
	const conns = 2000
	s, addr := start(t, Options{IdleTimeout: time.Hour, Handler: handlerFunc(echo)})
	before := heap() + stacks()
	for range conns {
		c := dial(t, addr)
		if _, err := c.Write(request(0, 1, nil)); err != nil {
			t.Fatal(err)
		}
		answer(t, c)
	}
	if s.Connections() != conns {
		t.Fatalf("%d connections", s.Connections())
	}
	per := (heap() + stacks() - before) / conns
	t.Logf("%d bytes per connection, both ends", per)
	if per > 16<<10 {
		t.Errorf("an idle connection costs %d bytes", per)
	}
}

func stacks() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}

func BenchmarkEchoSmall(b *testing.B) {
	s := New(Options{Handler: handlerFunc(echo), Logger: slog.New(slog.DiscardHandler), IdleTimeout: time.Minute, WriteTimeout: time.Minute})
	addr, err := s.Listen("TEST", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Run(b.Context()) }()
	defer s.Close()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	frame := request(0, 1, make([]byte, 100))
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf[:108]); err != nil {
			b.Fatal(err)
		}
	}
}
