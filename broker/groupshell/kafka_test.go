package groupshell

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"kctl/broker/group"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// capture is a partition of __consumer_offsets as Apache Kafka 3.9.1 wrote it: commits without group
// management (in the newest version, and in version 3 with a retention), a dynamic group that came and went,
// a static group that stayed, a deleted group, a deleted offset, a committed and an aborted transaction.
const capture = "testdata/kafka-3.9.1/consumer_offsets.log"

func captured(t *testing.T) []record.Batch {
	t.Helper()
	raw, err := os.ReadFile(capture)
	if err != nil {
		t.Fatal(err)
	}
	var out []record.Batch
	for len(raw) > 0 {
		b, rest, err := record.Next(raw)
		if err != nil {
			t.Fatal(err)
		}
		out, raw = append(out, b), rest
	}
	return out
}

// TestLoadsWhatKafkaWrote: the state is what Apache Kafka's own coordinator told of it.
func TestLoadsWhatKafkaWrote(t *testing.T) {
	l := group.NewLoader()
	for _, b := range captured(t) {
		if skipped, last, err := loadBatch(l, b, nil); skipped != 0 || err != nil {
			t.Fatalf("batch at %d: %d skipped (%v), %v", b.BaseOffset(), skipped, last, err)
		}
	}
	s := group.NewShard(group.Config{MaxSize: 10})
	s.Install(l, time.UnixMilli(0), nil)
	var got []string
	for _, o := range s.List(nil, nil) {
		d := s.Describe(o.Group)
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %v %q %q", o.Group, o.State, o.ProtocolType, d.Protocol)))
		for _, m := range d.Members {
			got = append(got, fmt.Sprintf("  member %s %s %s", *m.InstanceID, m.ClientID, m.ClientHost))
		}
		for _, f := range s.FetchOffsets(o.Group, nil, true, true) {
			metadata, _, _ := strings.Cut(f.Metadata, "-")
			got = append(got, strings.TrimRight(fmt.Sprintf("  offset %v %d epoch %d %v %s", f.TP, f.Offset.Offset, f.LeaderEpoch, f.Code, metadata), " "))
		}
	}
	want := []string{
		`dyn Empty "consumer" ""`, "  offset t-0 2 epoch 0 NONE dyn",
		`plain Empty "" ""`, "  offset t-0 2 epoch 3 NONE",
		`retained Empty "" ""`, "  offset t-1 11 epoch -1 NONE",
		`static Stable "consumer" "range"`, "  member i-1 static-client /127.0.0.1", "  offset t-0 2 epoch 0 NONE i",
		`tx Empty "" ""`, "  offset t-0 100 epoch -1 NONE",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if f := s.FetchOffsets("plain", []cluster.TopicPartition{{Topic: "u"}}, false, true); f[0].Offset.Offset != -1 {
		t.Errorf("the deleted offset is back: %+v", f)
	}
}

// TestWritesWhatKafkaWrites: every record read and encoded again has the same bytes.
func TestWritesWhatKafkaWrites(t *testing.T) {
	kinds := make(map[string]int)
	for _, b := range captured(t) {
		if b.IsControl() {
			continue
		}
		it, err := b.Records(nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			r := it.Record()
			var key, value []byte
			kind := "offset"
			if r.Key[1] == groupKeyVersion {
				g, err := decodeGroup(r.Key, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				kind, key, value = "group", groupKey(g.Group), groupValue(g)
			} else {
				o, err := decodeOffset(r.Key, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				key, value = offsetKey(o), offsetValue(o)
			}
			switch {
			case r.Value == nil:
				kind += " tombstone"
			default:
				kind += fmt.Sprintf(" v%d", r.Value[1])
			}
			kinds[kind]++
			if !bytes.Equal(key, r.Key) || !bytes.Equal(value, r.Value) || (value == nil) != (r.Value == nil) {
				t.Errorf("offset %d, %s:\nkey   %x\nours  %x\nvalue %x\nours  %x", r.Offset, kind, r.Key, key, r.Value, value)
			}
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	for _, kind := range []string{"offset v1", "offset v3", "offset tombstone", "group v3"} {
		if kinds[kind] == 0 {
			t.Errorf("the capture has no %s: %v", kind, kinds)
		}
	}
}
