package harness

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// batchHeadBytes is the part of a record batch that says where it ends: base offset and length.
const batchHeadBytes = 12

// LogBytes returns the record batches of a partition folder that lie wholly below the offset, in order,
// whatever the segment boundaries are. It reads Kafka's format by itself, apart from the engine's code.
func LogBytes(dir string, below int64) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no segments in %s (%v)", dir, err)
	}
	slices.Sort(files)
	var out []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for len(data) >= batchHeadBytes {
			base := int64(binary.BigEndian.Uint64(data))
			size := batchHeadBytes + int(binary.BigEndian.Uint32(data[8:]))
			if base >= below {
				return out, nil
			}
			if size > len(data) || size < 61 {
				return nil, fmt.Errorf("%s: batch at offset %d has size %d, %d bytes are left", f, base, size, len(data))
			}
			out = append(out, data[:size]...)
			data = data[size:]
		}
	}
	return out, nil
}

// CompareReplicas checks that the partition's replicas are byte-identical below the offset.
func (c *Cluster) CompareReplicas(topic string, partition int32, replicas []int32, below int64) error {
	var first []byte
	for i, id := range replicas {
		got, err := LogBytes(filepath.Join(c.Broker(id).Dir, fmt.Sprintf("%s-%d", topic, partition)), below)
		if err != nil {
			return err
		}
		if i == 0 {
			first = got
			continue
		}
		if !bytes.Equal(first, got) {
			return fmt.Errorf("%s-%d below offset %d: broker %d has %d bytes, broker %d %d bytes, first difference at byte %d",
				topic, partition, below, replicas[0], len(first), id, len(got), firstDifference(first, got))
		}
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// GrepLogs returns the lines of all broker logs that contain one of the words, at most n.
func (c *Cluster) GrepLogs(n int, words ...string) []string {
	var out []string
	for _, b := range c.brokers {
		data, err := os.ReadFile(b.LogFile())
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			for _, w := range words {
				if len(out) < n && strings.Contains(line, w) {
					out = append(out, fmt.Sprintf("broker %d: %s", b.ID, strings.TrimSpace(line)))
				}
			}
		}
	}
	return out
}
