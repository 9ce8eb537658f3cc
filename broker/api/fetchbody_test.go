package api

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// memSlice is a slice in memory; short cuts what it gives.
type memSlice struct {
	data     []byte
	short    int
	released *int
}

func (s memSlice) Size() int { return len(s.data) }
func (s memSlice) ReadInto(p []byte) (int, error) {
	return copy(p, s.data[:len(s.data)-s.short]), nil
}
func (s memSlice) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(s.data[:len(s.data)-s.short])
	return int64(n), err
}
func (s memSlice) SendTo(w rangeSender) (int64, bool, error) {
	if len(s.data)%2 == 0 { // some log is in no file of the operating system
		return 0, false, nil
	}
	n, err := w.(io.Writer).Write(s.data[:len(s.data)-s.short])
	return int64(n), true, err
}
func (s memSlice) Release() { *s.released++ }

// socket is a connection that sends files.
type socket struct{ bytes.Buffer }

func (*socket) CanSendFile() bool                            { return true }
func (*socket) SendFile(*os.File, int64, int) (int64, error) { return 0, io.ErrUnexpectedEOF }
func (s *socket) WriteMore(p []byte) (int, error)            { return s.Write(p) }

// TestFetchBodyEqualsKmsg compares the hand-written layout with the generated encoder, byte by byte, for every
// version that is served and for answers of every shape.
func TestFetchBodyEqualsKmsg(t *testing.T) {
	idA, idB := cluster.TopicID{1, 2, 3}, cluster.TopicID{9}
	big := bytes.Repeat([]byte("x"), chunkBytes+17)
	shapes := map[string][]fetchPartition{
		"empty": nil,
		"one without records": {
			{topic: "a", topicID: idA, partition: 3, err: 1, highWatermark: -1, lastStable: -1, logStart: -1},
		},
		"two topics": {
			{topic: "a", topicID: idA, partition: 0, highWatermark: 10, lastStable: 9, logStart: 1, records: memSlice{data: []byte("records-0")}},
			{topic: "a", topicID: idA, partition: 7, highWatermark: 11, lastStable: 11, committed: true, records: memSlice{data: []byte("records-7 are longer")}},
			{topic: "b", topicID: idB, partition: 1, highWatermark: 12, lastStable: 12},
		},
		"more than a chunk": {
			{topic: strings.Repeat("long", 60), topicID: idA, partition: 0, records: memSlice{data: []byte("small")}},
			{topic: strings.Repeat("long", 60), topicID: idA, partition: 1, records: memSlice{data: big}},
			{topic: "b", topicID: idB, partition: 2, records: memSlice{data: big[:chunkBytes-40]}},
			{topic: "b", topicID: idB, partition: 3, records: memSlice{data: big[:chunkBytes-40]}},
		},
		"diverging": {
			{topic: "a", topicID: idA, partition: 0, divergingEpoch: 4, divergingEnd: 1 << 40},
			{topic: "a", topicID: idA, partition: 1, err: 6, leader: 2, leaderEpoch: 5},
		},
	}
	nodes := []newLeaderNode{{id: 2, host: "host-2", port: 9093}, {id: 3, host: "h", port: 1}}
	for name, parts := range shapes {
		for version := fetchAPI.min; version <= fetchAPI.max; version++ {
			for _, withNodes := range []bool{false, true} {
				var ns []newLeaderNode
				if withNodes && version >= 16 {
					ns = nodes
				}
				released := 0
				mine := prepare(parts, version, &released)
				body := newFetchBody(77, version, 70, 12345, mine, ns)
				var got bytes.Buffer
				n, err := body.WriteTo(&got)
				var sock socket
				m, serr := body.WriteTo(&sock)
				if serr != nil || m != n || !bytes.Equal(sock.Bytes(), got.Bytes()) {
					t.Errorf("%s v%d: sent %d bytes to a socket, %d otherwise: %v", name, version, m, n, serr)
				}
				body.Release()
				if err != nil || n != int64(got.Len()) {
					t.Fatalf("%s v%d: wrote %d of %d bytes: %v", name, version, n, got.Len(), err)
				}
				if want := countRecords(parts); released != want {
					t.Errorf("%s v%d: released %d slices, want %d", name, version, released, want)
				}
				want := generated(77, version, 70, 12345, mine, ns)
				if !bytes.Equal(got.Bytes(), want) {
					t.Errorf("%s v%d nodes=%v: frame differs from the generated encoder (-want +got)\n%s", name, version, withNodes, cmp.Diff(clip(want), clip(got.Bytes())))
				}
			}
		}
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 200)] }

func countRecords(parts []fetchPartition) (n int) {
	for _, p := range parts {
		if p.records != nil {
			n++
		}
	}
	return n
}

// prepare sets what a version cannot carry to its default, and points the slices to the counter.
func prepare(parts []fetchPartition, version int16, released *int) []fetchPartition {
	out := append([]fetchPartition(nil), parts...)
	for i := range out {
		p := &out[i]
		if s, ok := p.records.(memSlice); ok {
			s.released = released
			p.records = s
		}
		if p.divergingEnd == 0 {
			p.divergingEpoch, p.divergingEnd = -1, -1
		}
		if p.leader == 0 {
			p.leader, p.leaderEpoch = -1, -1
		}
		if version < 12 {
			p.divergingEpoch, p.divergingEnd, p.leader, p.leaderEpoch = -1, -1, -1, -1
		}
	}
	return out
}

// generated encodes the same answer with kmsg.
func generated(correlation int32, version, code int16, session int32, parts []fetchPartition, nodes []newLeaderNode) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version, resp.ErrorCode, resp.SessionID = version, code, session
	for _, p := range parts {
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != p.topic {
			rt := kmsg.NewFetchResponseTopic()
			rt.Topic, rt.TopicID = p.topic, p.topicID
			resp.Topics = append(resp.Topics, rt)
		}
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.Partition, rp.ErrorCode, rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = p.partition, p.err, p.highWatermark, p.lastStable, p.logStart
		rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = p.divergingEpoch, p.divergingEnd
		rp.CurrentLeader.LeaderID, rp.CurrentLeader.LeaderEpoch = p.leader, p.leaderEpoch
		if p.committed {
			rp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		}
		rp.RecordBatches = []byte{}
		if p.records != nil {
			rp.RecordBatches = p.records.(memSlice).data
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, rp)
	}
	for _, n := range nodes {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port = n.id, n.host, n.port
		resp.Brokers = append(resp.Brokers, b)
	}
	out := []byte{0, 0, 0, 0, 0, 0, 0, byte(correlation)}
	if resp.IsFlexible() {
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	n := len(out) - 4
	out[0], out[1], out[2], out[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return out
}

// TestFetchBodyTruncatedLog says that a log that shrank under an answer ends the connection, not the frame.
func TestFetchBodyTruncatedLog(t *testing.T) {
	for _, size := range []int{100, chunkBytes + 5} {
		released := 0
		parts := []fetchPartition{{topic: "a", divergingEpoch: -1, divergingEnd: -1, leader: -1, leaderEpoch: -1,
			records: memSlice{data: make([]byte, size), short: 1, released: &released}}}
		body := newFetchBody(1, 17, 0, 0, parts, nil)
		_, err := body.WriteTo(io.Discard)
		if _, err := body.WriteTo(&socket{}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("size %d, to a socket: error %v; want ErrUnexpectedEOF", size, err)
		}
		body.Release()
		if !errors.Is(err, io.ErrUnexpectedEOF) || released != 1 {
			t.Errorf("size %d: error %v, released %d; want ErrUnexpectedEOF and 1", size, err, released)
		}
	}
}
