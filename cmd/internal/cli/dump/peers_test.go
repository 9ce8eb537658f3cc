//go:build peers

package dump_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// TestSameAsDumpLogSegments writes records of every codec and transactions to a running broker whose log directory is
// KCTL_PEER_DATA, and compares what kctl dump and Kafka's own tool (jars in KCTL_KAFKA_JARS) say of all its files.
func TestSameAsDumpLogSegments(t *testing.T) {
	data, jars := os.Getenv("KCTL_PEER_DATA"), os.Getenv("KCTL_KAFKA_JARS")
	if data == "" || jars == "" {
		t.Fatal("KCTL_PEER_DATA and KCTL_KAFKA_JARS are not set")
	}
	topic := fill(t, os.Getenv("KCTL_PEER_BOOTSTRAP"))
	for ext, verb := range map[string]string{"log": "segment", "index": "index", "timeindex": "timeindex", "txnindex": "txnindex", "snapshot": "snapshot"} {
		files, err := filepath.Glob(filepath.Join(data, "*", "*."+ext))
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(name string) bool {
			info, err := os.Stat(name)
			return err != nil || info.Size() == 0 || !strings.Contains(name, topic)
		})
		t.Logf("%s: %d files", ext, len(files))
		if len(files) == 0 {
			t.Errorf("no *.%s file", ext)
			continue
		}
		got, want := kctlSays(t, verb, ext, files), kafkaSays(t, jars, ext, files)
		for range 5 { // the last markers may come meanwhile
			if again := kctlSays(t, verb, ext, files); slices.Equal(got, again) {
				break
			}
			got, want = kctlSays(t, verb, ext, files), kafkaSays(t, jars, ext, files)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\nkctl  %s\nKafka %s", ext, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
		}
	}
}

// fill makes a topic on every broker, with small segments and index intervals, and writes every codec, commits and aborts.
func fill(t *testing.T, bootstrap string) string {
	t.Helper()
	topic := "kctl-dump-" + strings.ReplaceAll(time.Now().Format("150405.000"), ".", "-")
	ctx := t.Context()
	base := []kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	cl, err := kgo.NewClient(base...)
	if err != nil {
		t.Fatal(err)
	}
	interval, segment := "100", "3000"
	config := map[string]*string{"index.interval.bytes": &interval, "segment.bytes": &segment}
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(ctx, 1, 3, config, topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) { // a slow broker is asked twice
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.DeleteTopic(context.WithoutCancel(ctx), topic); err != nil {
			t.Error(err)
		}
		cl.Close()
	})
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		produce(t, append(base, kgo.ProducerBatchCompression(codec)), false)
	}
	produce(t, append(base, kgo.TransactionalID(topic)), true)
	return topic
}

func produce(t *testing.T, opts []kgo.Opt, transactions bool) {
	t.Helper()
	ctx := t.Context()
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i := range 4 {
		if transactions {
			if err := cl.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		r := &kgo.Record{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 300), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{1}}}}
		if err := cl.ProduceSync(ctx, r, &kgo.Record{Key: []byte("tombstone")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if transactions {
			if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// numbers are what is compared of a line of Kafka's tool, by file type.
var numbers = map[string][]string{
	"log":       {"baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch", "partitionLeaderEpoch", "isTransactional", "isControl", "position", "size", "magic", "compresscodec", "crc"},
	"index":     {"offset", "position"},
	"timeindex": {"timestamp", "offset"},
	"txnindex":  {"producerId", "firstOffset", "lastOffset", "lastStableOffset"},
	"snapshot":  {"producerId", "producerEpoch", "coordinatorEpoch", "currentTxnFirstOffset", "lastTimestamp", "lastSequence", "lastOffset", "offsetDelta"},
}

func kafkaSays(t *testing.T, jars, ext string, files []string) []string {
	t.Helper()
	out, err := exec.Command("java", "-Xmx256m", "-cp", jars+"/*", "kafka.tools.DumpLogSegments", "--files", strings.Join(files, ",")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		var fields []string
		for _, name := range numbers[ext] {
			m := regexp.MustCompile(`(?:^|[ ,])` + name + `: ?(?:Some\()?([^ ,)]+)`).FindStringSubmatch(line)
			if m == nil {
				break
			}
			value := strings.TrimSpace(m[1])
			if value == "None" || value == "OptionalLong.empty" {
				value = "-1"
			}
			fields = append(fields, name+"="+value)
		}
		if len(fields) == len(numbers[ext]) {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
}

// kctlNames are kctl's names where they differ from Kafka's.
var kctlNames = map[string]string{
	"partitionLeaderEpoch": "leaderEpoch", "isTransactional": "transactional", "isControl": "control", "compresscodec": "codec",
	"currentTxnFirstOffset": "txnFirstOffset", "lastTimestamp": "timestamp",
}

func kctlSays(t *testing.T, verb, ext string, files []string) []string {
	t.Helper()
	streams, out, errb := iostreams.Test("")
	code := cli.Run(t.Context(), append([]string{"dump", verb, "-o", "json"}, files...), streams, func(string) string { return "" })
	if code != 0 {
		t.Errorf("kctl dump %s: exit %d: %s", verb, code, errb)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if kind := row["kind"]; kind == "DumpFile" || kind == "DumpRecord" {
			continue
		}
		var fields []string
		for _, name := range numbers[ext] {
			mine := name
			if n := kctlNames[name]; n != "" {
				mine = n
			}
			fields = append(fields, fmt.Sprintf("%s=%v", name, row[mine]))
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	return lines
}
