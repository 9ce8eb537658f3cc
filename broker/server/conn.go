package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// readAheadBytes is the connection's own buffer: whole small requests arrive in it with one system call.
	readAheadBytes = 512
	// firstFrameBytes is what a frame gets before its bytes arrive, on a connection that has not yet sent a
	// frame that large.
	firstFrameBytes = 16 << 10
	// pendingMax bounds the requests of one connection that wait for their answers.
	pendingMax = 128
	// largeFrameBytes is from where on a frame's API key is looked at before the rest is read.
	largeFrameBytes = 1 << 20
)

var (
	errHangup    = errors.New("request refused")
	errFrameSize = errors.New("impossible frame size")
	// errFrameMemory ends a connection whose frame would take more memory than all frames together may.
	errFrameMemory = errors.New("too much memory is held by requests")
)

// Conn is one client connection.
type Conn struct {
	ID       uint64
	Listener string // name of the listener that accepted it
	Remote   string // host of the client, without port

	// Software is what the client said of itself in ApiVersions (KIP-511); set and read by the Handler in the
	// connection's goroutine only.
	SoftwareName, SoftwareVersion string

	srv *Server
	nc  net.Conn

	// Owned by the reading goroutine.
	ahead        [readAheadBytes]byte
	aheadR       int   // read position in ahead
	aheadW       int   // write position in ahead
	frameMax     int   // largest frame received so far: earns memory up front
	reserved     int64 // bytes of the present frame that count against the server's limit
	readDeadline time.Time

	mu         sync.Mutex // guards the fields below
	room       sync.Cond  // signalled when pending falls or the connection dies
	head, tail *Request   // unanswered or unsent requests, oldest first
	pending    int
	writing    bool // a goroutine is sending; it alone touches the head until it clears this
	dead       bool
	writers    sync.WaitGroup

	// Owned by whoever is writing.
	writeDeadline time.Time
	out           *sender // made with the first answer that sends a file
}

// serve reads requests until the connection ends, and returns why.
func (c *Conn) serve(ctx context.Context) error {
	defer c.shutdown()
	for {
		req, err := c.read()
		if err != nil {
			if c.srv.draining.Load() {
				c.finishPending()
			}
			return err
		}
		if !c.enqueue(req) {
			return net.ErrClosed
		}
		c.srv.handler.Serve(ctx, req)
		c.unreserve()
		if !req.state.CompareAndSwap(serving, detached) {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if c.srv.draining.Load() {
			c.finishPending()
			return net.ErrClosed
		}
	}
}

// read returns the next frame.
func (c *Conn) read() (*Request, error) {
	if err := c.refreshReadDeadline(); err != nil {
		return nil, err
	}
	if err := c.fill(4); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(c.ahead[c.aheadR:])))
	if size < headerBytes || size > c.srv.opts.MaxRequestBytes {
		return nil, fmt.Errorf("%w %d", errFrameSize, size)
	}
	if err := c.refuseLarge(size); err != nil {
		return nil, err
	}
	c.aheadR += 4
	frame, err := c.readFrame(size)
	if err != nil {
		return nil, err
	}
	b := frame.B
	return &Request{
		Key:           int16(binary.BigEndian.Uint16(b)),
		Version:       int16(binary.BigEndian.Uint16(b[2:])),
		CorrelationID: int32(binary.BigEndian.Uint32(b[4:])),
		Rest:          b[headerBytes:],
		Conn:          c,
		frame:         frame,
	}, nil
}

// refuseLarge looks at the key of a large frame before memory is given to it.
func (c *Conn) refuseLarge(size int) error {
	if c.srv.opts.RequestBytesMax == nil || size <= largeFrameBytes {
		return nil
	}
	if err := c.fill(4 + 2); err != nil {
		return err
	}
	key := int16(binary.BigEndian.Uint16(c.ahead[c.aheadR+4:]))
	if most := c.srv.opts.RequestBytesMax(key); most > 0 && size > most+readAheadBytes {
		return fmt.Errorf("%w %d of a request with API key %d", errFrameSize, size, key)
	}
	return nil
}

// fill reads until ahead holds n unread bytes.
func (c *Conn) fill(n int) error {
	if c.aheadR == c.aheadW {
		c.aheadR, c.aheadW = 0, 0
	}
	if c.aheadR+n > len(c.ahead) {
		c.aheadW = copy(c.ahead[:], c.ahead[c.aheadR:c.aheadW])
		c.aheadR = 0
	}
	for c.aheadW-c.aheadR < n {
		m, err := c.nc.Read(c.ahead[c.aheadW:])
		c.aheadW += m
		if err != nil {
			if err == io.EOF && c.aheadW > c.aheadR {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// readFrame reads size bytes. Memory is taken as bytes arrive, doubling each time, unless this connection has
// already delivered a frame of that size.
func (c *Conn) readFrame(size int) (*Buffer, error) {
	first := min(size, max(firstFrameBytes, c.frameMax))
	if err := c.reserve(first); err != nil {
		return nil, err
	}
	frame := GetBuffer(first)
	n := copy(frame.B[:min(size, cap(frame.B))], c.ahead[c.aheadR:c.aheadW])
	c.aheadR += n
	frame.B = frame.B[:n]
	for len(frame.B) < size {
		if len(frame.B) == cap(frame.B) {
			bigger := min(size, 4*cap(frame.B))
			if err := c.reserve(bigger); err != nil {
				frame.Release()
				return nil, err
			}
			frame.grow(bigger)
		}
		m, err := c.nc.Read(frame.B[len(frame.B):min(size, cap(frame.B))])
		frame.B = frame.B[:len(frame.B)+m]
		if err != nil && len(frame.B) < size {
			frame.Release()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	if size > c.frameMax {
		c.frameMax = min(size, classBytes[len(classBytes)-1])
	}
	return frame, nil
}

// reserve counts the memory of the frame being read, n bytes in total now, against what all connections together
// may hold. Beyond that the connection is given up: waiting for room could wait for ever, since those who hold
// it may be waiting too.
func (c *Conn) reserve(n int) error {
	more := int64(n) - c.reserved
	if n <= firstFrameBytes || more <= 0 {
		return nil
	}
	if total := c.srv.frameBytes.Add(more); total > c.srv.opts.MaxFrameBytes {
		c.srv.frameBytes.Add(-more)
		return fmt.Errorf("%w: %d bytes are held", errFrameMemory, total)
	}
	c.reserved += more
	return nil
}

// unreserve is called when the frame has been dealt with.
func (c *Conn) unreserve() {
	if c.reserved > 0 {
		c.srv.frameBytes.Add(-c.reserved)
		c.reserved = 0
	}
}

// refreshReadDeadline moves the idle deadline when an eighth of it has passed, so that a busy connection does
// not set a timer for each request.
func (c *Conn) refreshReadDeadline() error {
	idle := c.srv.opts.IdleTimeout
	if idle <= 0 || c.srv.draining.Load() {
		return nil
	}
	now := time.Now()
	if until := now.Add(idle); until.Sub(c.readDeadline) > idle/8 {
		c.readDeadline = until
		if err := c.nc.SetReadDeadline(until); err != nil {
			return err
		}
		if c.srv.draining.Load() { // Drain may have set its own deadline in between
			return c.nc.SetReadDeadline(now)
		}
	}
	return nil
}

// enqueue puts req at the end of the queue, waiting for room. It reports false when the connection is dead.
func (c *Conn) enqueue(req *Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending >= pendingMax && !c.dead {
		c.room.Wait()
	}
	if c.dead {
		return false
	}
	if c.tail == nil {
		c.head = req
	} else {
		c.tail.next = req
	}
	c.tail = req
	c.pending++
	return true
}

// flush sends answered requests from the head of the queue, in order, unless another goroutine is at it.
func (c *Conn) flush() error {
	c.mu.Lock()
	if c.writing || c.dead {
		c.mu.Unlock()
		return nil
	}
	c.writing = true
	for !c.dead && c.head != nil && c.head.state.Load() == answered {
		req := c.head
		c.mu.Unlock()
		err := c.send(req.body)
		c.mu.Lock()
		if c.head = req.next; c.head == nil {
			c.tail = nil
		}
		c.pending--
		c.room.Signal()
		if err != nil {
			c.writing, c.dead = false, true
			c.room.Broadcast()
			c.mu.Unlock()
			c.nc.Close()
			return err
		}
	}
	c.writing = false
	c.mu.Unlock()
	return nil
}

// flushFromElsewhere is called when an answer was given after the reader had moved on. Sending may block on a
// slow client, so it gets its own goroutine and the caller, often a replication path, does not wait.
func (c *Conn) flushFromElsewhere() {
	c.mu.Lock()
	ready := !c.writing && !c.dead && c.head != nil && c.head.state.Load() == answered
	if ready {
		c.writers.Add(1)
	}
	c.mu.Unlock()
	if ready {
		go func() {
			defer c.writers.Done()
			_ = c.flush() // the error closed the connection, which the reader reports
		}()
	}
}

func (c *Conn) send(body Body) error {
	defer body.Release()
	if _, ok := body.(nothing); ok {
		return nil
	}
	_, err := body.WriteTo(stallGuard{c})
	return err
}

// stallGuard is the io.Writer that a Body sees: each Write must make it within the write timeout.
type stallGuard struct{ c *Conn }

// Write sends p.
func (g stallGuard) Write(p []byte) (int, error) {
	if err := g.c.refreshWriteDeadline(); err != nil {
		return 0, err
	}
	n, err := g.c.nc.Write(p)
	g.c.srv.metrics.bytesOut.Add(float64(n))
	return n, err
}

func (c *Conn) refreshWriteDeadline() error {
	timeout := c.srv.opts.WriteTimeout
	if timeout <= 0 {
		return nil
	}
	if until := time.Now().Add(timeout); until.Sub(c.writeDeadline) > timeout/8 {
		c.writeDeadline = until
		return c.nc.SetWriteDeadline(until)
	}
	return nil
}

// finishPending waits, while the server drains, until all answers are sent or Drain lost patience.
func (c *Conn) finishPending() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending > 0 && !c.dead {
		c.room.Wait()
	}
}

// kill ends the connection from outside.
func (c *Conn) kill() {
	c.mu.Lock()
	c.dead = true
	c.room.Broadcast()
	c.mu.Unlock()
	c.nc.Close()
}

// shutdown closes the connection and releases what was never sent, once no writer is left. Requests whose
// answer is still to come are told to release it themselves.
func (c *Conn) shutdown() {
	c.unreserve()
	c.kill()
	c.writers.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for req := c.head; req != nil; req = req.next {
		if req.state.Swap(abandoned) == answered {
			req.body.Release()
		}
	}
	c.head, c.tail, c.pending = nil, nil, 0
}
