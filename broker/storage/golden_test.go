package storage

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/broker/record"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// testdata/kafka39 is a log directory that Apache Kafka 3.9.1 wrote and shut down: topic golden, one
// partition, 90 records in 30 batches of every codec, from 15 idempotent producers, five segments.
const goldenDir = "testdata/kafka39"

var goldenTP = cluster.TopicPartition{Topic: "golden", Partition: 0}

func goldenOptions(c *clock, logs *bytes.Buffer) ManagerOptions {
	o := testOptions(c, logs)
	o.ClusterID = "93ljbgXNRayCPhQj6dZSAw"
	o.Config = func(string) Config {
		cfg := DefaultConfig()
		cfg.SegmentBytes, cfg.IndexIntervalBytes = 1500, 200
		return cfg
	}
	return o
}

// copyGolden puts the directory into a memory file system.
func copyGolden(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem(nil)
	must(t, filepath.WalkDir(goldenDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := "/data" + strings.TrimPrefix(path, goldenDir)
		if d.IsDir() {
			return m.MkdirAll(to)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return writePlain(m, to, data)
	}))
	must(t, m.SyncAll("/"))
	return m
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenDir, name))
	must(t, err)
	return data
}

// goldenRecords unpacks the records of a log to one line each.
func logRecords(t testing.TB, l *Log) []string {
	t.Helper()
	var out []string
	for rest := readAllBytes(t, l, math.MaxInt64); len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(t, err)
		it, err := b.Records(nil, 1<<20)
		must(t, err)
		for it.Next() {
			out = append(out, string(it.Record().Key)+" "+string(it.Record().Value))
		}
		must(t, it.Err())
		rest = after
	}
	return out
}

func TestOpensKafkasDirectory(t *testing.T) {
	for _, clean := range []bool{true, false} {
		m := copyGolden(t)
		if !clean {
			must(t, m.Remove("/data/"+fileClean))
			must(t, m.Remove("/data/"+fileRecovery))
		}
		var logs bytes.Buffer
		mgr, err := OpenManager(m, []string{"/data"}, goldenOptions(&clock{ms: 1}, &logs))
		must(t, err)
		if strings.Contains(logs.String(), "level=WARN") {
			t.Fatalf("warnings: %s", logs.String())
		}
		l, ok := mgr.Log(goldenTP)
		if !ok || l.LogStartOffset() != 0 || l.LogEndOffset() != 90 || l.HighWatermark() != 90 || l.Segments() != 5 {
			t.Fatalf("clean %v: %d..%d, %d segments", clean, l.LogStartOffset(), l.LogEndOffset(), l.Segments())
		}
		if l.TopicID().String() != "e1-9SXDZRx2xe6ovy2F-Ag" {
			t.Fatalf("topic id %s", l.TopicID())
		}
		if e, ok := l.LatestEpoch(); !ok || e != 0 {
			t.Fatalf("epoch %d", e)
		}
		recs := logRecords(t, l)
		if len(recs) != 90 || !strings.HasPrefix(recs[89], "key-89 value 2 89 of the golden") {
			t.Fatalf("%d records, last %q", len(recs), recs[len(recs)-1])
		}
		checkLog(t, l)
		if got := l.ActiveProducers(); len(got) != 15 || got[0].LastSequence != 5 {
			t.Fatalf("%d producers: %+v", len(got), got)
		}
		mustAppend(t, l, batch(t, 2, 5), 3)
		must(t, mgr.Close())
	}
}

// TestRewritesKafkasFiles decodes each file of the golden directory and encodes it again to the same bytes.
func TestRewritesKafkasFiles(t *testing.T) {
	same := func(name string, got []byte) {
		t.Helper()
		if want := golden(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	for _, name := range []string{fileHW, fileRecovery, fileLogStart} {
		o, err := parseOffsets(golden(t, name))
		must(t, err)
		same(name, o.format())
	}
	e, err := parseEpochs(golden(t, "golden-0/"+fileEpochs))
	must(t, err)
	same("golden-0/"+fileEpochs, formatEpochs(e))
	id, err := parsePartitionMetadata(golden(t, "golden-0/"+filePartition))
	must(t, err)
	same("golden-0/"+filePartition, formatPartitionMetadata(id))
	mark, err := parseCleanMark(golden(t, fileClean))
	must(t, err)
	same(fileClean, formatCleanMark(cluster.BrokerEpoch(mark.BrokerEpoch)))
	meta, err := parseMeta(golden(t, fileMeta))
	must(t, err)
	if meta.BrokerID != 1 || meta.ClusterID != "93ljbgXNRayCPhQj6dZSAw" {
		t.Errorf("meta %+v", meta)
	}
	snaps, err := filepath.Glob(filepath.Join(goldenDir, "golden-0", "*"+extSnapshot))
	must(t, err)
	if len(snaps) != 5 {
		t.Fatalf("%d snapshots", len(snaps))
	}
	for _, name := range snaps {
		name = "golden-0/" + filepath.Base(name)
		entries, err := decodeSnapshot(golden(t, name))
		must(t, err)
		same(name, encodeSnapshot(entries))
	}
}

// TestIndexesLikeKafka appends Kafka's own batches and expects Kafka's own index files.
func TestIndexesLikeKafka(t *testing.T) {
	src := copyGolden(t)
	mgr, err := OpenManager(src, []string{"/data"}, goldenOptions(&clock{ms: 1}, nil))
	must(t, err)
	from, _ := mgr.Log(goldenTP)
	dst := vfs.NewMem(nil)
	mgr2, err := OpenManager(dst, []string{"/data"}, goldenOptions(&clock{ms: 1}, nil))
	must(t, err)
	to, err := mgr2.Create(goldenTP, from.TopicID(), mgr2.opts.Config("golden"))
	must(t, err)
	for rest := readAllBytes(t, from, math.MaxInt64); len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(t, err)
		_, err = to.AppendAsFollower(b) // one by one, as they were produced
		must(t, err)
		rest = after
	}
	must(t, mgr2.Close())
	entries, err := dst.List("/data/golden-0")
	must(t, err)
	want, err := os.ReadDir(filepath.Join(goldenDir, "golden-0"))
	must(t, err)
	if len(entries) != len(want) {
		t.Fatalf("files %v, Kafka has %v", entries, want)
	}
	for _, e := range entries {
		got, err := readAll(dst, "/data/golden-0/"+e.Name)
		must(t, err)
		if filepath.Ext(e.Name) == extSnapshot {
			continue // ours keep more batches per producer
		}
		if !bytes.Equal(got, golden(t, "golden-0/"+e.Name)) {
			t.Errorf("%s:\n got %x\nwant %x", e.Name, got, golden(t, "golden-0/"+e.Name))
		}
	}
}
