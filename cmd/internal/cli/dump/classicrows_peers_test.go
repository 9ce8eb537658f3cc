//go:build peers

package dump_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// kctlClassic reads kctl's records by FILE:OFFSET, and says what is in them.
func kctlClassic(t *testing.T, decoder string, files []string) (rows map[string]map[string]any, seen map[string]bool) {
	t.Helper()
	streams, out, errb := iostreams.Test("")
	if code := cli.Run(t.Context(), append([]string{"dump", "segment", "--decoder", decoder, "-o", "json"}, files...), streams, func(string) string { return "" }); code != 0 && code != 10 { // the copy may end in the middle of a batch
		t.Errorf("kctl dump: exit %d: %s", code, errb)
	}
	rows, seen = map[string]map[string]any{}, map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var row struct {
			Kind    string
			File    string
			Offset  json.Number
			Decoded map[string]any
		}
		unmarshal(t, line, &row)
		d := row.Decoded
		if row.Kind != "DumpRecord" || !slices.Contains([]any{"offset-commit", "group-metadata", "transaction", "unknown"}, d["type"]) {
			continue // markers, and groups of the new protocol: TestPeerDecoders
		}
		if d["problem"] != nil {
			t.Errorf("%s:%s: %v", row.File, row.Offset, d)
		}
		note(seen, d)
		if list, ok := d["partitions"].([]any); ok {
			d["partitions"] = sortedTexts(list)
		}
		rows[row.File+":"+row.Offset.String()] = d
	}
	return rows, seen
}

// note says what a record shows.
func note(seen map[string]bool, d map[string]any) {
	group, members := fmt.Sprint(d["group"]), list(d["members"])
	switch gone := d["tombstone"] == true; {
	case d["type"] == "transaction":
		id := fmt.Sprint(d["transactionalId"])
		seen[fmt.Sprint(d["state"])+" "+id] = true
		seen[fmt.Sprintf("%d partitions of %s", len(list(d["partitions"])), id)] = true
	case d["type"] == "offset-commit" && gone:
		seen["gone commit of "+group] = true
	case d["type"] == "offset-commit":
		seen["commit of "+group] = true
		seen["metadata of "+group] = seen["metadata of "+group] || d["metadata"] != nil
	case gone:
		seen["gone group "+group] = true
	case len(members) == 0:
		seen["no members of "+group] = true
	case len(members) == 2:
		seen["two members of "+group] = true
	}
	for _, m := range members {
		m := m.(map[string]any)
		for field, what := range map[string]string{"instanceId": "static member of ", "owned": "owned of ", "assignment": "bytes of "} {
			seen[what+group] = seen[what+group] || m[field] != nil
		}
	}
}

// kafkaClassic reads the records of Kafka's tool in kctl's form.
func kafkaClassic(t *testing.T, jars, decoder string, files []string) map[string]map[string]any {
	t.Helper()
	out, err := exec.Command("java", "-Xmx256m", "-cp", jars+"/*", "kafka.tools.DumpLogSegments", decoder, "--files", strings.Join(files, ",")).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, file := map[string]map[string]any{}, ""
	record := regexp.MustCompile(`^\| offset: (\d+) .*?\] key: (.*?) payload: (.*)$`)
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "Dumping "); ok {
			file = name
		}
		m := record.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "|") && !strings.Contains(line, "endTxnMarker: ") {
				t.Errorf("%s: not understood: %s", file, line)
			}
			continue
		}
		row := kafkaTransaction
		if decoder == "--offsets-decoder" {
			row = kafkaOffsets
		}
		if r := row(t, m[2], m[3]); r != nil {
			found[file+":"+m[1]] = r
		}
	}
	return found
}

var transactionText = regexp.MustCompile(`^producerId:(-?\d+),producerEpoch:(-?\d+),state=(\w+),partitions=\[(.*)\],txnLastUpdateTimestamp=(-?\d+),txnTimeoutMs=(-?\d+)$`)

// stateNames are those of the numbers that Kafka's tool from 4.0 on prints.
var stateNames = map[string]string{
	"0": "Empty", "1": "Ongoing", "2": "PrepareCommit", "3": "PrepareAbort", "4": "CompleteCommit", "5": "CompleteAbort", "6": "Dead", "7": "PrepareEpochFence",
}

// kafkaTransaction reads the text of Kafka up to 3.9, or the JSON of what follows.
func kafkaTransaction(t *testing.T, key, payload string) map[string]any {
	t.Helper()
	if strings.HasPrefix(key, "{") {
		return kafkaTransactionJSON(t, key, payload)
	}
	id, ok := strings.CutPrefix(key, "transaction_metadata::transactionalId=")
	if !ok {
		t.Errorf("not understood: %s %s", key, payload)
		return nil
	}
	row := map[string]any{"type": "transaction", "transactionalId": id, "version": json.Number("0")}
	if payload == "<DELETE>" {
		row["tombstone"] = true
		delete(row, "version")
		return row
	}
	m := transactionText.FindStringSubmatch(payload)
	if m == nil {
		t.Errorf("not understood: %s", payload)
		return nil
	}
	row["state"] = m[3]
	for i, name := range map[int]string{1: "producerId", 2: "producerEpoch", 5: "lastUpdate", 6: "timeoutMs"} {
		row[name] = json.Number(m[i])
	}
	var partitions []any
	for tp := range strings.SplitSeq(m[4], ",") {
		if i := strings.LastIndexByte(tp, '-'); i > 0 {
			partitions = append(partitions, tp[:i]+":"+tp[i+1:])
		}
	}
	row["partitions"] = sortedTexts(partitions)
	return row
}

func kafkaTransactionJSON(t *testing.T, key, payload string) map[string]any {
	t.Helper()
	var k, v struct {
		Version json.Number
		Data    map[string]any
	}
	unmarshal(t, key, &k)
	row := k.Data
	row["type"] = "transaction"
	if payload == "<DELETE>" {
		row["tombstone"] = true
		return row
	}
	unmarshal(t, payload, &v)
	maps.Copy(row, v.Data)
	renamed(row, map[string]string{
		"transactionTimeoutMs": "timeoutMs", "transactionStatus": "state", "transactionPartitions": "partitions",
		"transactionLastUpdateTimestampMs": "lastUpdate", "transactionStartTimestampMs": "startTimestamp",
	})
	row["version"], row["state"] = v.Version, stateNames[fmt.Sprint(row["state"])]
	row["partitions"] = sortedTexts(topicPartitions(row["partitions"], "partitionIds"))
	return row
}

// kafkaOffsets reads the JSON of commits and classic groups.
func kafkaOffsets(t *testing.T, key, payload string) map[string]any {
	t.Helper()
	var k, v struct {
		Type    string
		Version json.Number
		Data    map[string]any
	}
	unmarshal(t, key, &k)
	row := k.Data
	switch k.Type {
	case "0", "1":
		row["type"] = "offset-commit"
	case "2":
		row["type"] = "group-metadata"
	default:
		return nil // groups of the new protocol
	}
	if payload == "<DELETE>" {
		row["tombstone"] = true
		return row
	}
	unmarshal(t, payload, &v)
	maps.Copy(row, v.Data)
	row["version"] = v.Version
	renamed(row, map[string]string{"currentStateTimestamp": "stateTimestamp"})
	for _, m := range list(row["members"]) {
		kafkaMember(m.(map[string]any))
	}
	return row
}

func kafkaMember(m map[string]any) {
	renamed(m, map[string]string{"memberId": "id", "groupInstanceId": "instanceId", "clientHost": "host", "rebalanceTimeout": "rebalanceTimeoutMs", "sessionTimeout": "sessionTimeoutMs"})
	if s, ok := m["subscription"].(map[string]any); ok {
		m["subscription"], m["subscribed"], m["userData"], m["owned"] = nil, s["topics"], s["userData"], topicPartitions(s["ownedPartitions"], "partitions")
		m["generation"], m["rack"] = s["generationId"], s["rackId"]
	}
	if a, ok := m["assignment"].(map[string]any); ok {
		m["assignment"], m["assigned"], m["assignedUserData"] = nil, topicPartitions(a["assignedPartitions"], "partitions"), a["userData"]
	}
}

func topicPartitions(v any, numbers string) []any {
	var out []any
	for _, t := range list(v) {
		t := t.(map[string]any)
		for _, p := range list(t[numbers]) {
			out = append(out, fmt.Sprintf("%s:%s", t["topic"], p))
		}
	}
	return out
}

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

func renamed(row map[string]any, names map[string]string) {
	for from, to := range names {
		if v, ok := row[from]; ok {
			delete(row, from)
			row[to] = v
		}
	}
}

func sortedTexts(in []any) []any {
	slices.SortFunc(in, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return in
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// canonical is JSON without what is null or empty.
func canonical(t *testing.T, row map[string]any) string {
	t.Helper()
	b, err := json.Marshal(filled(row))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if value = filled(value); value != nil {
				out[name] = value
			}
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = filled(v[i])
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}
