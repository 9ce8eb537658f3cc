package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// scripted is a broker that answers with fixed bytes and then hangs up.
type scripted struct{ io.Reader }

func (scripted) Write(b []byte) (int, error)      { return len(b), nil }
func (scripted) Close() error                     { return nil }
func (scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }

func connTo(t testing.TB, answer []byte) *Conn {
	t.Helper()
	dial := func(context.Context, string) (net.Conn, error) { return scripted{bytes.NewReader(answer)}, nil }
	c, err := Dial(t.Context(), dial, "broker:9092", "1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answerTo frames a response for the first request of a connection.
func answerTo(resp kmsg.Response, correlation int32) []byte {
	body := binary.BigEndian.AppendUint32(nil, uint32(correlation))
	if resp.IsFlexible() {
		body = append(body, 0)
	}
	body = resp.AppendTo(body)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// fetchRequest is the one whose answers are large.
func fetchRequest() kmsg.Request {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 15
	return req
}

func fetchAnswer(records []byte) *kmsg.FetchResponse {
	resp := fetchRequest().ResponseKind().(*kmsg.FetchResponse)
	part := kmsg.NewFetchResponseTopicPartition()
	part.RecordBatches = records
	topic := kmsg.NewFetchResponseTopic()
	topic.Partitions = append(topic.Partitions, part)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

func TestAnswersOfEverySize(t *testing.T) {
	var all []byte
	sizes := []int{0, 1, frameStepBytes - 200, frameStepBytes, 5*frameStepBytes + 3, 10, 3 * frameStepBytes}
	for i, size := range sizes {
		all = append(all, answerTo(fetchAnswer(bytes.Repeat([]byte{byte(i + 1)}, size)), int32(i+1))...)
	}
	for _, reuse := range []bool{false, true} {
		c := connTo(t, all)
		do := c.Do
		if reuse {
			do = c.DoReuse
		}
		for i, size := range sizes {
			resp, err := do(t.Context(), fetchRequest())
			if err != nil {
				t.Fatal(err)
			}
			got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
			if !bytes.Equal(got, bytes.Repeat([]byte{byte(i + 1)}, size)) {
				t.Fatalf("answer %d (reuse %v): %d bytes, want %d", i, reuse, len(got), size)
			}
		}
	}
}

// TestClaimedSizeCostsNothing: a peer that claims 1 GiB and sends nothing costs one step.
func TestClaimedSizeCostsNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := connTo(t, []byte{0x40, 0, 0, 0, 0, 0, 0, 1})
	if _, err := c.DoReuse(t.Context(), fetchRequest()); err == nil {
		t.Fatal("no error")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8*frameStepBytes {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestWrongAnswersBreakTheConnection(t *testing.T) {
	good := answerTo(fetchAnswer(nil), 1)
	wrongID := answerTo(fetchAnswer(nil), 2)
	for name, answer := range map[string][]byte{
		"nothing": nil, "cut": good[:len(good)-1], "size below 4": {0, 0, 0, 3, 0, 0, 0}, "size above the limit": {0x40, 0, 0, 1},
		"correlation id": wrongID, "no body": {0, 0, 0, 4, 0, 0, 0, 1},
	} {
		c := connTo(t, answer)
		if _, err := c.Do(t.Context(), fetchRequest()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := c.Do(t.Context(), fetchRequest()); err == nil {
			t.Errorf("%s: the connection is used again", name)
		}
	}
}

// FuzzAnswer gives arbitrary answers to each request that brokers send each other.
func FuzzAnswer(f *testing.F) {
	keys := []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.LeaderAndISR, kmsg.StopReplica, kmsg.UpdateMetadata,
		kmsg.ControlledShutdown, kmsg.OffsetForLeaderEpoch, kmsg.AlterPartition, kmsg.ElectLeaders, kmsg.ApiVersions}
	for i, key := range keys {
		req := kmsg.RequestForKey(key.Int16())
		req.SetVersion(req.MaxVersion())
		f.Add(uint8(i), uint8(req.MaxVersion()), answerTo(req.ResponseKind(), 1)[8:])
	}
	f.Add(uint8(0), uint8(15), answerTo(fetchAnswer([]byte("records")), 1)[8:])
	f.Fuzz(func(t *testing.T, which, version uint8, body []byte) {
		req := kmsg.RequestForKey(keys[int(which)%len(keys)].Int16())
		req.SetVersion(int16(version) % (req.MaxVersion() + 1))
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), 0, 0, 0, 1)
		resp, err := connTo(t, append(frame, body...)).Do(t.Context(), req)
		if (resp == nil) == (err == nil) {
			t.Fatalf("response %v and error %v", resp, err)
		}
	})
}
