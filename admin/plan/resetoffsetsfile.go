package plan

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

// OffsetRow is one line of the file that kafka-consumer-groups.sh --export writes and --from-file reads.
type OffsetRow struct {
	Group     string // empty in the form for one group
	Topic     string
	Partition int32
	Offset    int64
}

// FormatOffsets writes rows as kafka-consumer-groups.sh --export does, to the byte: topic,partition,offset for one
// group, with the group in front for several; no heading.
func FormatOffsets(rows []OffsetRow, withGroup bool) string {
	var b strings.Builder
	for _, r := range rows {
		if withGroup {
			b.WriteString(csvField(r.Group))
			b.WriteByte(',')
		}
		b.WriteString(csvField(r.Topic))
		fmt.Fprintf(&b, ",%d,%d\n", r.Partition, r.Offset)
	}
	return b.String()
}

// csvQuoteFrom is the length in UTF-16 units above which Kafka's CSV writer (Jackson) quotes without looking.
const csvQuoteFrom = 24

// csvField quotes like Kafka's CSV writer: long texts always, others when a character is not above the comma.
func csvField(s string) string {
	quote := len(utf16.Encode([]rune(s))) > csvQuoteFrom || strings.ContainsFunc(s, func(r rune) bool { return r <= ',' })
	if !quote {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// ParseOffsets reads such a file: three columns for one group, four with the group in front. Each partition may
// stand there once.
func ParseOffsets(text string) ([]OffsetRow, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	var out []OffsetRow
	seen := map[OffsetRow]bool{}
	columns := 0
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is no CSV: %w", err)
		}
		line, _ := r.FieldPos(0)
		if columns == 0 {
			columns = len(rec)
		}
		row, err := offsetRow(rec, columns)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		key := row
		key.Offset = 0
		if seen[key] {
			return nil, fmt.Errorf("line %d: partition %s:%d stands there twice", line, row.Topic, row.Partition)
		}
		seen[key] = true
		out = append(out, row)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no lines")
	}
	return out, nil
}

func offsetRow(rec []string, columns int) (OffsetRow, error) {
	if len(rec) != columns || columns != 3 && columns != 4 {
		return OffsetRow{}, fmt.Errorf("it has %d fields; the form is topic,partition,offset or group,topic,partition,offset", len(rec))
	}
	row := OffsetRow{}
	if columns == 4 {
		if row.Group = strings.TrimSpace(rec[0]); row.Group == "" {
			return row, errors.New("the group is empty")
		}
	}
	rec = rec[columns-3:]
	row.Topic = strings.TrimSpace(rec[0])
	if err := TopicName(row.Topic); err != nil {
		return row, err
	}
	p, err := strconv.ParseInt(strings.TrimSpace(rec[1]), 10, 32)
	if err != nil || p < 0 {
		return row, fmt.Errorf("partition %q is not a number from 0 up", rec[1])
	}
	o, err := strconv.ParseInt(strings.TrimSpace(rec[2]), 10, 64)
	if err != nil || o < 0 {
		return row, fmt.Errorf("offset %q is not a number from 0 up", rec[2])
	}
	row.Partition, row.Offset = int32(p), o
	return row, nil
}

// CheckExpectedOffsets refuses moves of offsets that are neither what rows say nor what the move makes of them: the group
// has read on, or somebody else has reset it. Offsets that rows do not name are not looked at.
func CheckExpectedOffsets(moves []OffsetMove, rows []OffsetRow) error {
	type key struct {
		group, topic string
		partition    int32
	}
	want := make(map[key]int64, len(rows))
	for _, r := range rows {
		want[key{r.Group, r.Topic, r.Partition}] = r.Offset
	}
	for _, m := range moves {
		offset, ok := want[key{m.Group, m.Topic, m.Partition}]
		if !ok {
			offset, ok = want[key{"", m.Topic, m.Partition}]
		}
		if ok && m.From != offset && m.From != m.To {
			return fmt.Errorf("group %s is at offset %d of %s:%d, not at %d as expected: nothing was changed", m.Group, m.From, m.Topic, m.Partition, offset)
		}
	}
	return nil
}
