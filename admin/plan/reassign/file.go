package reassign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"

	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// AnyDir is the log directory of a replica that may be put anywhere.
const AnyDir = "any"

// Entry is the wanted replica list of one partition. LogDirs has one directory, or AnyDir, for each replica; nil
// means any for all.
type Entry struct {
	Topic     string
	Partition int32
	Replicas  []cluster.BrokerID
	LogDirs   []string
}

// TP names the partition.
func (e *Entry) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: e.Topic, Partition: e.Partition}
}

// Dir returns the wanted directory of a replica, AnyDir when none is.
func (e *Entry) Dir(id cluster.BrokerID) string {
	if i := slices.Index(e.Replicas, id); i >= 0 && i < len(e.LogDirs) {
		return e.LogDirs[i]
	}
	return AnyDir
}

// file is Kafka's form. Pointers tell what is missing from what is zero.
type file struct {
	Version    *int         `json:"version"`
	Partitions *[]fileEntry `json:"partitions"`
}

type fileEntry struct {
	Topic     *string  `json:"topic"`
	Partition *int32   `json:"partition"`
	Replicas  *[]int32 `json:"replicas"`
	LogDirs   []string `json:"log_dirs"`
}

// Parse reads a plan in Kafka's JSON. A byte order mark is allowed and unknown fields are ignored, as Kafka does.
// Errors name line and column, or the partition: an empty plan, an empty replica list, a broker twice in one list,
// a partition twice, a negative id and a list of log directories of another length are refused.
func Parse(data []byte) ([]Entry, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("it is empty")
	}
	var doc file
	if err := decodeStrict(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != nil && *doc.Version != 1 {
		return nil, fmt.Errorf("its version is %d, only version 1 is known", *doc.Version)
	}
	if doc.Partitions == nil {
		return nil, errors.New(`it has no "partitions": the form is {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}`)
	}
	if len(*doc.Partitions) == 0 {
		return nil, errors.New("it has no partitions to move")
	}
	out := make([]Entry, 0, len(*doc.Partitions))
	seen := make(map[cluster.TopicPartition]bool, len(*doc.Partitions))
	for i, fe := range *doc.Partitions {
		e, err := fe.entry(i)
		if err != nil {
			return nil, err
		}
		if seen[e.TP()] {
			return nil, fmt.Errorf("%s is in it twice", Name(e.TP()))
		}
		seen[e.TP()] = true
		out = append(out, e)
	}
	return out, nil
}

func (fe *fileEntry) entry(i int) (Entry, error) {
	if fe.Topic == nil || fe.Partition == nil || fe.Replicas == nil {
		return Entry{}, fmt.Errorf("entry %d needs topic, partition and replicas", i+1)
	}
	e := Entry{Topic: *fe.Topic, Partition: *fe.Partition, Replicas: cluster.IDsFromInt32(*fe.Replicas), LogDirs: fe.LogDirs}
	if err := plan.TopicName(e.Topic); err != nil {
		return e, fmt.Errorf("entry %d: %w", i+1, err)
	}
	if e.Partition < 0 {
		return e, fmt.Errorf("entry %d: partition %d of topic %s is below zero", i+1, e.Partition, e.Topic)
	}
	if len(e.Replicas) == 0 {
		return e, fmt.Errorf("%s has an empty replica list", Name(e.TP()))
	}
	for k, id := range e.Replicas {
		if id < 0 {
			return e, fmt.Errorf("%s: broker id %d is below zero", Name(e.TP()), id)
		}
		if slices.Contains(e.Replicas[:k], id) {
			return e, fmt.Errorf("%s: broker %d is in its replica list twice", Name(e.TP()), id)
		}
	}
	if e.LogDirs != nil && len(e.LogDirs) != len(e.Replicas) {
		return e, fmt.Errorf("%s has %d replicas and %d log_dirs", Name(e.TP()), len(e.Replicas), len(e.LogDirs))
	}
	for _, d := range e.LogDirs {
		if d != AnyDir && (d == "" || d[0] != '/') {
			return e, fmt.Errorf("%s: log directory %q is neither an absolute path nor %q", Name(e.TP()), d, AnyDir)
		}
	}
	return e, nil
}

// decodeStrict reads exactly one JSON value and places errors at their line and column.
func decodeStrict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(v)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return at(data, dec.InputOffset(), "there is more after the end of the plan")
		}
		return nil
	}
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return at(data, se.Offset-1, se.Error())
	}
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return at(data, te.Offset-1, fmt.Sprintf("%s: %s stands where %s belongs", orDocument(te.Field), te.Value, jsonType(te.Type.Kind())))
	}
	return at(data, int64(len(data)), "the JSON ends too early")
}

// jsonType names what a field takes in JSON's words.
func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string"
	}
	return "a number from -2147483648 to 2147483647"
}

func orDocument(field string) string {
	if field == "" {
		return "the document"
	}
	return "field " + field
}

func at(data []byte, offset int64, msg string) error {
	before := data[:min(max(offset, 0), int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("line %d, column %d: %s", line, column, msg)
}

// Encode writes a plan as Kafka's tool prints it: one line without a line feed, sorted by topic and partition, a log
// directory for each replica.
func Encode(entries []Entry) []byte {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return a.TP().Compare(b.TP()) })
	out := []byte(`{"version":1,"partitions":[`)
	for i := range sorted {
		e := &sorted[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"topic":`...)
		out = appendText(out, e.Topic)
		out = append(out, `,"partition":`...)
		out = strconv.AppendInt(out, int64(e.Partition), 10)
		out = append(out, `,"replicas":[`...)
		for k, id := range e.Replicas {
			if k > 0 {
				out = append(out, ',')
			}
			out = strconv.AppendInt(out, int64(id), 10)
		}
		out = append(out, `],"log_dirs":[`...)
		for k, id := range e.Replicas {
			if k > 0 {
				out = append(out, ',')
			}
			out = appendText(out, e.Dir(id))
		}
		out = append(out, "]}"...)
	}
	return append(out, "]}"...)
}

// appendText appends a JSON string with only what must be escaped escaped, as Jackson writes it.
func appendText(out []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(out, bytes.TrimRight(b.Bytes(), "\n")...)
}

// Name writes a partition as the command line takes it: TOPIC:P.
func Name(tp cluster.TopicPartition) string { return tp.Topic + ":" + strconv.Itoa(int(tp.Partition)) }
