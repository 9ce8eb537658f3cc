//go:build peers

package dump_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// TestPeerRecords compares every record, and every end of a transaction, in the segments of a topic with all codecs and
// transactions with what Kafka's own tool prints of the same bytes.
func TestPeerRecords(t *testing.T) {
	data, jars := os.Getenv("KCTL_PEER_DATA"), os.Getenv("KCTL_KAFKA_JARS")
	if data == "" || jars == "" {
		t.Fatal("KCTL_PEER_DATA and KCTL_KAFKA_JARS are not set")
	}
	files := written(t, filepath.Join(data, fill(t, os.Getenv("KCTL_PEER_BOOTSTRAP"))+"-*"), []string{"*.log"})
	out, err := exec.Command("java", "-Xmx256m", "-cp", jars+"/*", "kafka.tools.DumpLogSegments", "--print-data-log", "--files", strings.Join(files, ",")).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	record := regexp.MustCompile(`^\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: (-?\d+) headerKeys: \[(.*?)\](?: endTxnMarker: (\w+) coordinatorEpoch: (\d+))?(?: key: (.*?))?(?: payload: (.*))?$`)
	var want []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		m := record.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not understood: %s", line)
		}
		m[7] = strings.ToLower(m[7])
		want = append(want, strings.Join(m[1:], " "))
	}
	got := kctlRecords(t, files)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("kctl  %s\nKafka %s", got[i], want[i])
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("kctl shows %d records, Kafka %d", len(got), len(want))
	}
	t.Logf("%d records in %d files", len(want), len(files))
}

func kctlRecords(t *testing.T, files []string) []string {
	t.Helper()
	var out []string
	for _, row := range kctlRows(t, append([]string{"segment", "--print-data"}, files...)) {
		if row["kind"] != "DumpRecord" {
			continue
		}
		var keys []string
		for _, h := range list(row["headers"]) {
			keys = append(keys, fmt.Sprint(h.(map[string]any)["key"]))
		}
		line := fmt.Sprint(row["offset"], " ", row["timestamp"], " ", row["keySize"], " ", row["valueSize"], " ", row["sequence"], " ", strings.Join(keys, ","))
		if d, ok := row["decoded"].(map[string]any); ok {
			out = append(out, fmt.Sprintf("%s %s %s  ", line, d["type"], d["coordinatorEpoch"]))
			continue
		}
		show := func(v any) string {
			if v == nil {
				return ""
			}
			return fmt.Sprint(v)
		}
		out = append(out, fmt.Sprintf("%s   %s %s", line, show(row["key"]), show(row["value"])))
	}
	return out
}

// kctlRows runs kctl dump.
func kctlRows(t *testing.T, args []string) []map[string]any {
	t.Helper()
	streams, out, errb := iostreams.Test("")
	code := cli.Run(t.Context(), append([]string{"dump", "-o", "json"}, args...), streams, func(string) string { return "" })
	if code != 0 && (code != 10 || args[0] != "segment") { // the copy of a segment may end in the middle of a batch
		t.Errorf("kctl dump %s: exit %d: %s", args[0], code, errb)
	}
	var rows []map[string]any
	for line := range strings.Lines(out.String()) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestPeerCheckpoints: every small file of a running broker is sound, also those that it made empty, and holds what its text says.
// Kafka's tool does not print them.
func TestPeerCheckpoints(t *testing.T) {
	data := os.Getenv("KCTL_PEER_DATA")
	if data == "" {
		t.Fatal("KCTL_PEER_DATA is not set")
	}
	var files, want []string
	for _, pattern := range []string{"*-checkpoint", "*/leader-epoch-checkpoint", "meta.properties", "*/partition.metadata"} {
		names, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				continue // deleted meanwhile
			}
			copied := filepath.Join(t.TempDir(), filepath.Base(name))
			if err := os.WriteFile(copied, b, 0o644); err != nil {
				t.Fatal(err)
			}
			files = append(files, copied)
			want = append(want, plainEntries(filepath.Base(name), string(b))...)
		}
	}
	var got []string
	for _, row := range kctlRows(t, append([]string{"checkpoint"}, files...)) {
		switch row["format"] {
		case "topic-offsets":
			got = append(got, fmt.Sprintf("%s %s %s", row["topic"], row["partition"], row["offset"]))
		case "leader-epochs":
			got = append(got, fmt.Sprintf("%s %s", row["epoch"], row["offset"]))
		case "properties":
			got = append(got, fmt.Sprintf("%s=%s", row["key"], row["value"]))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("kctl  %q\nfiles %q", got, want)
	}
	t.Logf("%d entries in %d files", len(want), len(files))
}

// plainEntries are the lines of a small file without what is in front of them.
func plainEntries(name, content string) []string {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if strings.HasSuffix(name, "-checkpoint") {
		return lines[min(2, len(lines)):]
	}
	var out []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.NewReplacer(": ", "=", `\`, "").Replace(line))
		}
	}
	return out
}
