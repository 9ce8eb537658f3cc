// Package peer is the connection from one broker to another: requests of Kafka's protocol in strict
// order, without the retries, reordering and metadata routing of a client library.
//
// A Conn is used by the controller's sender to each broker, by follower fetch streams and by forwarded
// requests. Each Conn may be shared by goroutines; requests are sent in the order in which Do takes the
// lock and answered in the same order. After any error the Conn is broken and must be replaced.
package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// frameBytesMax bounds the answer of a peer: a Fetch response is the largest that there is.
const frameBytesMax = 1 << 30

// frameStepBytes are given to a frame before any of it has arrived.
const frameStepBytes = 1 << 20

// readAheadBytes takes a whole small answer with one system call; the rest of a large one is read straight into its
// frame and not copied.
const readAheadBytes = 1 << 10

// Dialer opens the raw connection; net.Dialer in production, a pipe in tests.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// Conn is one connection. The zero value is unusable; see Dial.
type Conn struct {
	conn      net.Conn
	r         *bufio.Reader
	formatter *kmsg.RequestFormatter
	timeout   time.Duration

	mu          sync.Mutex // held for one whole exchange
	correlation int32      // guarded by mu
	out         []byte     // guarded by mu: encode buffer, reused
	in          []byte     // guarded by mu: DoReuse's frame buffer
	broken      error      // guarded by mu
}

// Dial connects to addr. clientID names this broker in the peer's log. timeout bounds each exchange.
func Dial(ctx context.Context, dial Dialer, addr, clientID string, timeout time.Duration) (*Conn, error) {
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		}
	}
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to broker at %s: %w", addr, err)
	}
	return &Conn{
		conn:      c,
		r:         bufio.NewReaderSize(c, readAheadBytes),
		formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)),
		timeout:   timeout,
	}, nil
}

// Do sends req, whose version is already set, and returns its response. The response owns its memory.
func (c *Conn) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchange(ctx, req, false)
}

// DoReuse is Do with a frame buffer that the next DoReuse on this Conn overwrites: byte slices of the
// response (records) must be consumed before that. Only one goroutine may use DoReuse on a Conn.
func (c *Conn) DoReuse(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchange(ctx, req, true)
}

// Close closes the connection; an exchange in progress ends with an error.
func (c *Conn) Close() error { return c.conn.Close() }

func (c *Conn) exchange(ctx context.Context, req kmsg.Request, reuse bool) (resp kmsg.Response, err error) {
	if c.broken != nil {
		return nil, fmt.Errorf("connection broke earlier: %w", c.broken)
	}
	defer func() {
		if err != nil {
			c.broken = err
			c.conn.Close()
		}
	}()
	deadline := time.Now().Add(c.timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	// A cancelled context must end a blocked read at once.
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	c.correlation++
	c.out = c.formatter.AppendRequest(c.out[:0], req, c.correlation)
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, causeOf(ctx, fmt.Errorf("send %s: %w", kmsg.NameForKey(req.Key()), err))
	}
	resp, err = c.read(req, reuse)
	return resp, causeOf(ctx, err)
}

func (c *Conn) read(req kmsg.Request, reuse bool) (kmsg.Response, error) {
	name := kmsg.NameForKey(req.Key())
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, fmt.Errorf("read answer to %s: %w", name, err)
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > frameBytesMax {
		return nil, fmt.Errorf("answer to %s has impossible size %d", name, size)
	}
	frame, err := c.frame(int(size), reuse)
	if err != nil {
		return nil, fmt.Errorf("read answer to %s: %w", name, err)
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != c.correlation {
		return nil, fmt.Errorf("answer to %s has correlation id %d, want %d", name, got, c.correlation)
	}
	resp := req.ResponseKind()
	body := kbin.Reader{Src: frame[4:]}
	if resp.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		kmsg.SkipTags(&body)
	}
	if !body.Ok() {
		return nil, fmt.Errorf("answer to %s v%d has a broken header", name, req.GetVersion())
	}
	if err := resp.ReadFrom(body.Src); err != nil {
		return nil, fmt.Errorf("decode answer to %s v%d: %w", name, req.GetVersion(), err)
	}
	return resp, nil
}

// frame reads a frame. Beyond the first bytes, memory is taken as they arrive: a claimed size alone costs nothing.
func (c *Conn) frame(size int, reuse bool) ([]byte, error) {
	var frame []byte
	if reuse {
		frame = c.in[:0]
	}
	frame = slices.Grow(frame, min(size, frameStepBytes))
	for n := 0; n < size; {
		if n == cap(frame) {
			frame = slices.Grow(frame[:n], min(size-n, n))
		}
		m, err := io.ReadFull(c.r, frame[n:min(size, cap(frame))])
		if n += m; err != nil {
			return nil, err
		}
		frame = frame[:n]
	}
	if reuse {
		c.in = frame
	}
	return frame, nil
}

// causeOf prefers the context's own error: a deadline forced by cancellation is not a timeout.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%v)", ctx.Err(), err)
	}
	return err
}
