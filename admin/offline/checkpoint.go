package offline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Checkpoint is one line of a checkpoint file, or one property of a file of properties.
type Checkpoint struct {
	Topic     string // with Partition: topic checkpoints
	Partition int32
	Epoch     int32 // leader-epoch-checkpoint
	Offset    int64
	Key       string // properties
	Value     string
}

// CheckpointFormat is what a checkpoint file holds.
type CheckpointFormat string

// The formats.
const (
	TopicOffsets CheckpointFormat = "topic-offsets" // recovery-point-, replication-, log-start- and cleaner-offset-checkpoint
	LeaderEpochs CheckpointFormat = "leader-epochs" // leader-epoch-checkpoint
	Properties   CheckpointFormat = "properties"    // meta.properties, partition.metadata
	JSONFile     CheckpointFormat = "json"          // quorum-state
	CleanStop    CheckpointFormat = "clean-stop"    // .kafka_cleanshutdown: JSON, or nothing before Apache Kafka 3.7
)

// CheckpointFormatOf names the format of a file by its name.
func CheckpointFormatOf(name string) (CheckpointFormat, bool) {
	switch base := path.Base(name); base {
	case "leader-epoch-checkpoint":
		return LeaderEpochs, true
	case "meta.properties", "partition.metadata":
		return Properties, true
	case "quorum-state":
		return JSONFile, true
	case ".kafka_cleanshutdown":
		return CleanStop, true
	default:
		return TopicOffsets, strings.HasSuffix(base, "-checkpoint")
	}
}

// lineMax bounds a line: a topic name has at most 249 characters.
const lineMax = 64 << 10

// ReadCheckpoint reads a file of that format and hands each entry to fn. Brokers make checkpoints empty and read them as without
// entries: that of a replica without records stays so.
func ReadCheckpoint(r io.Reader, size int64, format CheckpointFormat, fn func(*Checkpoint) error) (*IndexReport, error) {
	c := &checkpointFile{sc: bufio.NewScanner(r), report: &IndexReport{Size: size}, fn: fn}
	c.sc.Buffer(nil, lineMax)
	c.sc.Split(scanLines)
	switch format {
	case Properties:
		return c.report, c.properties()
	case JSONFile, CleanStop:
		if size == 0 && format == CleanStop {
			return c.report, nil
		}
		return c.report, c.json(r)
	}
	if size == 0 {
		return c.report, nil
	}
	return c.report, c.lines(format)
}

// scanLines is bufio.ScanLines with the line ends left in, so that positions can be counted.
func scanLines(data []byte, atEOF bool) (int, []byte, error) {
	for i, b := range data {
		if b == '\n' {
			return i + 1, data[:i+1], nil
		}
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

type checkpointFile struct {
	sc     *bufio.Scanner
	report *IndexReport
	fn     func(*Checkpoint) error
	at     int64 // where the current line begins
	end    int64
}

func (c *checkpointFile) line() (string, bool) {
	if !c.sc.Scan() {
		c.at = c.end
		return "", false
	}
	c.at, c.end = c.end, c.end+int64(len(c.sc.Bytes()))
	return strings.TrimRight(c.sc.Text(), "\r\n"), true
}

func (c *checkpointFile) damage(cause string) {
	c.report.Damage = append(c.report.Damage, Damage{Position: c.at, Length: c.report.Size - c.at, Offset: -1, Cause: cause})
}

func (c *checkpointFile) hand(e *Checkpoint) error {
	c.report.Entries++
	return c.fn(e)
}

func (c *checkpointFile) lines(format CheckpointFormat) error {
	var want int64
	for i, what := range []string{"version", "number of entries"} {
		text, ok := c.line()
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if !ok || err != nil || n < 0 || i == 0 && n != 0 {
			c.damage(fmt.Sprintf("line %d %q is not a %s that is known", i+1, text, what))
			return c.sc.Err()
		}
		want = n
	}
	for n := int64(0); ; n++ {
		text, ok := c.line()
		if !ok {
			if err := c.sc.Err(); err != nil {
				c.damage(err.Error())
			} else if n != want {
				c.damage(fmt.Sprintf("it promises %d entries and has %d", want, n))
			}
			return nil
		}
		e, err := parseLine(text, format)
		if err != nil {
			c.damage(fmt.Sprintf("line %d: %v", n+3, err))
			return nil
		}
		if n == want {
			c.damage(fmt.Sprintf("it promises %d entries and has more", want))
			return nil
		}
		if err := c.hand(e); err != nil {
			return err
		}
	}
}

func parseLine(text string, format CheckpointFormat) (*Checkpoint, error) {
	f := strings.Fields(text)
	if format == LeaderEpochs {
		if len(f) != 2 {
			return nil, fmt.Errorf("%q is not EPOCH START-OFFSET", text)
		}
		epoch, err := strconv.ParseInt(f[0], 10, 32)
		offset, err2 := strconv.ParseInt(f[1], 10, 64)
		if err != nil || err2 != nil || epoch < 0 || offset < 0 {
			return nil, fmt.Errorf("%q is not EPOCH START-OFFSET", text)
		}
		return &Checkpoint{Epoch: int32(epoch), Offset: offset, Partition: -1}, nil
	}
	if len(f) != 3 {
		return nil, fmt.Errorf("%q is not TOPIC PARTITION OFFSET", text)
	}
	partition, err := strconv.ParseInt(f[1], 10, 32)
	offset, err2 := strconv.ParseInt(f[2], 10, 64)
	if err != nil || err2 != nil || partition < 0 {
		return nil, fmt.Errorf("%q is not TOPIC PARTITION OFFSET", text)
	}
	return &Checkpoint{Topic: f[0], Partition: int32(partition), Offset: offset, Epoch: -1}, nil
}

// properties reads key=value and key: value lines; # begins a comment.
func (c *checkpointFile) properties() error {
	for {
		text, ok := c.line()
		if !ok {
			if err := c.sc.Err(); err != nil {
				c.damage(err.Error())
			} else if c.report.Entries == 0 {
				c.damage("it has no properties")
			}
			return nil
		}
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		key, value, ok := property(text)
		if !ok {
			c.damage(fmt.Sprintf("%q is not KEY=VALUE", text))
			return nil
		}
		if err := c.hand(&Checkpoint{Key: key, Value: value, Partition: -1, Epoch: -1}); err != nil {
			return err
		}
	}
}

// property reads a line as Java writes it: a backslash stands before a character that has a meaning, such as : or = in the id of
// a cluster. Escapes of four hexadecimal digits, which nothing in these files needs, stay as they are.
func property(line string) (key, value string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] != 'u':
			i++
			b.WriteByte(line[i])
		case (c == '=' || c == ':') && !ok:
			key, ok = strings.TrimSpace(b.String()), true
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return key, strings.TrimSpace(b.String()), ok && key != ""
}

func (c *checkpointFile) json(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		c.damage(err.Error())
		return nil
	}
	var keys []string
	for k := range doc {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if err := c.hand(&Checkpoint{Key: k, Value: string(doc[k]), Partition: -1, Epoch: -1}); err != nil {
			return err
		}
	}
	return nil
}
