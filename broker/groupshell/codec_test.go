package groupshell

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kctl/broker/group"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

func ptr(s string) *string { return &s }

var (
	goldenOffset = group.OffsetRecord{
		Group: "g", TP: cluster.TopicPartition{Topic: "t", Partition: 7},
		Offset: group.Offset{Offset: 42, LeaderEpoch: 3, Metadata: "hi", CommitTimestamp: 1000, ExpireTimestamp: -1},
	}
	goldenGroup = group.GroupRecord{
		Group: "g", ProtocolType: "consumer", Protocol: ptr("range"), Leader: ptr("m"), Generation: 5, StateTimestamp: 1000,
		Members: []group.MemberRecord{{
			MemberID: "m", InstanceID: ptr("i"), ClientID: "c", ClientHost: "/h", SessionTimeout: 10 * time.Second,
			RebalanceTimeout: 60 * time.Second, Subscription: []byte{1}, Assignment: []byte{2, 3},
		}},
	}
)

// TestGoldenRecords pins the bytes, put together by hand from the schemas of Apache Kafka 3.9
// (OffsetCommitKey, OffsetCommitValue, GroupMetadataKey and GroupMetadataValue).
func TestGoldenRecords(t *testing.T) {
	expiring := goldenOffset
	expiring.ExpireTimestamp = 2000
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"offset key v1", offsetKey(goldenOffset), "0001 0001 67 0001 74 00000007"},
		{"offset value v3", offsetValue(goldenOffset), "0003 000000000000002a 00000003 0002 6869 00000000000003e8"},
		{"offset value v1", offsetValue(expiring), "0001 000000000000002a 0002 6869 00000000000003e8 00000000000007d0"},
		{"group key v2", groupKey("g"), "0002 0001 67"},
		{"group value v3", groupValue(goldenGroup), "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0001 6d 00000000000003e8" +
			"00000001 0001 6d 0001 69 0001 63 0002 2f68 0000ea60 00002710 00000001 01 00000002 0203"},
		{"empty group value v3", groupValue(group.GroupRecord{Group: "g", ProtocolType: "consumer", Generation: 6, StateTimestamp: 1000}),
			"0003 0008 636f6e73756d6572 00000006 ffff ffff 00000000000003e8 00000000"},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(c.want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n got %x\nwant %x", c.name, c.got, want)
		}
	}
	if offsetValue(group.OffsetRecord{Tombstone: true}) != nil || groupValue(group.GroupRecord{Tombstone: true}) != nil {
		t.Error("a tombstone has a value")
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	expiring := goldenOffset
	expiring.ExpireTimestamp, expiring.LeaderEpoch = 2000, -1
	for _, want := range []group.OffsetRecord{goldenOffset, expiring} {
		got, err := decodeOffset(offsetKey(want), offsetValue(want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("offset: %v\n%s", err, diff)
		}
	}
	got, err := decodeGroup(groupKey("g"), groupValue(goldenGroup))
	if diff := cmp.Diff(goldenGroup, got); err != nil || diff != "" {
		t.Errorf("group: %v\n%s", err, diff)
	}
}

// TestOlderValues reads what brokers before 2.3 wrote.
func TestOlderValues(t *testing.T) {
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	o, err := decodeOffset(unhex("0000 0001 67 0001 74 00000007"), unhex("0000 000000000000002a 0002 6869 00000000000003e8"))
	if err != nil || o.Offset.Offset != 42 || o.LeaderEpoch != -1 || o.ExpireTimestamp != -1 {
		t.Errorf("offset value v0: %+v, %v", o, err)
	}
	g, err := decodeGroup(groupKey("g"), unhex("0000 0001 78 00000001 ffff ffff 00000001 0001 6d 0001 63 0002 2f68 00002710 00000000 00000000"))
	if err != nil || g.StateTimestamp != -1 || g.Members[0].RebalanceTimeout != 10*time.Second {
		t.Errorf("group value v0: %+v, %v", g, err)
	}
}

func TestUnknownRecordsAreSkipped(t *testing.T) {
	l := group.NewLoader()
	b := record.NewBuilder(record.None)
	b.Add(0, []byte{0, 9, 1, 2}, []byte("future key"))
	b.Add(0, nil, []byte("no key"))
	b.Add(0, offsetKey(goldenOffset), []byte{0, 99})
	b.Add(0, groupKey("g"), []byte{0})
	b.Add(0, offsetKey(goldenOffset), offsetValue(goldenOffset))
	raw, err := b.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	skipped, last, err := loadBatch(l, record.Batch(raw), nil)
	if skipped != 4 || last == nil || err != nil {
		t.Fatalf("skipped %d (%v), %v", skipped, last, err)
	}
	s := group.NewShard(group.Config{})
	s.Install(l, time.UnixMilli(0), nil)
	if got := s.FetchOffsets("g", nil, true, false); len(got) != 1 || got[0].Offset.Offset != 42 {
		t.Fatalf("the good record is lost: %+v", got)
	}
}

// TestTransactionalBatches loads offsets of transactions, ended by markers, in compressed batches too.
func TestTransactionalBatches(t *testing.T) {
	l := group.NewLoader()
	feed := func(c record.Compression, pid int64, o group.OffsetRecord) {
		b := record.NewBuilder(c)
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = pid, 0, 0, true
		b.Add(0, offsetKey(o), offsetValue(o))
		loadMust(t, l, b)
	}
	marker := func(pid int64, kind record.ControlType) {
		b := record.NewBuilder(record.None)
		b.ProducerID, b.ProducerEpoch = pid, 0
		b.AddControl(0, record.Control{Type: kind})
		loadMust(t, l, b)
	}
	committed, aborted, open := goldenOffset, goldenOffset, goldenOffset
	aborted.TP.Partition, open.TP.Partition = 8, 9
	feed(record.None, 1, committed)
	feed(record.Zstd, 2, aborted)
	feed(record.LZ4, 3, open)
	marker(1, record.ControlCommit)
	marker(2, record.ControlAbort)
	s := group.NewShard(group.Config{})
	s.Install(l, time.UnixMilli(0), nil)
	if got := s.FetchOffsets("g", nil, true, false); len(got) != 1 || got[0].TP.Partition != 7 {
		t.Fatalf("offsets: %+v", got)
	}
	if got := s.FetchOffsets("g", []cluster.TopicPartition{open.TP}, false, true); got[0].Code != group.UnstableOffsetCommit {
		t.Fatalf("open transaction: %+v", got)
	}
}

func loadMust(t *testing.T, l *group.Loader, b *record.Builder) {
	t.Helper()
	raw, err := b.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	if skipped, last, err := loadBatch(l, record.Batch(raw), nil); skipped != 0 || err != nil {
		t.Fatal(skipped, last, err)
	}
}

// FuzzLoadRecord: any key and value from a disk end in an error or in state that can be installed, and
// what was read is written again with the same meaning.
func FuzzLoadRecord(f *testing.F) {
	f.Add(offsetKey(goldenOffset), offsetValue(goldenOffset))
	f.Add(groupKey("g"), groupValue(goldenGroup))
	f.Add(groupKey("g"), []byte{0, 3, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		l := group.NewLoader()
		if err := loadRecord(l, key, value, group.NoProducer); err != nil {
			return
		}
		s := group.NewShard(group.Config{MaxSize: 3})
		effects := s.Install(l, time.UnixMilli(0), nil)
		for _, e := range effects {
			if a, ok := e.(group.ArmTimer); ok {
				effects = append(effects, s.Step(group.TimerFired{At: a.At, Timer: a.Timer}, nil)...)
			}
		}
		s.Step(group.Expire{At: time.UnixMilli(1 << 40)}, nil)
		s.Step(group.Unload{}, nil)
	})
}

// FuzzFeed: any bytes as a partition's log.
func FuzzFeed(f *testing.F) {
	b := record.NewBuilder(record.None)
	b.Add(0, groupKey("g"), groupValue(goldenGroup))
	raw, err := b.Build(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(bytes.Clone(raw), raw[:20]...))
	m := New(Options{Config: DefaultConfig()})
	f.Fuzz(func(t *testing.T, buf []byte) {
		next, err := m.feed(group.NewLoader(), buf, 0, 0)
		if err == nil && next < 0 {
			t.Fatalf("next offset %d", next)
		}
	})
}
