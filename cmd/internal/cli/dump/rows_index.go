package dump

import (
	"fmt"

	"kctl/admin/offline"
	"kctl/admin/rows"
)

// IndexRow is one entry of an offset index.
type IndexRow struct {
	File     string `json:"file"`
	Offset   int64  `json:"offset"`
	Position int64  `json:"position" doc:"byte in the log segment"`
	Problem  string `json:"problem,omitempty" doc:"why it does not fit the segment"`
}

// IndexKind describes IndexRow.
var IndexKind = rows.Kind[IndexRow]{
	Name: "DumpIndexEntry", Title: "entries", ID: func(r IndexRow) string { return itoa(r.Offset) },
	Columns: []rows.Column[IndexRow]{
		{Name: "OFFSET", Right: true, Cell: func(r IndexRow) string { return itoa(r.Offset) }},
		{Name: "POSITION", Right: true, Cell: func(r IndexRow) string { return itoa(r.Position) }},
		{Name: "PROBLEM", Cell: func(r IndexRow) string { return dash(r.Problem) }},
	},
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// TimeIndexRow is one entry of a time index.
type TimeIndexRow struct {
	File      string `json:"file"`
	Timestamp int64  `json:"timestamp" doc:"milliseconds since the Unix epoch"`
	Offset    int64  `json:"offset"`
	Problem   string `json:"problem,omitempty" doc:"why it does not fit the segment"`
}

// TimeIndexKind describes TimeIndexRow.
var TimeIndexKind = rows.Kind[TimeIndexRow]{
	Name: "DumpTimeIndexEntry", Title: "entries", ID: func(r TimeIndexRow) string { return itoa(r.Timestamp) },
	Columns: []rows.Column[TimeIndexRow]{
		{Name: "TIMESTAMP", Cell: func(r TimeIndexRow) string { return timeText(r.Timestamp) }},
		{Name: "MS", Right: true, Cell: func(r TimeIndexRow) string { return itoa(r.Timestamp) }},
		{Name: "OFFSET", Right: true, Cell: func(r TimeIndexRow) string { return itoa(r.Offset) }},
		{Name: "PROBLEM", Cell: func(r TimeIndexRow) string { return dash(r.Problem) }},
	},
}

// AbortedRow is one entry of a transaction index.
type AbortedRow struct {
	File             string `json:"file"`
	ProducerID       int64  `json:"producerId"`
	FirstOffset      int64  `json:"firstOffset"`
	LastOffset       int64  `json:"lastOffset"`
	LastStableOffset int64  `json:"lastStableOffset"`
	Problem          string `json:"problem,omitempty"`
}

// AbortedKind describes AbortedRow.
var AbortedKind = rows.Kind[AbortedRow]{
	Name: "DumpAbortedTransaction", Title: "aborted transactions", ID: func(r AbortedRow) string { return itoa(r.FirstOffset) },
	Columns: []rows.Column[AbortedRow]{
		{Name: "PRODUCER-ID", Right: true, Cell: func(r AbortedRow) string { return itoa(r.ProducerID) }},
		{Name: "FIRST-OFFSET", Right: true, Cell: func(r AbortedRow) string { return itoa(r.FirstOffset) }},
		{Name: "LAST-OFFSET", Right: true, Cell: func(r AbortedRow) string { return itoa(r.LastOffset) }},
		{Name: "LAST-STABLE-OFFSET", Right: true, Cell: func(r AbortedRow) string { return itoa(r.LastStableOffset) }},
		{Name: "PROBLEM", Cell: func(r AbortedRow) string { return dash(r.Problem) }},
	},
}

// ProducerRow is one producer of a producer snapshot.
type ProducerRow struct {
	File             string `json:"file"`
	ProducerID       int64  `json:"producerId"`
	ProducerEpoch    int16  `json:"producerEpoch"`
	LastSequence     int32  `json:"lastSequence"`
	LastOffset       int64  `json:"lastOffset"`
	OffsetDelta      int32  `json:"offsetDelta" doc:"the last batch begins at lastOffset-offsetDelta"`
	Timestamp        int64  `json:"timestamp" doc:"milliseconds since the Unix epoch"`
	CoordinatorEpoch int32  `json:"coordinatorEpoch" doc:"-1: it was never transactional"`
	TxnFirstOffset   int64  `json:"txnFirstOffset" doc:"of the open transaction, -1: none"`
}

// ProducerKind describes ProducerRow.
var ProducerKind = rows.Kind[ProducerRow]{
	Name: "DumpProducer", Title: "producers", ID: func(r ProducerRow) string { return itoa(r.ProducerID) },
	Columns: []rows.Column[ProducerRow]{
		{Name: "PRODUCER-ID", Right: true, Cell: func(r ProducerRow) string { return itoa(r.ProducerID) }},
		{Name: "EPOCH", Right: true, Cell: func(r ProducerRow) string { return itoa(r.ProducerEpoch) }},
		{Name: "LAST-SEQUENCE", Right: true, Cell: func(r ProducerRow) string { return itoa(r.LastSequence) }},
		{Name: "LAST-OFFSET", Right: true, Cell: func(r ProducerRow) string { return itoa(r.LastOffset) }},
		{Name: "LAST-TIMESTAMP", Cell: func(r ProducerRow) string { return timeText(r.Timestamp) }},
		{Name: "COORDINATOR-EPOCH", Right: true, Cell: func(r ProducerRow) string { return itoa(r.CoordinatorEpoch) }},
		{Name: "TXN-FIRST-OFFSET", Right: true, Cell: func(r ProducerRow) string { return itoa(r.TxnFirstOffset) }},
		{Name: "OFFSET-DELTA", Wide: true, Right: true, Cell: func(r ProducerRow) string { return itoa(r.OffsetDelta) }},
	},
}

// CheckpointRow is one line of a checkpoint, or one property.
type CheckpointRow struct {
	File      string  `json:"file"`
	Format    string  `json:"format" doc:"topic-offsets, leader-epochs, properties, json or clean-stop"`
	Topic     *string `json:"topic,omitempty"`
	Partition *int32  `json:"partition,omitempty"`
	Epoch     *int32  `json:"epoch,omitempty"`
	Offset    *int64  `json:"offset,omitempty" doc:"of a leader epoch: where it starts"`
	Key       *string `json:"key,omitempty"`
	Value     *string `json:"value,omitempty"`
}

// CheckpointKind describes CheckpointRow.
var CheckpointKind = rows.Kind[CheckpointRow]{
	Name: "DumpCheckpoint", Title: "entries", ID: checkpointID,
	Columns: []rows.Column[CheckpointRow]{
		{Name: "OBJECT", Cell: checkpointID},
		{Name: "VALUE", Cell: func(r CheckpointRow) string {
			if r.Value != nil {
				return *r.Value
			}
			return num(r.Offset)
		}},
	},
}

func checkpointID(r CheckpointRow) string {
	switch {
	case r.Key != nil:
		return *r.Key
	case r.Epoch != nil:
		return "epoch " + num(r.Epoch)
	case r.Topic != nil:
		return *r.Topic + ":" + num(r.Partition)
	}
	return ""
}

func checkpointRow(file string, format offline.CheckpointFormat, c *offline.Checkpoint) CheckpointRow {
	r := CheckpointRow{File: file, Format: string(format)}
	switch format {
	case offline.TopicOffsets:
		r.Topic, r.Partition, r.Offset = &c.Topic, &c.Partition, &c.Offset
	case offline.LeaderEpochs:
		r.Epoch, r.Offset = &c.Epoch, &c.Offset
	default:
		r.Key, r.Value = &c.Key, &c.Value
	}
	return r
}

// FileRow closes the rows of a file: how much of it is good.
type FileRow struct {
	File       string      `json:"file"`
	Sound      bool        `json:"sound" doc:"nothing in it is damaged"`
	Size       int64       `json:"size" doc:"bytes"`
	GoodBytes  int64       `json:"goodBytes" doc:"bytes in front of the first damage"`
	Unused     int64       `json:"unused" doc:"preallocated bytes at the end of an index"`
	Entries    int64       `json:"entries" doc:"batches, or entries"`
	Records    int64       `json:"records" doc:"-1: not counted"`
	BaseOffset int64       `json:"baseOffset" doc:"first offset, -1: none"`
	NextOffset int64       `json:"nextOffset" doc:"offset behind the last good batch, -1: none"`
	Damage     []DamageRow `json:"damage"`
}

// DamageRow is one damaged stretch.
type DamageRow struct {
	Position int64  `json:"position" doc:"where it begins"`
	Length   int64  `json:"length" doc:"bytes up to what is good again"`
	Offset   int64  `json:"offset" doc:"first offset that is not good, -1: unknown"`
	Cause    string `json:"cause"`
}

// FileKind describes FileRow.
var FileKind = rows.Kind[FileRow]{
	Name: "DumpFile", Title: "files", ID: func(r FileRow) string { return r.File },
	Columns: []rows.Column[FileRow]{
		{Name: "FILE", Cell: func(r FileRow) string { return r.File }},
		{Name: "SOUND", Cell: func(r FileRow) string { return map[bool]string{true: "yes", false: "no"}[r.Sound] }},
		{Name: "SIZE", Right: true, Cell: func(r FileRow) string { return itoa(r.Size) }},
		{Name: "GOOD-BYTES", Right: true, Cell: func(r FileRow) string { return itoa(r.GoodBytes) }},
		{Name: "ENTRIES", Right: true, Cell: func(r FileRow) string { return itoa(r.Entries) }},
		{Name: "RECORDS", Right: true, Cell: func(r FileRow) string { return itoa(r.Records) }},
		{Name: "BASE-OFFSET", Right: true, Cell: func(r FileRow) string { return itoa(r.BaseOffset) }},
		{Name: "NEXT-OFFSET", Right: true, Cell: func(r FileRow) string { return itoa(r.NextOffset) }},
	},
}

func fileRow(file string, r *offline.IndexReport) FileRow {
	out := FileRow{
		File: file, Size: r.Size, GoodBytes: r.GoodBytes(), Unused: r.Unused, Entries: r.Entries, Records: -1, BaseOffset: -1, NextOffset: -1,
	}
	return out.damaged(r.Damage)
}

func (r FileRow) damaged(list []offline.Damage) FileRow {
	r.Sound, r.Damage = len(list) == 0, []DamageRow{}
	for _, d := range list {
		r.Damage = append(r.Damage, DamageRow(d))
	}
	return r
}

func damageText(d *DamageRow) string {
	offset := ""
	if d.Offset >= 0 {
		offset = fmt.Sprintf(" (offset %d)", d.Offset)
	}
	return fmt.Sprintf("damaged from position %d%s for %d bytes: %s", d.Position, offset, d.Length, d.Cause)
}
