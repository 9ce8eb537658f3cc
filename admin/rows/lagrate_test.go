package rows_test

import (
	"slices"
	"testing"
	"time"

	"kctl/admin/rows"
)

func TestReplicaRates(t *testing.T) {
	at := func(broker int32, leo, lag int64) rows.ReplicaLag {
		return rows.ReplicaLag{Topic: "t", Broker: broker, LogEndOffset: leo, LagRecords: lag}
	}
	before := []rows.ReplicaLag{at(1, 100, 0), at(2, 40, 60), at(3, 40, 60), at(4, -1, -1)}
	now := []rows.ReplicaLag{at(1, 120, 0), at(2, 80, 40), at(3, 50, 70), at(4, 10, 5), at(5, 10, 5)}
	got := rows.ReplicaRates(before, now, 2*time.Second)
	cells := func(i int) []string {
		c := rows.ReplicaRateKind.Cells(got[i], false)
		h := rows.ReplicaRateKind.Header(false)
		return []string{c[slices.Index(h, "RATE")], c[slices.Index(h, "CATCH-UP")]}
	}
	for i, want := range [][]string{{"10/s", "0ms"}, {"20/s", "4.0s"}, {"5/s", "-"}, {"-", "-"}, {"-", "-"}} {
		if !slices.Equal(cells(i), want) {
			t.Errorf("replica on %d: %v, want %v", got[i].Broker, cells(i), want)
		}
	}
	if first := rows.ReplicaRates(nil, now, 0); first[0].RatePerSecond != nil || first[0].CatchUpMs != nil {
		t.Errorf("a first look has no pace: %+v", first[0])
	}
}

func TestGroupLagTotals(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	in := []rows.GroupLag{
		{Group: "g", Topic: "a", Partition: 0, MemberID: "m", CommittedOffset: 5, LagRecords: 10, LagMs: ms(7)},
		{Group: "g", Topic: "a", Partition: 1, CommittedOffset: 5, LagRecords: 30, LagMs: ms(3)},
		{Group: "g", Topic: "b", Partition: 0, CommittedOffset: -1, LagRecords: -1, Error: "nobody leads it"},
		{Group: "h", Topic: "a", Partition: 0, CommittedOffset: 0, LagRecords: 0, LagMs: ms(0)},
		{Group: "h", Topic: "a", Partition: 1, CommittedOffset: 0, LagRecords: 0},
		{Group: "i", Topic: "a", Partition: 0, CommittedOffset: 0, LagRecords: 0, LagMs: ms(0)},
		{Group: "i", Topic: "a", Partition: 1, CommittedOffset: 0, LagRecords: 4},
	}
	got := rows.GroupLagTotals(in, false)
	if len(got) != 3 || got[0].LagRecords != 40 || got[0].LagMax != 30 || got[0].LagMaxOf != "a:1" || *got[0].LagMs != 7 || got[0].Partitions != 3 ||
		got[0].Uncommitted != 1 || got[0].Unread != 2 || got[0].Errors != 1 || got[1].LagMs == nil || got[2].LagMs != nil || got[1].LagMaxOf != "" {
		t.Errorf("%+v", got)
	}
	if got = rows.GroupLagTotals(in, true); len(got) != 4 || got[0].Topic != "a" || got[1].Topic != "b" || got[1].LagRecords != 0 {
		t.Errorf("%+v", got)
	}
}
