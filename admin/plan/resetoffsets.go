package plan

import (
	"fmt"
	"slices"
	"strings"

	"kctl/zkutil/cluster"
)

// ResetStrategy is a way to choose new offsets; the words are those of kafka-consumer-groups.sh.
type ResetStrategy string

// The strategies. ToDatetime and ByDuration differ only in how their time was given.
const (
	ToEarliest ResetStrategy = "to-earliest"
	ToLatest   ResetStrategy = "to-latest"
	ToDatetime ResetStrategy = "to-datetime"
	ByDuration ResetStrategy = "by-duration"
	ShiftBy    ResetStrategy = "shift-by"
	ToOffset   ResetStrategy = "to-offset"
	ToCurrent  ResetStrategy = "to-current"
	FromFile   ResetStrategy = "from-file"
)

// NeedsTime reports whether the strategy needs the offset at a point in time.
func (s ResetStrategy) NeedsTime() bool { return s == ToDatetime || s == ByDuration }

// Reset says how offsets are to be chosen.
type Reset struct {
	Strategy ResetStrategy
	Offset   int64 // of ToOffset; records to move by, either sign, of ShiftBy
}

// ResetInput is what is known of one partition before its offset is reset. Offsets are -1 when there is none.
type ResetInput struct {
	Group     string
	Topic     string
	Partition int32
	Committed int64  // -1: nothing is committed
	Start     int64  // of the log
	End       int64  // what a consumer can reach
	AtTime    int64  // first offset at or after the time; -1: no record is that young
	File      int64  // what the file says; -1: nothing
	Err       string // why the log's ends are not known; empty when they are
}

// OffsetMove is what a reset does to one partition.
type OffsetMove struct {
	Group     string
	Topic     string
	Partition int32
	From      int64 // -1: nothing was committed
	To        int64
	Lag       int64  // records to be read from To on
	Note      string // how To differs from what was asked, and why
	Err       string // why it cannot be reset; To is -1 then
}

// Changes reports whether the move writes anything.
func (m OffsetMove) Changes() bool { return m.Err == "" && m.From != m.To }

// ResetOffsets chooses the new offset of every partition. An offset outside the log is moved to the log's nearest
// end, as kafka-consumer-groups.sh does, and the row says so: ToCurrent alone leaves what is committed as it is.
func ResetOffsets(r Reset, in []ResetInput) []OffsetMove {
	out := make([]OffsetMove, len(in))
	for i := range in {
		out[i] = resetOne(r, &in[i])
	}
	return out
}

func resetOne(r Reset, in *ResetInput) OffsetMove {
	m := OffsetMove{Group: in.Group, Topic: in.Topic, Partition: in.Partition, From: in.Committed, To: -1}
	if in.Err != "" {
		m.Err = in.Err
		return m
	}
	wanted := int64(0)
	switch r.Strategy {
	case ToEarliest:
		wanted = in.Start
	case ToLatest:
		wanted = in.End
	case ToOffset:
		wanted = r.Offset
	case ToDatetime, ByDuration:
		if wanted = in.AtTime; wanted < 0 {
			wanted, m.Note = in.End, "no record is that young: the end of the log"
		}
	case ToCurrent:
		if wanted = in.Committed; wanted < 0 {
			wanted, m.Note = in.End, "nothing was committed: the end of the log"
		}
	case ShiftBy:
		if in.Committed < 0 {
			m.Err = "nothing is committed that could be shifted"
			return m
		}
		wanted = saturatingAdd(in.Committed, r.Offset)
	case FromFile:
		if wanted = in.File; wanted < 0 {
			m.Err = "the file has no offset for it"
			return m
		}
	}
	m.To = min(max(wanted, in.Start), in.End)
	switch {
	case r.Strategy == ToCurrent && m.To != wanted:
		m.To, m.Note = wanted, fmt.Sprintf("it lies outside the log, %d to %d", in.Start, in.End)
	case wanted < in.Start:
		m.Note = fmt.Sprintf("%d is before the log's start", wanted)
	case wanted > in.End:
		m.Note = fmt.Sprintf("%d is past the log's end", wanted)
	}
	m.Lag = max(0, in.End-m.To)
	return m
}

// saturatingAdd adds without wrapping round.
func saturatingAdd(a, b int64) int64 {
	sum := a + b
	switch {
	case b > 0 && sum < a:
		return 1<<63 - 1
	case b < 0 && sum > a:
		return 0
	}
	return sum
}

// GroupPartitions are the partitions that a reset concerns: those of the targets, whose topics exist with all, or with
// no targets every partition that has an offset. They are sorted.
func GroupPartitions(targets []Target, all map[string][]int32, committed []cluster.TopicPartition) []cluster.TopicPartition {
	var out []cluster.TopicPartition
	for _, t := range targets {
		parts := t.Partitions
		if len(parts) == 0 {
			parts = all[t.Topic]
		}
		for _, p := range parts {
			out = append(out, cluster.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	if len(targets) == 0 {
		out = append(out, committed...)
	}
	slices.SortFunc(out, func(a, b cluster.TopicPartition) int {
		if d := strings.Compare(a.Topic, b.Topic); d != 0 {
			return d
		}
		return int(a.Partition) - int(b.Partition)
	})
	return slices.Compact(out)
}
