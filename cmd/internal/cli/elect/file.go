package elect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"

	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
)

// readElectionFile reads the form of kafka-leader-election.sh. Unknown keys are errors: a file of another
// tool, such as a reassignment, is not taken for an election. "-" is standard input.
func readElectionFile(path string, stdin io.Reader) ([]plan.Target, error) {
	data, err := readAll(path, stdin)
	if err != nil {
		return nil, exit.Usagef("--file: %v", err)
	}
	var doc struct {
		Version    *int `json:"version"`
		Partitions []struct {
			Topic     *string `json:"topic"`
			Partition *int32  `json:"partition"`
		} `json:"partitions"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, exit.Usagef("--file %s: %v", path, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, exit.Usagef("--file %s: there is more behind the JSON document", path)
	}
	if doc.Version != nil && *doc.Version != 1 {
		return nil, exit.Usagef("--file %s: version %d is not 1", path, *doc.Version)
	}
	at := map[string]int{}
	seen := map[string]bool{}
	var out []plan.Target
	for i, p := range doc.Partitions {
		if p.Topic == nil || p.Partition == nil {
			return nil, exit.Usagef("--file %s: entry %d needs topic and partition", path, i)
		}
		if err := plan.TopicName(*p.Topic); err != nil {
			return nil, exit.Usagef("--file %s: entry %d: %v", path, i, err)
		}
		if *p.Partition < 0 {
			return nil, exit.Usagef("--file %s: entry %d: partition %d is below zero", path, i, *p.Partition)
		}
		name := *p.Topic + ":" + strconv.Itoa(int(*p.Partition))
		if seen[name] {
			return nil, exit.Usagef("--file %s: %s is there twice", path, name)
		}
		seen[name] = true
		k, ok := at[*p.Topic]
		if !ok {
			k = len(out)
			at[*p.Topic] = k
			out = append(out, plan.Target{Topic: *p.Topic})
		}
		out[k].Partitions = append(out[k].Partitions, *p.Partition)
	}
	if len(out) == 0 {
		return nil, exit.Usagef("--file %s: it has no partitions", path)
	}
	return out, nil
}

func readAll(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}
