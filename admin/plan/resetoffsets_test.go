package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func TestResetOffsets(t *testing.T) {
	base := plan.ResetInput{Group: "g", Topic: "t", Committed: 50, Start: 10, End: 100, AtTime: 70, File: 60}
	with := func(f func(*plan.ResetInput)) plan.ResetInput { in := base; f(&in); return in }
	none := with(func(in *plan.ResetInput) { in.Committed = -1 })
	for _, tt := range []struct {
		name   string
		reset  plan.Reset
		in     plan.ResetInput
		to     int64
		note   string // a part of it; empty: no note
		err    string
		change bool
	}{
		{"earliest", plan.Reset{Strategy: plan.ToEarliest}, base, 10, "", "", true},
		{"latest", plan.Reset{Strategy: plan.ToLatest}, base, 100, "", "", true},
		{"latest of nothing committed", plan.Reset{Strategy: plan.ToLatest}, none, 100, "", "", true},
		{"datetime", plan.Reset{Strategy: plan.ToDatetime}, base, 70, "", "", true},
		{"datetime after the last record", plan.Reset{Strategy: plan.ToDatetime}, with(func(in *plan.ResetInput) { in.AtTime = -1 }), 100, "no record is that young", "", true},
		{"duration", plan.Reset{Strategy: plan.ByDuration}, base, 70, "", "", true},
		{"shift forward", plan.Reset{Strategy: plan.ShiftBy, Offset: 5}, base, 55, "", "", true},
		{"shift back", plan.Reset{Strategy: plan.ShiftBy, Offset: -5}, base, 45, "", "", true},
		{"shift before the start", plan.Reset{Strategy: plan.ShiftBy, Offset: -45}, base, 10, "5 is before the log's start", "", true},
		{"shift past the end", plan.Reset{Strategy: plan.ShiftBy, Offset: 500}, base, 100, "550 is past the log's end", "", true},
		{"shift does not wrap", plan.Reset{Strategy: plan.ShiftBy, Offset: 1<<63 - 1}, base, 100, "past the log's end", "", true},
		{"shift does not wrap down", plan.Reset{Strategy: plan.ShiftBy, Offset: -1 << 63}, base, 10, "before the log's start", "", true},
		{"shift of nothing", plan.Reset{Strategy: plan.ShiftBy, Offset: 5}, none, -1, "", "nothing is committed", false},
		{"offset", plan.Reset{Strategy: plan.ToOffset, Offset: 33}, base, 33, "", "", true},
		{"offset as it is", plan.Reset{Strategy: plan.ToOffset, Offset: 50}, base, 50, "", "", false},
		{"offset too low", plan.Reset{Strategy: plan.ToOffset, Offset: 3}, base, 10, "3 is before", "", true},
		{"offset too high", plan.Reset{Strategy: plan.ToOffset, Offset: 101}, base, 100, "101 is past", "", true},
		{"current", plan.Reset{Strategy: plan.ToCurrent}, base, 50, "", "", false},
		{"current of nothing", plan.Reset{Strategy: plan.ToCurrent}, none, 100, "nothing was committed", "", true},
		{"current outside the log", plan.Reset{Strategy: plan.ToCurrent}, with(func(in *plan.ResetInput) { in.Committed = 5 }), 5, "outside the log, 10 to 100", "", false},
		{"file", plan.Reset{Strategy: plan.FromFile}, base, 60, "", "", true},
		{"not in the file", plan.Reset{Strategy: plan.FromFile}, with(func(in *plan.ResetInput) { in.File = -1 }), -1, "", "the file has no offset", false},
		{"no leader", plan.Reset{Strategy: plan.ToLatest}, with(func(in *plan.ResetInput) { in.Err = "nobody leads it" }), -1, "", "nobody leads it", false},
	} {
		m := plan.ResetOffsets(tt.reset, []plan.ResetInput{tt.in})[0]
		if m.To != tt.to || m.From != tt.in.Committed || m.Changes() != tt.change || (m.Note == "") != (tt.note == "") || !strings.Contains(m.Note, tt.note) ||
			(m.Err == "") != (tt.err == "") || !strings.Contains(m.Err, tt.err) {
			t.Errorf("%s: %+v", tt.name, m)
		}
		if m.Err == "" && m.Lag != max(0, tt.in.End-m.To) {
			t.Errorf("%s: lag %d", tt.name, m.Lag)
		}
	}
}

func TestGroupPartitions(t *testing.T) {
	tp := func(topic string, p int32) cluster.TopicPartition {
		return cluster.TopicPartition{Topic: topic, Partition: p}
	}
	all := map[string][]int32{"a": {0, 1}, "b": {0}}
	committed := []cluster.TopicPartition{tp("b", 0), tp("a", 1)}
	for _, tt := range []struct {
		targets []plan.Target
		want    []cluster.TopicPartition
	}{
		{nil, []cluster.TopicPartition{tp("a", 1), tp("b", 0)}},
		{[]plan.Target{{Topic: "b"}, {Topic: "a"}}, []cluster.TopicPartition{tp("a", 0), tp("a", 1), tp("b", 0)}},
		{[]plan.Target{{Topic: "a", Partitions: []int32{7}}}, []cluster.TopicPartition{tp("a", 7)}},
	} {
		if d := cmp.Diff(tt.want, plan.GroupPartitions(tt.targets, all, committed)); d != "" {
			t.Error(d)
		}
	}
}

// TestOffsetsFile holds the bytes that kafka-consumer-groups.sh 3.9.1 --export writes.
func TestOffsetsFile(t *testing.T) {
	rows := []plan.OffsetRow{{Topic: "orders", Partition: 0, Offset: 5}, {Topic: "a-topic-of-twentyfive-char", Partition: 11, Offset: 1 << 40}}
	text := "orders,0,5\n\"a-topic-of-twentyfive-char\",11,1099511627776\n"
	if got := plan.FormatOffsets(rows, false); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	back, err := plan.ParseOffsets(text)
	if d := cmp.Diff(rows, back); err != nil || d != "" {
		t.Error(err, d)
	}
	rows = []plan.OffsetRow{{Group: `my "group", x`, Topic: "orders", Partition: 0, Offset: 5}, {Group: "my group", Topic: "orders", Partition: 0, Offset: 6}}
	text = "\"my \"\"group\"\", x\",orders,0,5\n\"my group\",orders,0,6\n"
	if got := plan.FormatOffsets(rows, true); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	back, err = plan.ParseOffsets(strings.ReplaceAll(text, "\n", "\r\n") + "\n")
	if d := cmp.Diff(rows, back); err != nil || d != "" {
		t.Error(err, d)
	}
	for text, want := range map[string]string{
		"": "no lines", "a,0\n": "2 fields", "a,0,1,2,3\n": "5 fields", "a,0,1\ng,a,0,1\n": "line 2: it has 4 fields", "a,-1,0\n": "partition",
		"a,0,-5\n": "offset", "a,x,0\n": "partition", "a b,0,0\n": "not legal", "a,0,1\na,0,2\n": "line 2: partition a:0 stands there twice",
		"\"a,0,0\n": "no CSV", ",a,0,0\n": "group is empty", "a,0,99999999999999999999\n": "offset",
	} {
		if _, err := plan.ParseOffsets(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseTime(t *testing.T) {
	want := time.Date(2024, 5, 1, 10, 30, 15, 250_000_000, time.UTC)
	for _, s := range []string{"2024-05-01T10:30:15.250", "2024-05-01T10:30:15.250Z", "2024-05-01T12:30:15.250+02:00", "2024-05-01T12:30:15.250+0200",
		"2024-05-01T12:30:15.250+02", "2024-05-01 10:30:15.25", "1714559415250"} {
		if got, err := plan.ParseTime(s); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v %v", s, got, err)
		}
	}
	if got, err := plan.ParseTime("2024-05-01"); err != nil || got.Hour() != 0 || got.Day() != 1 {
		t.Errorf("%v %v", got, err)
	}
	for _, s := range []string{"", "yesterday", "12", "2024-13-01", "2024-05-01T25:00"} {
		if got, err := plan.ParseTime(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"PT1H30M": 90 * time.Minute, "P2D": 48 * time.Hour, "P1W": 7 * 24 * time.Hour, "p1dt2h3m4.5s": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond,
		"90m": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
	} {
		if got, err := plan.ParseDuration(s); err != nil || got != want {
			t.Errorf("%q: %v %v", s, got, err)
		}
	}
	for _, s := range []string{"", "P", "PT", "P1DT", "-5m", "0s", "1", "d", "PT-1H", "P99999999999D"} {
		if got, err := plan.ParseDuration(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

// FuzzOffsetsFile: a file is refused or read, and what was read is written and read again alike.
func FuzzOffsetsFile(f *testing.F) {
	for _, s := range []string{"a,0,1\n", "g,a,0,1\n", "\"a\",0,1\r\n", "a,0\n", "\x00", "\"", "a,0,1\n\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := plan.ParseOffsets(text)
		if err != nil {
			return
		}
		again, err := plan.ParseOffsets(plan.FormatOffsets(rows, rows[0].Group != ""))
		if d := cmp.Diff(rows, again); err != nil || d != "" {
			t.Fatalf("%q: %v %s", text, err, d)
		}
	})
}

// FuzzTimes: no text makes the parsers of times panic, and none gives a duration that is not above zero.
func FuzzTimes(f *testing.F) {
	for _, s := range []string{"2024-05-01T10:00:00.000", "PT1H", "7d", "99999999999999999999", "P1WT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = plan.ParseTime(s)
		if d, err := plan.ParseDuration(s); err == nil && d <= 0 {
			t.Fatalf("%q is %v", s, d)
		}
	})
}

func TestCheckExpectedOffsets(t *testing.T) {
	move := plan.OffsetMove{Group: "g", Topic: "t", Partition: 1, From: 5, To: 9}
	for name, tc := range map[string]struct {
		rows []plan.OffsetRow
		want bool
	}{
		"nothing expected":    {nil, true},
		"as expected":         {[]plan.OffsetRow{{Topic: "t", Partition: 1, Offset: 5}}, true},
		"read on":             {[]plan.OffsetRow{{Topic: "t", Partition: 1, Offset: 4}}, false},
		"there already":       {[]plan.OffsetRow{{Topic: "t", Partition: 1, Offset: 9}}, false},
		"of this group":       {[]plan.OffsetRow{{Group: "g", Topic: "t", Partition: 1, Offset: 4}}, false},
		"of another group":    {[]plan.OffsetRow{{Group: "h", Topic: "t", Partition: 1, Offset: 4}}, true},
		"another partition":   {[]plan.OffsetRow{{Topic: "t", Partition: 2, Offset: 4}}, true},
		"its own comes first": {[]plan.OffsetRow{{Topic: "t", Partition: 1, Offset: 4}, {Group: "g", Topic: "t", Partition: 1, Offset: 5}}, true},
	} {
		if err := plan.CheckExpectedOffsets([]plan.OffsetMove{move}, tc.rows); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	move.From = 9
	if err := plan.CheckExpectedOffsets([]plan.OffsetMove{move}, []plan.OffsetRow{{Topic: "t", Partition: 1, Offset: 4}}); err != nil {
		t.Errorf("an offset that is where it is to be: %v", err)
	}
}
