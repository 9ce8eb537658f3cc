package api

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kbin"

	"kctl/broker/server"
	"kctl/zkutil/cluster"
)

// rangeSender is storage.FileSender: it takes a range of a file's pages.
type rangeSender = interface {
	SendFile(f *os.File, pos int64, n int) (int64, error)
}

// slice is what a fetch answer needs of storage.Slice.
type slice interface {
	Size() int
	ReadInto(p []byte) (int, error)
	WriteTo(w io.Writer) (int64, error)
	SendTo(w rangeSender) (n int64, ok bool, err error)
	Release()
}

// fetchPartition is one partition of a Fetch answer.
type fetchPartition struct {
	topic                     string
	topicID                   cluster.TopicID
	partition                 int32
	err                       int16
	committed                 bool // read_committed: an empty list of aborted transactions, not null
	highWatermark, lastStable int64
	logStart                  int64
	divergingEpoch            int32
	divergingEnd              int64
	leader, leaderEpoch       int32
	records                   slice
}

// newLeaderNode is an address of KIP-951.
type newLeaderNode struct {
	id   int32
	host string
	port int32
}

// fetchBody is a Fetch answer on its way out: the bytes of head, with the ranges of log files put in at the
// cuts.
//
//	head: |size corr ... partition header|...partition header|... tail|
//	                                     ^cut 0              ^cut 1
type fetchBody struct {
	head  *server.Buffer
	cuts  []cut
	total int // bytes of the frame, size prefix included
}

// cut says that records follow the first at bytes of head.
type cut struct {
	at      int
	records slice
}

// How much is gathered for one write. The large size saves system calls and was the cheapest of 64 KiB to 1 MiB
// in CPU per GB; slow clients that hold one each must not add up, so beyond largeChunks of them at once answers go
// out in small ones.
const (
	chunkBytes      = 1 << 20
	smallChunkBytes = 64 << 10
	largeChunks     = 256
)

// chunksInUse counts the large chunks of the process.
var chunksInUse atomic.Int32

// getChunk returns a buffer for up to total bytes, and what gives it back.
func getChunk(total int) (buf *server.Buffer, release func()) {
	size := min(total, chunkBytes)
	if size <= smallChunkBytes {
		buf = server.GetBuffer(size)
		return buf, buf.Release
	}
	if chunksInUse.Add(1) > largeChunks {
		size = smallChunkBytes
	}
	buf = server.GetBuffer(size)
	return buf, func() {
		chunksInUse.Add(-1)
		buf.Release()
	}
}

// newFetchBody encodes everything but the records. It owns the records of parts from now on. Parts of one topic
// must stand together.
func newFetchBody(correlation int32, version, errCode int16, sessionID int32, parts []fetchPartition, nodes []newLeaderNode) *fetchBody {
	frame := server.NewBytes(correlation, 64+96*len(parts))
	w := fetchWriter{b: frame.Buf.B, version: version, flexible: version >= 12}
	if w.flexible {
		w.b = append(w.b, 0) // header tags
	}
	w.b = kbin.AppendInt32(w.b, 0) // throttle time
	if version >= 7 {
		w.b = kbin.AppendInt16(w.b, errCode)
		w.b = kbin.AppendInt32(w.b, sessionID)
	}
	w.topics(parts)
	if w.flexible {
		w.nodes(nodes)
	}
	frame.Buf.B = w.b
	total := len(w.b)
	for _, c := range w.cuts {
		total += c.records.Size()
	}
	binary.BigEndian.PutUint32(w.b, uint32(total-4))
	return &fetchBody{head: frame.Buf, cuts: w.cuts, total: total}
}

// fetchWriter appends the pieces of an answer.
type fetchWriter struct {
	b        []byte
	version  int16
	flexible bool
	cuts     []cut
}

func (w *fetchWriter) arrayLen(n int) {
	if w.flexible {
		w.b = kbin.AppendCompactArrayLen(w.b, n)
	} else {
		w.b = kbin.AppendArrayLen(w.b, n)
	}
}

// topics writes the partitions, grouped by topic.
func (w *fetchWriter) topics(parts []fetchPartition) {
	groups := 0
	for i := range parts {
		if i == 0 || !sameTopic(&parts[i], &parts[i-1]) {
			groups++
		}
	}
	w.arrayLen(groups)
	for from := 0; from < len(parts); {
		to := from + 1
		for to < len(parts) && sameTopic(&parts[from], &parts[to]) {
			to++
		}
		switch {
		case w.version >= 13:
			w.b = kbin.AppendUuid(w.b, parts[from].topicID)
		case w.flexible:
			w.b = kbin.AppendCompactString(w.b, parts[from].topic)
		default:
			w.b = kbin.AppendString(w.b, parts[from].topic)
		}
		w.arrayLen(to - from)
		for i := from; i < to; i++ {
			w.partition(&parts[i])
		}
		if w.flexible {
			w.b = append(w.b, 0)
		}
		from = to
	}
}

func sameTopic(a, b *fetchPartition) bool { return a.topic == b.topic && a.topicID == b.topicID }

func (w *fetchWriter) partition(p *fetchPartition) {
	w.b = kbin.AppendInt32(w.b, p.partition)
	w.b = kbin.AppendInt16(w.b, p.err)
	w.b = kbin.AppendInt64(w.b, p.highWatermark)
	w.b = kbin.AppendInt64(w.b, p.lastStable)
	if w.version >= 5 {
		w.b = kbin.AppendInt64(w.b, p.logStart)
	}
	w.aborted(p.committed)
	if w.version >= 11 {
		w.b = kbin.AppendInt32(w.b, -1) // preferred read replica
	}
	n := 0
	if p.records != nil {
		n = p.records.Size()
	}
	if w.flexible {
		w.b = kbin.AppendUvarint(w.b, uint32(n)+1)
	} else {
		w.b = kbin.AppendInt32(w.b, int32(n))
	}
	if p.records != nil {
		w.cuts = append(w.cuts, cut{at: len(w.b), records: p.records})
	}
	if w.flexible {
		w.partitionTags(p)
	}
}

// aborted writes the list of aborted transactions: none yet.
func (w *fetchWriter) aborted(committed bool) {
	switch {
	case committed:
		w.arrayLen(0)
	case w.flexible:
		w.b = kbin.AppendCompactNullableArrayLen(w.b, 0, true)
	default:
		w.b = kbin.AppendNullableArrayLen(w.b, 0, true)
	}
}

func (w *fetchWriter) partitionTags(p *fetchPartition) {
	diverges, moved := p.divergingEpoch >= 0 || p.divergingEnd >= 0, p.leader >= 0 || p.leaderEpoch >= 0
	tags := byte(0)
	if diverges {
		tags++
	}
	if moved {
		tags++
	}
	w.b = append(w.b, tags)
	if diverges {
		w.b = append(w.b, 0, 4+8+1)
		w.b = kbin.AppendInt32(w.b, p.divergingEpoch)
		w.b = kbin.AppendInt64(w.b, p.divergingEnd)
		w.b = append(w.b, 0)
	}
	if moved {
		w.b = append(w.b, 1, 4+4+1)
		w.b = kbin.AppendInt32(w.b, p.leader)
		w.b = kbin.AppendInt32(w.b, p.leaderEpoch)
		w.b = append(w.b, 0)
	}
}

// nodes writes the tags of the whole answer: the addresses of new leaders, from version 16 on.
func (w *fetchWriter) nodes(nodes []newLeaderNode) {
	if len(nodes) == 0 || w.version < 16 {
		w.b = append(w.b, 0)
		return
	}
	var body []byte
	body = kbin.AppendCompactArrayLen(body, len(nodes))
	for _, n := range nodes {
		body = kbin.AppendInt32(body, n.id)
		body = kbin.AppendCompactString(body, n.host)
		body = kbin.AppendInt32(body, n.port)
		body = kbin.AppendCompactNullableString(body, nil)
		body = append(body, 0)
	}
	w.b = append(w.b, 1, 0)
	w.b = kbin.AppendUvarint(w.b, uint32(len(body)))
	w.b = append(w.b, body...)
}

// WriteTo sends the frame. Small pieces are gathered in a chunk; a range larger than a chunk is sent by itself.
// After an error part of the frame may be out, so the connection must be closed, and is.
func (f *fetchBody) WriteTo(w io.Writer) (int64, error) {
	if len(f.cuts) == 0 {
		n, err := w.Write(f.head.B)
		return int64(n), err
	}
	if fs, ok := w.(fileSender); ok && f.total >= len(f.cuts)*sendFileBytes && fs.CanSendFile() {
		return f.sendFiles(w, fs)
	}
	return f.gather(w)
}

// gather copies everything through chunks.
func (f *fetchBody) gather(w io.Writer) (int64, error) {
	buf, release := getChunk(f.total)
	defer release()
	g := gatherer{w: w, buf: buf}
	from := 0
	for i := range f.cuts {
		c := &f.cuts[i]
		if err := g.bytes(f.head.B[from:c.at]); err != nil {
			return g.sent, err
		}
		if err := g.records(c.records); err != nil {
			return g.sent, err
		}
		from = c.at
	}
	if err := g.bytes(f.head.B[from:]); err != nil {
		return g.sent, err
	}
	err := g.flush()
	return g.sent, err
}

// fileSender is a connection that takes ranges of files without their bytes passing through this process.
type fileSender interface {
	rangeSender
	CanSendFile() bool
	WriteMore(p []byte) (int, error)
}

// sendFileBytes is from where on, as the average of an answer's ranges, sending files costs less than gathering:
// it takes two system calls for each range.
const sendFileBytes = 32 << 10

// sendFiles sends the ranges straight from the page cache.
func (f *fetchBody) sendFiles(w io.Writer, fs fileSender) (sent int64, err error) {
	from := 0
	for i := range f.cuts {
		c := &f.cuts[i]
		n, err := fs.WriteMore(f.head.B[from:c.at])
		if sent += int64(n); err != nil {
			return sent, err
		}
		m, ok, err := c.records.SendTo(fs)
		if !ok {
			m, err = c.records.WriteTo(w)
		}
		if sent += m; err == nil && m != int64(c.records.Size()) {
			err = fmt.Errorf("log range of %d bytes gave %d: %w", c.records.Size(), m, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return sent, err
		}
		from = c.at
	}
	n, err := w.Write(f.head.B[from:])
	return sent + int64(n), err
}

// Release lets go of the log files and the head.
func (f *fetchBody) Release() {
	for i := range f.cuts {
		f.cuts[i].records.Release()
	}
	f.head.Release()
}

// gatherer fills a chunk and writes it when it is full.
type gatherer struct {
	w    io.Writer
	buf  *server.Buffer
	sent int64
}

func (g *gatherer) flush() error {
	if len(g.buf.B) == 0 {
		return nil
	}
	n, err := g.w.Write(g.buf.B)
	g.sent += int64(n)
	g.buf.B = g.buf.B[:0]
	return err
}

func (g *gatherer) room() int { return cap(g.buf.B) - len(g.buf.B) }

func (g *gatherer) bytes(b []byte) error {
	for len(b) > g.room() {
		n := g.room()
		g.buf.B = append(g.buf.B, b[:n]...)
		b = b[n:]
		if err := g.flush(); err != nil {
			return err
		}
	}
	g.buf.B = append(g.buf.B, b...)
	return nil
}

func (g *gatherer) records(s slice) error {
	n := s.Size()
	if n > g.room() {
		if err := g.flush(); err != nil {
			return err
		}
	}
	if n > g.room() {
		m, err := s.WriteTo(g.w)
		g.sent += m
		if err == nil && m != int64(n) {
			err = fmt.Errorf("log range of %d bytes gave %d: %w", n, m, io.ErrUnexpectedEOF)
		}
		return err
	}
	at := len(g.buf.B)
	m, err := s.ReadInto(g.buf.B[at : at+n])
	if err != nil {
		return fmt.Errorf("read log range: %w", err)
	}
	if m != n {
		return fmt.Errorf("log range of %d bytes gave %d: %w", n, m, io.ErrUnexpectedEOF)
	}
	g.buf.B = g.buf.B[:at+n]
	return nil
}
