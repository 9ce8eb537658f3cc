package offline

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

func entry(relative, position uint32) []byte {
	return be.AppendUint32(be.AppendUint32(nil, relative), position)
}

func timeEntry(ts uint64, relative uint32) []byte {
	return be.AppendUint32(be.AppendUint64(nil, ts), relative)
}

func TestOffsetIndex(t *testing.T) {
	a, b, c := v2(t, 100, None, 0, 1, "one", "two"), v2(t, 102, None, 0, 9, "three"), v2(t, 103, None, 0, 5, "four")
	log := segment(a, b, c)
	atB, atC := uint32(len(a)), uint32(len(a)+len(b))
	for _, tc := range []struct {
		name    string
		index   []byte
		entries int
		damage  []string // position and a part of the cause
	}{
		{"sound", segment(entry(2, atB), entry(3, atC)), 2, nil},
		{"preallocated", segment(entry(3, atC), make([]byte, 800)), 1, nil},
		{"empty and preallocated", make([]byte, 800), 0, nil},
		{"cut", segment(entry(2, atB), entry(3, atC)[:5]), 1, []string{"8 the file ends 5 bytes into an entry"}},
		{"not at a batch", segment(entry(2, atB+1)), 1, []string{"0 no batch begins at position"}},
		{"behind the log", segment(entry(2, atB), entry(9, 5000)), 2, []string{"8 the log ends before position 5000"}},
		{"offset too small", segment(entry(1, atB)), 1, []string{"0 the batch at position"}},
		{"goes back", segment(entry(3, atC), entry(2, atB)), 2, []string{"8 its offset is not above"}},
		{"zeros inside", segment(entry(2, atB), make([]byte, 8), entry(3, atC)), 1, []string{"8 an entry of zeros with others behind it"}},
	} {
		r := NewSegmentReader(bytes.NewReader(log), int64(len(log)), SegmentOptions{BaseOffset: 100, NoCRC: true})
		report, err := OffsetIndex(bytes.NewReader(tc.index), int64(len(tc.index)), 100, r, func(*IndexEntry) error { return nil })
		checkReport(t, tc.name, report, err, tc.entries, tc.damage)
	}
}

func checkReport(t *testing.T, name string, r *IndexReport, err error, entries int, damage []string) {
	t.Helper()
	if err != nil || r.Entries != int64(entries) || len(r.Damage) != len(damage) {
		t.Errorf("%s: %+v %v", name, r, err)
		return
	}
	for i, d := range r.Damage {
		if got := fmt.Sprintf("%d %s", d.Position, d.Cause); !strings.HasPrefix(got, damage[i]) {
			t.Errorf("%s: %s, want %s", name, got, damage[i])
		}
	}
}

func TestTimeIndex(t *testing.T) {
	log := segment(v2(t, 100, None, 0, 1000, "one", "two"), v2(t, 102, None, 0, 3000, "three"), v2(t, 103, None, 0, 2000, "four"), v2(t, 104, None, 0, 4000, "five"))
	for _, tc := range []struct {
		name    string
		index   []byte
		entries int
		damage  []string
	}{
		{"sound", segment(timeEntry(1001, 1), timeEntry(3000, 2), timeEntry(4000, 4), make([]byte, 120)), 3, nil},
		{"later offset with the same maximum", timeEntry(3000, 3), 1, nil},
		{"a timestamp that is not there", timeEntry(2999, 2), 1, []string{"0 up to offset 102 the greatest timestamp of the log is 3000"}},
		{"offset too small", timeEntry(3000, 1), 1, []string{"0 up to offset 101"}},
		{"behind the log", timeEntry(4000, 9), 1, []string{"0 the log ends at offset 104"}},
		{"goes back", segment(timeEntry(3000, 2), timeEntry(3000, 3)), 2, []string{"12 its timestamp is not above"}},
	} {
		r := NewSegmentReader(bytes.NewReader(log), int64(len(log)), SegmentOptions{BaseOffset: 100, NoCRC: true})
		report, err := TimeIndex(bytes.NewReader(tc.index), int64(len(tc.index)), 100, r, func(*IndexEntry) error { return nil })
		checkReport(t, tc.name, report, err, tc.entries, tc.damage)
	}
}

func aborted(version uint16, pid, first, last, lso uint64) []byte {
	b := be.AppendUint16(nil, version)
	for _, v := range []uint64{pid, first, last, lso} {
		b = be.AppendUint64(b, v)
	}
	return b
}

func TestTxnIndex(t *testing.T) {
	sound := segment(aborted(0, 7, 10, 20, 15), aborted(0, 8, 12, 30, 31))
	var got []AbortedTxn
	report, err := TxnIndex(bytes.NewReader(sound), int64(len(sound)), func(a *AbortedTxn) error { got = append(got, *a); return nil })
	checkReport(t, "sound", report, err, 2, nil)
	if got[1].ProducerID != 8 || got[1].FirstOffset != 12 || got[1].LastOffset != 30 || got[1].LastStableOffset != 31 {
		t.Errorf("%+v", got)
	}
	bad := segment(aborted(0, 7, 10, 20, 15), aborted(3, 8, 12, 30, 31), aborted(0, 8, 12, 4, 31))[:100]
	report, err = TxnIndex(bytes.NewReader(bad), int64(len(bad)), func(*AbortedTxn) error { return nil })
	checkReport(t, "bad", report, err, 2, []string{"34 version 3", "68 the file ends 32 bytes into"})
}

func snapshot(count uint32, producers ...uint64) []byte {
	b := be.AppendUint32(nil, count)
	for _, p := range producers {
		b = be.AppendUint64(b, p)
		b = be.AppendUint16(b, 2)
		b = be.AppendUint32(b, 77)
		b = be.AppendUint64(b, 1000)
		b = be.AppendUint32(b, 4)
		b = be.AppendUint64(b, 1234567)
		b = be.AppendUint32(b, 5)
		b = be.AppendUint64(b, ^uint64(0))
	}
	head := be.AppendUint16(nil, 1)
	return append(be.AppendUint32(head, crc32.Checksum(b, castagnoli)), b...)
}

func TestProducerSnapshot(t *testing.T) {
	sound := snapshot(2, 41, 42)
	for _, tc := range []struct {
		name    string
		bytes   []byte
		entries int
		damage  []string
	}{
		{"sound", sound, 2, nil},
		{"empty", snapshot(0), 0, nil},
		{"cut", sound[:70], 1, []string{"56 it promises 2 producers and has room for 1"}},
		{"longer", append(snapshot(1, 41), 0), 1, []string{"56 1 bytes follow"}},
		{"bit rot", append(snapshot(1, 41)[:20], snapshot(1, 43)[20:]...), 1, nil},
		{"short", sound[:9], 0, []string{"0 9 bytes are less"}},
		{"version", append([]byte{0, 9}, sound[2:]...), 0, []string{"0 version 9"}},
	} {
		if tc.name == "bit rot" {
			tc.bytes[30] ^= 1
			tc.damage = []string{"0 the checksum is"}
		}
		var last ProducerState
		report, err := ProducerSnapshot(bytes.NewReader(tc.bytes), int64(len(tc.bytes)), func(p *ProducerState) error { last = *p; return nil })
		checkReport(t, tc.name, report, err, tc.entries, tc.damage)
		if tc.name == "sound" && last != (ProducerState{42, 2, 77, 1000, 4, 1234567, 5, -1}) {
			t.Errorf("%+v", last)
		}
	}
}

func TestCheckpoints(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string
		damage     []string
	}{
		{"replication-offset-checkpoint", "0\n2\na 0 5\nb.c_d 12 7\n", "a:0=5 b.c_d:12=7", nil},
		{"leader-epoch-checkpoint", "0\n1\n3 40\n", "3->40", nil},
		{"recovery-point-offset-checkpoint", "0\n0\n", "", nil},
		{"recovery-point-offset-checkpoint", "0\n2\na 0 5\n", "a:0=5", []string{"10 it promises 2 entries and has 1"}},
		{"recovery-point-offset-checkpoint", "0\n2\na 0 5\nb 0", "a:0=5", []string{"10 line 4: \"b 0\" is not TOPIC"}},
		{"recovery-point-offset-checkpoint", "0\n1\na 0 5\nb 0 1\n", "a:0=5", []string{"10 it promises 1 entries and has more"}},
		{"recovery-point-offset-checkpoint", "1\n1\na 0 5\n", "", []string{"0 line 1 \"1\" is not a version"}},
		{"recovery-point-offset-checkpoint", "\n", "", []string{"0 line 1 \"\" is not"}},
		{"cleaner-offset-checkpoint", "", "", nil}, // as brokers make them
		{"leader-epoch-checkpoint", "", "", nil},   // of a replica without records
		{".kafka_cleanshutdown", "", "", nil},      // before Apache Kafka 3.7
		{"quorum-state", "", "", []string{"0 unexpected end of JSON"}},
		{"meta.properties", "", "", []string{"0 it has no properties"}},
		{"meta.properties", "cluster.id=my\\:own\\=\\\\id\n", `cluster.id=my:own=\id`, nil},
		{"meta.properties", "=1\n", "", []string{"0 \"=1\" is not KEY"}},
		{"leader-epoch-checkpoint", "0\n1\nx 40\n", "", []string{"4 line 3: \"x 40\" is not EPOCH"}},
		{"meta.properties", "#\n#Sun\nversion=0\nbroker.id=1\ncluster.id=a=b\n", "version=0 broker.id=1 cluster.id=a=b", nil},
		{"partition.metadata", "version: 0\ntopic_id: HVmojrR2Tv-TQSYV1QhZnw", "version=0 topic_id=HVmojrR2Tv-TQSYV1QhZnw", nil},
		{"meta.properties", "\x00\x00", "", []string{"0 \"\\x00\\x00\" is not KEY"}},
		{".kafka_cleanshutdown", `{"version":0,"brokerEpoch":25}`, "brokerEpoch=25 version=0", nil},
		{"quorum-state", `{"vers`, "", []string{"0 unexpected end of JSON"}},
	} {
		format, ok := CheckpointFormatOf("/data/" + tc.name)
		if !ok {
			t.Fatal(tc.name)
		}
		var got []string
		report, err := ReadCheckpoint(strings.NewReader(tc.text), int64(len(tc.text)), format, func(c *Checkpoint) error {
			switch {
			case c.Key != "":
				got = append(got, c.Key+"="+c.Value)
			case c.Topic != "":
				got = append(got, fmt.Sprintf("%s:%d=%d", c.Topic, c.Partition, c.Offset))
			default:
				got = append(got, fmt.Sprintf("%d->%d", c.Epoch, c.Offset))
			}
			return nil
		})
		checkReport(t, tc.name+" "+tc.text, report, err, len(got), tc.damage)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if _, ok := CheckpointFormatOf("00000.log"); ok {
		t.Error("a segment is no checkpoint")
	}
}

// TestTimeIndexOfTheEpoch: clients that write records of timestamp 0 make brokers begin a time index with an entry of zeros.
func TestTimeIndexOfTheEpoch(t *testing.T) {
	unused := make([]byte, 36)
	for _, tc := range []struct {
		name    string
		index   []byte
		entries int
		unused  int64
		damage  []string
	}{
		{"the only one of a closed segment", timeEntry(0, 0), 1, 0, nil},
		{"others behind it", segment(timeEntry(0, 0), timeEntry(5, 5), unused), 2, 36, nil},
		{"nothing but zeros", segment(timeEntry(0, 0), unused), 0, 48, nil},
		{"not the first", segment(timeEntry(5, 5), timeEntry(0, 0), timeEntry(7, 7)), 1, 0, []string{"12 an entry of zeros with others behind it"}},
	} {
		report, err := TimeIndex(bytes.NewReader(tc.index), int64(len(tc.index)), 100, nil, func(*IndexEntry) error { return nil })
		checkReport(t, tc.name, report, err, tc.entries, tc.damage)
		if report.Unused != tc.unused {
			t.Errorf("%s: %d bytes are unused", tc.name, report.Unused)
		}
	}
	zeros := segment(make([]byte, 8), []byte{0, 0, 0, 5, 0, 0, 1, 0})
	report, err := OffsetIndex(bytes.NewReader(zeros), int64(len(zeros)), 100, nil, func(*IndexEntry) error { return nil })
	checkReport(t, "an offset index never begins with zeros", report, err, 0, []string{"0 an entry of zeros with others behind it"})
}
