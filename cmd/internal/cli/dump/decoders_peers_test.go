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
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// TestPeerDecoders compares what kctl and Kafka's own tool read in the records of the internal topics of a running
// cluster: KCTL_PEER_DATA is a log directory, KCTL_KAFKA_JARS the folder of the jars.
func TestPeerDecoders(t *testing.T) {
	data, jars := os.Getenv("KCTL_PEER_DATA"), os.Getenv("KCTL_KAFKA_JARS")
	if data == "" || jars == "" {
		t.Fatal("KCTL_PEER_DATA and KCTL_KAFKA_JARS are not set")
	}
	change(t, os.Getenv("KCTL_PEER_BOOTSTRAP"), os.Getenv("KCTL_PEER_KIND") == "kraft")
	for _, d := range []struct {
		topic, kctl, kafka string
		patterns           []string
	}{
		{"__cluster_metadata", "metadata", "--cluster-metadata-decoder", []string{"*.log", "*.checkpoint"}},
		{"__consumer_offsets", "offsets", "--offsets-decoder", []string{"*.log"}},
		{"__share_group_state", "share-state", "--share-group-state-decoder", []string{"*.log"}},
	} {
		files := written(t, filepath.Join(data, d.topic+"-*"), d.patterns)
		t.Logf("%s: %d files", d.topic, len(files))
		if len(files) == 0 {
			if d.topic == "__cluster_metadata" && os.Getenv("KCTL_PEER_KIND") == "kraft" || d.topic == "__consumer_offsets" {
				t.Errorf("%s has no records", d.topic)
			}
			continue
		}
		got, want := kctlDecodes(t, d.kctl, files), kafkaDecodes(t, jars, d.kafka, files)
		same := 0
		for at, w := range want {
			g, ok := got[at]
			switch {
			case !ok:
				t.Errorf("%s: kctl shows no record, Kafka %s", at, w)
			case !reflect.DeepEqual(g, w):
				a, _ := json.Marshal(g)
				b, _ := json.Marshal(w)
				t.Errorf("%s:\nkctl  %s\nKafka %s", at, a, b)
			default:
				same++
			}
		}
		t.Logf("%s: %d records are the same", d.topic, same)
	}
}

// written copies files with records, so that both read the same bytes while the broker goes on.
func written(t *testing.T, folders string, patterns []string) []string {
	t.Helper()
	scratch := t.TempDir()
	var out []string
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(folders, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil || len(bytes.TrimLeft(b, "\x00")) == 0 {
				continue
			}
			copied := filepath.Join(scratch, filepath.Base(filepath.Dir(name)), filepath.Base(name))
			if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied, b, 0o644); err != nil {
				t.Fatal(err)
			}
			out = append(out, copied)
		}
	}
	return out
}

// change makes the cluster write records of many types, and takes back what it made.
func change(t *testing.T, bootstrap string, kraft bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	name := "kctl-decode-" + strings.ReplaceAll(time.Now().Format("150405.000"), ".", "-")
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ConsumerGroup(name), kgo.ConsumeTopics(name), kgo.DefaultProduceTopic(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": kadm.StringPtr("86400000")}, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.DeleteTopics(ctx, name) })
	if err := cl.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if f := cl.PollFetches(ready); f.Err() != nil {
		t.Fatal(f.Err())
	}
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	if !kraft {
		return
	}
	quota := []kadm.AlterClientQuotaEntry{{Entity: kadm.ClientQuotaEntity{{Type: "user", Name: kadm.StringPtr(name)}, {Type: "client-id"}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1234.5}}}}
	if _, err := admin.AlterClientQuotas(ctx, quota); err != nil {
		t.Fatal(err)
	}
	quota[0].Ops[0].Remove = true
	if _, err := admin.AlterClientQuotas(ctx, quota); err != nil {
		t.Error(err)
	}
	if _, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: name, Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{{User: name, Mechanism: kadm.ScramSha256}}, nil); err != nil {
		t.Error(err)
	}
}

// secrets are fields that Kafka's tool prints and kctl does not.
var secrets = []string{"salt", "storedKey", "serverKey"}

// kafkaDecodes reads Kafka's lines: FILE:OFFSET with type, version and data.
func kafkaDecodes(t *testing.T, jars, decoder string, files []string) map[string]any {
	t.Helper()
	out, err := exec.Command("java", "-Xmx256m", "-cp", jars+"/*", "kafka.tools.DumpLogSegments", decoder, "--files", strings.Join(files, ",")).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) && bytes.Contains(failed.Stderr, []byte("is not a recognized option")) {
			return nil // an older version has no such decoder
		}
		t.Fatalf("%v\n%s", err, out)
	}
	found := map[string]any{}
	file := ""
	line1 := regexp.MustCompile(`^\| offset: (\d+) .*?(?: key: (\{.*\}))? payload: (\{.*\})$`)
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "Dumping "); ok {
			file = name
		}
		m := line1.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var key, payload map[string]any
		if json.Unmarshal([]byte(m[3]), &payload) != nil || m[2] != "" && json.Unmarshal([]byte(m[2]), &key) != nil {
			continue // classic records are no JSON in 3.9
		}
		if kind := fmt.Sprint(key["type"]); decoder == "--offsets-decoder" && (kind == "0" || kind == "1" || kind == "2") {
			continue // kctl shows commits and classic groups with names of its own
		}
		data, _ := payload["data"].(map[string]any)
		for _, s := range secrets {
			delete(data, s)
		}
		row := map[string]any{"data": payload["data"]}
		switch kind := payload["type"].(type) {
		case string: // metadata
			row["type"] = strings.ReplaceAll(strings.ToLower(kind), "_", "-")
		default:
			row["key"] = key["data"]
		}
		found[file+":"+m[1]] = row
	}
	return found
}

// kctlDecodes reads kctl's lines in the same form.
func kctlDecodes(t *testing.T, decoder string, files []string) map[string]any {
	t.Helper()
	streams, out, errb := iostreams.Test("")
	code := cli.Run(t.Context(), append([]string{"dump", "segment", "--decoder", decoder, "-o", "json"}, files...), streams, func(string) string { return "" })
	if code != 0 && code != 10 { // a preallocated segment ends in zeros
		t.Errorf("kctl dump: exit %d: %s", code, errb)
	}
	found := map[string]any{}
	for line := range strings.Lines(out.String()) {
		var row struct {
			Kind    string
			File    string
			Offset  json.Number
			Decoded map[string]any
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Kind != "DumpRecord" || row.Decoded == nil {
			continue
		}
		if p := row.Decoded["problem"]; p != nil {
			t.Errorf("%s:%s: %v", row.File, row.Offset, row.Decoded)
		}
		data := row.Decoded["data"]
		if data == nil { // a record without fields
			data = map[string]any{}
		}
		one := map[string]any{"data": data}
		if decoder == "metadata" {
			one["type"] = row.Decoded["type"]
		} else {
			one["key"] = row.Decoded["key"]
		}
		found[row.File+":"+row.Offset.String()] = one
	}
	return found
}
