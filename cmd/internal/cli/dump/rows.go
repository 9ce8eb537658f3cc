package dump

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kctl/admin/offline"
	"kctl/admin/rows"
)

// BatchRow is one batch of a segment.
type BatchRow struct {
	File          string `json:"file"`
	Position      int64  `json:"position" doc:"byte in the file"`
	Size          int64  `json:"size" doc:"bytes"`
	BaseOffset    int64  `json:"baseOffset"`
	LastOffset    int64  `json:"lastOffset"`
	Count         int32  `json:"count" doc:"records; -1 for a compressed message of magic 0 and 1 that was not opened"`
	Magic         int8   `json:"magic"`
	Codec         string `json:"codec"`
	TimestampType string `json:"timestampType"`
	BaseTimestamp int64  `json:"baseTimestamp" doc:"milliseconds since the Unix epoch, -1: none"`
	MaxTimestamp  int64  `json:"maxTimestamp"`
	LeaderEpoch   int32  `json:"leaderEpoch" doc:"-1 below magic 2"`
	ProducerID    int64  `json:"producerId" doc:"-1: none"`
	ProducerEpoch int16  `json:"producerEpoch"`
	BaseSequence  int32  `json:"baseSequence"`
	LastSequence  int32  `json:"lastSequence"`
	Transactional bool   `json:"transactional"`
	Control       bool   `json:"control"`
	DeleteHorizon bool   `json:"deleteHorizon" doc:"the base timestamp is the delete horizon"`
	CRC           int64  `json:"crc"`
	CRCValid      bool   `json:"crcValid"`
}

// BatchKind describes BatchRow.
var BatchKind = rows.Kind[BatchRow]{
	Name: "DumpBatch", Title: "batches", ID: func(b BatchRow) string { return strconv.FormatInt(b.BaseOffset, 10) },
	Columns: []rows.Column[BatchRow]{
		{Name: "BASE-OFFSET", Right: true, Cell: func(b BatchRow) string { return itoa(b.BaseOffset) }},
		{Name: "LAST-OFFSET", Right: true, Cell: func(b BatchRow) string { return itoa(b.LastOffset) }},
		{Name: "COUNT", Right: true, Cell: func(b BatchRow) string { return itoa(b.Count) }},
		{Name: "POSITION", Right: true, Cell: func(b BatchRow) string { return itoa(b.Position) }},
		{Name: "SIZE", Right: true, Cell: func(b BatchRow) string { return itoa(b.Size) }},
		{Name: "EPOCH", Right: true, Cell: func(b BatchRow) string { return itoa(b.LeaderEpoch) }},
		{Name: "MAX-TIMESTAMP", Cell: func(b BatchRow) string { return timeText(b.MaxTimestamp) }},
		{Name: "CODEC", Cell: func(b BatchRow) string { return b.Codec }},
		{Name: "PRODUCER", Cell: producerText},
		{Name: "FLAGS", Cell: flagsText},
		{Name: "MAGIC", Wide: true, Right: true, Cell: func(b BatchRow) string { return itoa(b.Magic) }},
		{Name: "TIMESTAMP-TYPE", Wide: true, Cell: func(b BatchRow) string { return b.TimestampType }},
		{Name: "CRC", Wide: true, Cell: func(b BatchRow) string { return fmt.Sprintf("0x%08x", b.CRC) }},
	},
}

func itoa[N ~int | ~int8 | ~int16 | ~int32 | ~int64](n N) string {
	return strconv.FormatInt(int64(n), 10)
}

func timeText(ms int64) string {
	if ms < 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// producerText is ID/EPOCH:FIRST-LAST sequence; the markers of transactions have no sequence.
func producerText(b BatchRow) string {
	if b.ProducerID < 0 {
		return "-"
	}
	if b.BaseSequence < 0 {
		return fmt.Sprintf("%d/%d", b.ProducerID, b.ProducerEpoch)
	}
	return fmt.Sprintf("%d/%d:%d-%d", b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.LastSequence)
}

func flagsText(b BatchRow) string {
	var out []string
	for _, f := range []struct {
		on   bool
		name string
	}{{b.Control, "control"}, {b.Transactional, "transactional"}, {b.DeleteHorizon, "delete-horizon"}, {!b.CRCValid, "BAD-CRC"}} {
		if f.on {
			out = append(out, f.name)
		}
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ",")
}

func batchRow(file string, b *offline.Batch) BatchRow {
	return BatchRow{
		File: file, Position: b.Position, Size: b.Size, BaseOffset: b.BaseOffset, LastOffset: b.LastOffset, Count: b.Count, Magic: b.Magic,
		Codec: b.Codec.String(), TimestampType: b.TimestampType(), BaseTimestamp: b.BaseTimestamp, MaxTimestamp: b.MaxTimestamp,
		LeaderEpoch: b.LeaderEpoch, ProducerID: b.ProducerID, ProducerEpoch: b.ProducerEpoch, BaseSequence: b.BaseSequence,
		LastSequence: b.LastSequence(), Transactional: b.Transactional, Control: b.Control, DeleteHorizon: b.DeleteHorizon,
		CRC: int64(b.CRC), CRCValid: b.CRCValid(),
	}
}

// RecordRow is one record of a segment.
type RecordRow struct {
	File      string           `json:"file"`
	Offset    int64            `json:"offset"`
	Timestamp int64            `json:"timestamp" doc:"milliseconds since the Unix epoch, -1: none"`
	Sequence  int32            `json:"sequence" doc:"-1: none"`
	KeySize   int              `json:"keySize" doc:"bytes, -1: null"`
	ValueSize int              `json:"valueSize" doc:"bytes, -1: null"`
	Encoding  string           `json:"encoding,omitempty" doc:"of key, value and header values: utf-8, or base64 when one of them is not text; with --print-data"`
	Key       *string          `json:"key,omitempty"`
	Value     *string          `json:"value,omitempty"`
	Headers   []HeaderRow      `json:"headers,omitempty"`
	Decoded   *offline.Decoded `json:"decoded,omitempty" doc:"with --decoder, and of control records"`
}

// HeaderRow is one header of a record.
type HeaderRow struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
}

// RecordKind describes RecordRow.
var RecordKind = rows.Kind[RecordRow]{
	Name: "DumpRecord", Title: "records", ID: func(r RecordRow) string { return itoa(r.Offset) },
	Columns: []rows.Column[RecordRow]{
		{Name: "OFFSET", Right: true, Cell: func(r RecordRow) string { return itoa(r.Offset) }},
		{Name: "TIMESTAMP", Cell: func(r RecordRow) string { return timeText(r.Timestamp) }},
		{Name: "SEQUENCE", Right: true, Cell: func(r RecordRow) string { return itoa(r.Sequence) }},
		{Name: "KEY-SIZE", Right: true, Cell: func(r RecordRow) string { return itoa(r.KeySize) }},
		{Name: "VALUE-SIZE", Right: true, Cell: func(r RecordRow) string { return itoa(r.ValueSize) }},
		{Name: "DATA", Cell: dataText},
	},
}

func dataText(r RecordRow) string {
	if r.Decoded != nil {
		return decodedText(r.Decoded)
	}
	if r.Encoding == "" {
		return "-"
	}
	show := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	out := "key=" + show(r.Key) + " value=" + show(r.Value)
	for _, h := range r.Headers {
		out += " " + h.Key + ":" + show(h.Value)
	}
	if r.Encoding == "base64" {
		out += " (base64)"
	}
	return out
}

// decodedText says in one line what programs read as JSON.
func decodedText(d *offline.Decoded) string {
	out := d.Type
	add := func(name, value string) {
		if value != "" {
			out += " " + name + "=" + value
		}
	}
	if d.Tombstone {
		out += " tombstone"
	}
	add("group", d.Group)
	add("topic", d.Topic)
	add("partition", num(d.Partition))
	add("offset", num(d.Offset))
	add("leaderEpoch", num(d.LeaderEpoch))
	add("metadata", d.Metadata)
	add("committed", moment(d.CommitTimestamp))
	add("expires", moment(d.ExpireTimestamp))
	add("topicId", d.TopicID)
	add("protocolType", d.ProtocolType)
	add("protocol", d.Protocol)
	add("generation", num(d.Generation))
	add("leader", d.Leader)
	add("stateSince", moment(d.StateTimestamp))
	for i := range d.Members {
		add("member", memberText(&d.Members[i]))
	}
	add("transactionalId", d.TransactionalID)
	add("producerId", num(d.ProducerID))
	add("producerEpoch", num(d.ProducerEpoch))
	add("state", d.State)
	add("timeoutMs", num(d.TimeoutMs))
	add("partitions", strings.Join(d.Partitions, ","))
	add("started", moment(d.StartTimestamp))
	add("updated", moment(d.LastUpdate))
	add("previousProducerId", num(d.PreviousProducerID))
	add("nextProducerId", num(d.NextProducerID))
	add("nextProducerEpoch", num(d.NextProducerEpoch))
	add("clientTransactionVersion", num(d.ClientTransactionVersion))
	add("coordinatorEpoch", num(d.CoordinatorEpoch))
	for _, part := range []map[string]any{d.Key, d.Data} {
		for _, name := range slices.Sorted(maps.Keys(part)) {
			if name == "groupId" { // shown as group
				continue
			}
			text, err := json.Marshal(part[name])
			if s, ok := part[name].(string); ok || err != nil {
				text = []byte(s)
			}
			add(name, string(text))
		}
	}
	add("problem", d.Problem)
	add("hex", d.Hex)
	return out
}

// moment is a time, nothing when there is none.
func moment(ms *int64) string {
	if ms == nil || *ms < 0 {
		return ""
	}
	return timeText(*ms)
}

// memberText is ID(INSTANCE)[ASSIGNED].
func memberText(m *offline.Member) string {
	out := m.ID
	if m.InstanceID != "" {
		out += "(" + m.InstanceID + ")"
	}
	return out + "[" + strings.Join(m.Assigned, ",") + "]"
}

func num[N ~int16 | ~int32 | ~int64](n *N) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}

func recordRow(file string, r *offline.Record, data bool) RecordRow {
	out := RecordRow{File: file, Offset: r.Offset, Timestamp: r.Timestamp, Sequence: r.Sequence, KeySize: r.KeySize, ValueSize: r.ValueSize}
	if !data {
		return out
	}
	out.Encoding = "utf-8"
	valid := utf8.Valid(r.Key) && utf8.Valid(r.Value)
	for _, h := range r.Headers {
		valid = valid && utf8.Valid(h.Value)
	}
	if !valid {
		out.Encoding = "base64"
	}
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		if !valid {
			s = base64.StdEncoding.EncodeToString(b)
		}
		return &s
	}
	out.Key, out.Value = text(r.Key), text(r.Value)
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, HeaderRow{strings.ToValidUTF8(h.Key, "\uFFFD"), text(h.Value)})
	}
	return out
}

// Rows are the kinds of all rows, for their schemas.
func Rows() map[string]any {
	return map[string]any{
		BatchKind.Name: BatchRow{}, RecordKind.Name: RecordRow{}, IndexKind.Name: IndexRow{}, TimeIndexKind.Name: TimeIndexRow{},
		AbortedKind.Name: AbortedRow{}, ProducerKind.Name: ProducerRow{}, CheckpointKind.Name: CheckpointRow{}, FileKind.Name: FileRow{},
	}
}
