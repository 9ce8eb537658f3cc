package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// textFileMax bounds every text file of a log directory that is read into memory.
const textFileMax = 64 << 20

// readAll reads a whole file of at most textFileMax bytes.
func readAll(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > textFileMax {
		return nil, fmt.Errorf("read %s: %d bytes: %w", name, size, ErrMalformed)
	}
	buf := make([]byte, size)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return buf[:n], nil
}

// writeAtomic replaces a file so that after a crash either the old or the new contents are there. With sync
// the new contents are durable on return; without, only a process crash is covered.
func writeAtomic(fs vfs.FS, name string, data []byte, sync bool) error {
	tmp := name + extTmp
	f, err := fs.Create(tmp)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.WriteAt(data, 0)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := fs.Rename(tmp, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if sync {
		if err := fs.SyncDir(filepath.Dir(name)); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// checkpointLines splits a checkpoint file: version 0, number of entries, one entry per line. The entry
// count must agree with the lines, so a cut-off file is noticed.
func checkpointLines(data []byte) ([]string, error) {
	lines := strings.Split(string(data), "\n")
	if len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) < 2 || lines[0] != "0" {
		return nil, fmt.Errorf("checkpoint header: %w", ErrMalformed)
	}
	n, err := strconv.Atoi(lines[1])
	if err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("checkpoint says %q entries and has %d: %w", lines[1], len(lines)-2, ErrMalformed)
	}
	return lines[2:], nil
}

// offsets is the content of one of the offset checkpoints of a log directory.
type offsets map[cluster.TopicPartition]int64

func parseOffsets(data []byte) (offsets, error) {
	lines, err := checkpointLines(data)
	if err != nil {
		return nil, err
	}
	out := make(offsets, len(lines))
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("checkpoint line %q: %w", line, ErrMalformed)
		}
		p, err1 := strconv.ParseInt(f[1], 10, 32)
		o, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil || p < 0 || o < 0 {
			return nil, fmt.Errorf("checkpoint line %q: %w", line, ErrMalformed)
		}
		out[cluster.TopicPartition{Topic: f[0], Partition: int32(p)}] = o
	}
	return out, nil
}

// format writes the entries in order, so that equal contents are equal bytes.
func (o offsets) format() []byte {
	tps := make([]cluster.TopicPartition, 0, len(o))
	for tp := range o {
		tps = append(tps, tp)
	}
	slices.SortFunc(tps, cluster.TopicPartition.Compare)
	buf := make([]byte, 0, 16+48*len(tps))
	buf = append(buf, "0\n"...)
	buf = strconv.AppendInt(buf, int64(len(tps)), 10)
	buf = append(buf, '\n')
	for _, tp := range tps {
		buf = append(buf, tp.Topic...)
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, int64(tp.Partition), 10)
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, o[tp], 10)
		buf = append(buf, '\n')
	}
	return buf
}

// epochEntry says at which offset a leader epoch began.
type epochEntry struct {
	Epoch cluster.LeaderEpoch
	Start int64
}

func parseEpochs(data []byte) ([]epochEntry, error) {
	lines, err := checkpointLines(data)
	if err != nil {
		return nil, err
	}
	out := make([]epochEntry, 0, len(lines))
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("epoch line %q: %w", line, ErrMalformed)
		}
		e, err1 := strconv.ParseInt(f[0], 10, 32)
		s, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 != nil || err2 != nil || e < 0 || s < 0 {
			return nil, fmt.Errorf("epoch line %q: %w", line, ErrMalformed)
		}
		out = append(out, epochEntry{cluster.LeaderEpoch(e), s})
	}
	return out, nil
}

func formatEpochs(entries []epochEntry) []byte {
	buf := []byte("0\n")
	buf = strconv.AppendInt(buf, int64(len(entries)), 10)
	buf = append(buf, '\n')
	for _, e := range entries {
		buf = strconv.AppendInt(buf, int64(e.Epoch), 10)
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, e.Start, 10)
		buf = append(buf, '\n')
	}
	return buf
}

// properties is a Java properties file as far as Kafka's own files use it; unknown keys keep their place.
type properties struct {
	keys   []string
	values map[string]string
}

func parseProperties(data []byte) (properties, error) {
	p := properties{values: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			if k, v, ok = strings.Cut(line, ":"); !ok {
				return p, fmt.Errorf("line %q is not key=value: %w", line, ErrMalformed)
			}
		}
		p.set(strings.TrimSpace(k), strings.TrimSpace(v))
	}
	return p, nil
}

func (p *properties) set(key, value string) {
	if _, ok := p.values[key]; !ok {
		p.keys = append(p.keys, key)
	}
	p.values[key] = value
}

func (p *properties) format() []byte {
	var buf bytes.Buffer
	buf.WriteString("#\n")
	for _, k := range p.keys {
		fmt.Fprintf(&buf, "%s=%s\n", k, p.values[k])
	}
	return buf.Bytes()
}

// metaProperties identifies a log directory's owner.
type metaProperties struct {
	BrokerID  int64 // -1 when absent
	ClusterID string
}

func parseMeta(data []byte) (metaProperties, error) {
	p, err := parseProperties(data)
	if err != nil {
		return metaProperties{}, err
	}
	out := metaProperties{BrokerID: -1, ClusterID: p.values["cluster.id"]}
	switch version := p.values["version"]; version {
	case "0":
		if v, ok := p.values["broker.id"]; ok {
			if out.BrokerID, err = strconv.ParseInt(v, 10, 32); err != nil || out.BrokerID < 0 {
				return metaProperties{}, fmt.Errorf("broker.id %q: %w", v, ErrMalformed)
			}
		}
		return out, nil
	default:
		return metaProperties{}, fmt.Errorf("version %q, only 0 (ZooKeeper mode) is known: %w", version, ErrMalformed)
	}
}

func formatMeta(m metaProperties) []byte {
	p := properties{values: map[string]string{}}
	p.set("broker.id", strconv.FormatInt(m.BrokerID, 10))
	if m.ClusterID != "" {
		p.set("cluster.id", m.ClusterID)
	}
	p.set("version", "0")
	return p.format()
}

// parsePartitionMetadata reads partition.metadata: two lines, version and topic_id.
func parsePartitionMetadata(data []byte) (cluster.TopicID, error) {
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) != 2 || lines[0] != "version: 0" {
		return cluster.TopicID{}, fmt.Errorf("partition metadata %q: %w", truncated(data), ErrMalformed)
	}
	text, ok := strings.CutPrefix(lines[1], "topic_id: ")
	if !ok {
		return cluster.TopicID{}, fmt.Errorf("partition metadata %q: %w", truncated(data), ErrMalformed)
	}
	id, err := cluster.ParseTopicID(text)
	if err != nil || id.IsZero() {
		return cluster.TopicID{}, fmt.Errorf("topic id %q: %w", text, ErrMalformed)
	}
	return id, nil
}

func truncated(data []byte) []byte { return data[:min(len(data), 80)] }

// formatPartitionMetadata has no final newline: Apache Kafka's writer leaves it out as well.
func formatPartitionMetadata(id cluster.TopicID) []byte {
	return []byte("version: 0\ntopic_id: " + id.String())
}

// cleanMark is the content of .kafka_cleanshutdown.
type cleanMark struct {
	Version     int   `json:"version"`
	BrokerEpoch int64 `json:"brokerEpoch"`
}

// parseCleanMark reads the mark; an empty file, as written before Kafka 3.7, counts with epoch -1.
func parseCleanMark(data []byte) (cleanMark, error) {
	m := cleanMark{BrokerEpoch: -1}
	if len(bytes.TrimSpace(data)) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return cleanMark{}, fmt.Errorf("clean-shutdown mark: %v: %w", err, ErrMalformed)
	}
	if m.Version < 0 || m.Version > math.MaxInt16 {
		return cleanMark{}, fmt.Errorf("clean-shutdown mark version %d: %w", m.Version, ErrMalformed)
	}
	return m, nil
}

func formatCleanMark(epoch cluster.BrokerEpoch) []byte {
	out, err := json.Marshal(cleanMark{BrokerEpoch: int64(epoch)})
	if err != nil {
		panic(err) // two integers
	}
	return out
}
