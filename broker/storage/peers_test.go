//go:build peers

package storage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

// TestKafkaReadsOurDirectory lets Apache Kafka's own dump tool read what this package writes.
// KCTL_KAFKA_JARS names a folder with Kafka's jars.
func TestKafkaReadsOurDirectory(t *testing.T) {
	jars := os.Getenv("KCTL_KAFKA_JARS")
	if jars == "" {
		t.Fatal("KCTL_KAFKA_JARS is not set to the folder with Apache Kafka's jars")
	}
	dir := t.TempDir()
	for _, clean := range []bool{true, false} {
		folder := writeForKafka(t, filepath.Join(dir, fmt.Sprint("clean-", clean)), clean)
		logs, err := filepath.Glob(filepath.Join(folder, "*"+extLog))
		must(t, err)
		out := dump(t, jars, "--files", strings.Join(logs, ","), "--deep-iteration", "--print-data-log")
		records := strings.Count(out, "| offset: ")
		if regexp.MustCompile(`(?i)invalid|mismatch|isvalid: false|found [0-9]+ invalid`).MatchString(out) {
			t.Errorf("%s", out)
		}
		if records != 5*40*3 {
			t.Errorf("clean %v: Kafka reads %d records", clean, records)
		}
		checkKafkaIndexes(t, jars, folder)
	}
}

func checkKafkaIndexes(t *testing.T, jars, folder string) {
	t.Helper()
	complaint := regexp.MustCompile(`(?i)mismatch|not found|out of order|found timestamp|error|exception|corrupt`)
	for _, ext := range []string{extIndex, extTimeIndex, extSnapshot} {
		files, err := filepath.Glob(filepath.Join(folder, "*"+ext))
		must(t, err)
		list := strings.Join(files, ",")
		if ext == extIndex {
			out := dump(t, jars, "--files", list, "--index-sanity-check")
			if n := strings.Count(out, "passed sanity check."); n != len(files) {
				t.Errorf("%d of %d indexes are sane: %s", n, len(files), out)
			}
		}
		out := dump(t, jars, "--files", list)
		if complaint.MatchString(out) || strings.Count(out, "Dumping ") != len(files) {
			t.Errorf("%s: %s", ext, out)
		}
		if ext == extSnapshot && strings.Count(out, "producerId: 4711") < len(files) {
			t.Errorf("%s", out)
		}
	}
}

func dump(t *testing.T, jars string, args ...string) string {
	t.Helper()
	cmd := exec.Command("java", append([]string{"-Xmx256m", "-cp", filepath.Join(jars, "*"), "kafka.tools.DumpLogSegments"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("DumpLogSegments %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// writeForKafka fills a log with every codec, multi-batch appends and an idempotent producer, and returns its
// folder. Without clean the manager is not closed; the folder is then recovered by us first.
func writeForKafka(t *testing.T, dir string, clean bool) string {
	t.Helper()
	opts := testOptions(&clock{ms: time.Now().UnixMilli()}, nil)
	opts.Now = time.Now
	m, err := OpenManager(vfs.OS{}, []string{dir}, opts)
	must(t, err)
	cfg := DefaultConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 20_000, 500
	l, err := m.Create(testTP, testID, cfg)
	must(t, err)
	seq := int32(0)
	for i := range 40 {
		var data []byte
		for _, c := range []record.Compression{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
			data = append(data, batch(t, 3, time.Now().UnixMilli(), withProducer(4711, 2, seq), func(b *record.Builder) { b.Compression = c })...)
			seq += 3
		}
		mustAppend(t, l, data, 1+clusterEpoch(i))
	}
	if clean {
		must(t, m.Close())
		return *l.folder.Load()
	}
	must(t, m.unlock()) // as if the process had died
	m, err = OpenManager(vfs.OS{}, []string{dir}, opts)
	must(t, err)
	l, _ = m.Log(testTP)
	if l.LogEndOffset() != 600 {
		t.Fatalf("recovered to %d", l.LogEndOffset())
	}
	must(t, m.Close())
	return *l.folder.Load()
}
