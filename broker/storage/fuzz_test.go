package storage

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

// seedFiles adds every golden file whose name fits as a seed.
func seedFiles(f *testing.F, pattern string) {
	files, err := filepath.Glob(filepath.Join(goldenDir, pattern))
	must(f, err)
	if len(files) == 0 {
		f.Fatalf("no golden file %s", pattern)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		must(f, err)
		f.Add(data)
	}
}

// FuzzOffsets: what the decoder of offset checkpoints accepts, it writes back to the same entries.
func FuzzOffsets(f *testing.F) {
	seedFiles(f, "*-checkpoint")
	f.Add([]byte("0\n2\na 0 1\nb-c 3 99999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := parseOffsets(data)
		if err != nil {
			return
		}
		again, err := parseOffsets(o.format())
		if err != nil || len(again) != len(o) {
			t.Fatalf("%v: %d entries, then %d", err, len(o), len(again))
		}
	})
}

func FuzzEpochs(f *testing.F) {
	seedFiles(f, "golden-0/"+fileEpochs)
	f.Add([]byte("0\n2\n0 0\n5 77\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEpochs(data)
		if err != nil {
			return
		}
		var c epochCache
		c.restore(e)
		again, err := parseEpochs(formatEpochs(c.entries))
		if err != nil || len(again) != len(c.entries) {
			t.Fatal(err)
		}
		for i := 1; i < len(again); i++ {
			if again[i].Epoch <= again[i-1].Epoch || again[i].Start <= again[i-1].Start {
				t.Fatalf("entries do not rise: %v", again)
			}
		}
		c.endOffset(3, 10)
		c.truncateFromStart(5)
		c.truncateFromEnd(7)
	})
}

func FuzzSnapshot(f *testing.F) {
	seedFiles(f, "golden-0/*"+extSnapshot)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= snapshotHeader { // get past the CRC
			fixed := bytes.Clone(data)
			sum := crcOf(fixed[6:])
			fixed[2], fixed[3], fixed[4], fixed[5] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
			data = fixed
		}
		entries, err := decodeSnapshot(data)
		if err != nil {
			return
		}
		var ps producers
		ps.restore(entries, 100)
		if _, err := decodeSnapshot(encodeSnapshot(ps.sorted())); err != nil {
			t.Fatal(err)
		}
	})
}

func crcOf(p []byte) uint32 {
	b := make(record.Batch, record.HeaderSize+len(p))
	copy(b[21:], p)
	b = b[:21+len(p)]
	b.UpdateCRC()
	return b.CRC()
}

func FuzzMetaProperties(f *testing.F) {
	seedFiles(f, fileMeta)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMeta(data)
		if err != nil || m.BrokerID < 0 {
			return
		}
		again, err := parseMeta(formatMeta(m))
		if err != nil || again != m {
			t.Fatalf("%+v, then %+v, %v", m, again, err)
		}
	})
}

func FuzzPartitionMetadata(f *testing.F) {
	seedFiles(f, "golden-0/"+filePartition)
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := parsePartitionMetadata(data)
		if err != nil {
			return
		}
		if again, err := parsePartitionMetadata(formatPartitionMetadata(id)); err != nil || again != id {
			t.Fatal(err)
		}
	})
}

func FuzzCleanMark(f *testing.F) {
	seedFiles(f, fileClean)
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := parseCleanMark(data); err == nil && (m.Version < 0 || m.Version > math.MaxInt16) {
			t.Fatal(m)
		}
	})
}

// FuzzIndexes opens a log whose index files hold arbitrary bytes: every record must still be found.
func FuzzIndexes(f *testing.F) {
	golden := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(goldenDir, "golden-0", name))
		must(f, err)
		return data
	}
	f.Add(golden("00000000000000000051.index"), golden("00000000000000000051.timeindex"))
	f.Add(make([]byte, 24), make([]byte, 36))
	var lying []byte // good at the end, wrong before
	for _, e := range []offsetEntry{{5, -13_619_152}, {10, 585}, {17, 1289}} {
		b := e.encode()
		lying = append(lying, b[:]...)
	}
	f.Add(lying, golden("00000000000000000051.timeindex"))
	f.Fuzz(func(t *testing.T, offsets, times []byte) {
		fs := copyGolden(t)
		for _, base := range []int64{51, 69} {
			must(t, writePlain(fs, segmentPath("/data/golden-0", base, extIndex), offsets))
			must(t, writePlain(fs, segmentPath("/data/golden-0", base, extTimeIndex), times))
		}
		m, err := OpenManager(fs, []string{"/data"}, goldenOptions(&clock{ms: 1}, nil))
		must(t, err)
		l, _ := m.Log(goldenTP)
		if l.LogEndOffset() != 90 {
			t.Fatalf("log end %d", l.LogEndOffset())
		}
		for offset := int64(50); offset < 90; offset++ {
			s, err := l.Read(offset, 1, 90, true)
			must(t, err)
			buf := make([]byte, s.Size())
			_, err = s.ReadInto(buf)
			must(t, err)
			s.Release()
			b, _, err := record.Next(buf)
			if err != nil || b.BaseOffset() > offset || b.LastOffset() < offset {
				t.Fatalf("offset %d: batch %d, %v", offset, b.BaseOffset(), err)
			}
		}
		_, _, err = l.OffsetForTimestamp(1795974778600, 90)
		must(t, err)
		must(t, l.TruncateTo(60))
		must(t, m.Close())
	})
}

// FuzzLog opens, after a kill, a log whose last segment holds arbitrary bytes, and appends arbitrary bytes.
func FuzzLog(f *testing.F) {
	data, err := os.ReadFile(filepath.Join(goldenDir, "golden-0", "00000000000000000069.log"))
	must(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := copyGolden(t)
		must(t, fs.Remove("/data/"+fileClean))
		must(t, writePlain(fs, segmentPath("/data/golden-0", 69, extLog), data))
		must(t, fs.SyncAll("/"))
		m, err := OpenManager(fs, []string{"/data"}, goldenOptions(&clock{ms: 1}, nil))
		must(t, err)
		l, _ := m.Log(goldenTP)
		if l.LogEndOffset() < 69 {
			t.Fatalf("log end %d", l.LogEndOffset())
		}
		readAllBytes(t, l, math.MaxInt64)
		_, _ = l.AppendAsLeader(bytes.Clone(data), 5, AppendOptions{})
		_, _ = l.AppendAsFollower(data)
		if l.Failed() != nil {
			t.Fatal(l.Failed())
		}
		readAllBytes(t, l, math.MaxInt64)
		_, _, _ = l.OffsetForTimestamp(0, math.MaxInt64)
		must(t, m.Close())
		m, err = OpenManager(fs.CrashClone(vfs.DropUnsynced, 0), []string{"/data"}, goldenOptions(&clock{ms: 1}, nil))
		must(t, err)
		if again, _ := m.Log(goldenTP); again.LogEndOffset() != l.LogEndOffset() {
			t.Fatalf("reopened: end %d, was %d", again.LogEndOffset(), l.LogEndOffset())
		}
	})
}
