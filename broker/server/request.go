package server

import (
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"
)

// headerBytes is the fixed part of a request header: key, version, correlation id.
const headerBytes = 8

// Handler answers requests. Serve is called in the connection's goroutine, one request at a time. It must
// lead to exactly one call of Reply, NoReply or Abort on req, now or later.
// ctx ends when the server drains.
type Handler interface {
	Serve(ctx context.Context, req *Request)
}

// Body is an answer on its way out: WriteTo sends the whole frame, its size prefix included. Release is called
// exactly once, whether or not it was sent.
type Body interface {
	io.WriterTo
	Release()
}

// Request is one request frame.
type Request struct {
	Key           int16
	Version       int16
	CorrelationID int32
	// Rest is the frame after the correlation id: client id, header tags and body. It aliases pooled memory
	// when ReleaseFrame is to be used; otherwise it belongs to the request.
	Rest []byte
	Conn *Conn

	frame *Buffer
	state atomic.Uint32
	body  Body
	next  *Request // in the connection's queue
}

// The states of a Request: being served by the reader; left unanswered by the reader; answered; its
// connection is gone.
const (
	serving uint32 = iota
	detached
	answered
	abandoned
)

// Reply answers with body.
func (r *Request) Reply(body Body) { r.finish(body) }

// NoReply ends the request without an answer, as acks=0 asks.
func (r *Request) NoReply() { r.finish(nothing{}) }

// Abort ends the request and closes the connection after the answers before it are sent.
func (r *Request) Abort() { r.finish(hangup{}) }

// Answered reports whether Reply, NoReply or Abort was called.
func (r *Request) Answered() bool { return r.state.Load() >= answered }

func (r *Request) finish(body Body) {
	r.body = body
	switch r.state.Swap(answered) {
	case detached:
		r.Conn.flushFromElsewhere()
	case abandoned:
		body.Release()
	}
}

// ReleaseFrame gives the frame's memory back to the pool. Nothing may refer to Rest, or to bytes decoded from
// it, afterwards. A Handler that keeps such bytes does not call it, and the garbage collector does the rest.
func (r *Request) ReleaseFrame() {
	r.Rest = nil
	r.frame.Release()
	r.frame = nil
}

// nothing is the Body of a request without an answer.
type nothing struct{}

func (nothing) WriteTo(io.Writer) (int64, error) { return 0, nil }
func (nothing) Release()                         {}

// hangup is the Body that ends the connection.
type hangup struct{ nothing }

func (hangup) WriteTo(io.Writer) (int64, error) { return 0, errHangup }

// Bytes is a Body that is one buffer, written by whoever encodes an answer.
type Bytes struct{ Buf *Buffer }

// NewBytes starts a frame with room for n bytes: the size prefix, to be filled by Seal, and the correlation id.
func NewBytes(correlation int32, n int) Bytes {
	b := GetBuffer(n)
	b.B = append(b.B, 0, 0, 0, 0)
	b.B = binary.BigEndian.AppendUint32(b.B, uint32(correlation))
	return Bytes{Buf: b}
}

// Seal fills the size prefix.
func (b Bytes) Seal() { binary.BigEndian.PutUint32(b.Buf.B, uint32(len(b.Buf.B)-4)) }

// WriteTo sends the frame.
func (b Bytes) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.Buf.B)
	return int64(n), err
}

// Release gives the buffer back.
func (b Bytes) Release() { b.Buf.Release() }
