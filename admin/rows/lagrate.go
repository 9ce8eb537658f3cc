package rows

import "time"

// ReplicaRate is ReplicaLag with what the last two looks say of its pace; lag replicas --watch prints it.
type ReplicaRate struct {
	ReplicaLag
	RatePerSecond *int64 `json:"ratePerSecond,omitempty" doc:"records that the replica's log grew by in a second; missing at the first look"`
	CatchUpMs     *int64 `json:"catchUpMs,omitempty" doc:"time in which the lag ends at this pace; missing while it does not shrink"`
}

// ReplicaRateKind describes ReplicaRate; to a program it is a ReplicaLag with two fields more.
var ReplicaRateKind = Kind[ReplicaRate]{
	Name: "ReplicaLag", Title: "replicas",
	ID:      func(r ReplicaRate) string { return ReplicaLagKind.ID(r.ReplicaLag) },
	Columns: rateColumns(),
}

// rateColumns are those of ReplicaLag with the pace before the error.
func rateColumns() []Column[ReplicaRate] {
	var out []Column[ReplicaRate]
	for _, c := range ReplicaLagKind.Columns {
		if c.Name == "ERROR" {
			out = append(out,
				Column[ReplicaRate]{Name: "RATE", Right: true, Cell: func(r ReplicaRate) string {
					if r.RatePerSecond == nil {
						return "-"
					}
					return itoa(*r.RatePerSecond) + "/s"
				}},
				Column[ReplicaRate]{Name: "CATCH-UP", Right: true, Cell: func(r ReplicaRate) string { return ageCell(r.CatchUpMs) }},
			)
		}
		out = append(out, Column[ReplicaRate]{Name: c.Name, Wide: c.Wide, Right: c.Right, Cell: func(r ReplicaRate) string { return c.Cell(r.ReplicaLag) }})
	}
	return out
}

// ReplicaRates adds the pace to rows from those seen elapsed before.
func ReplicaRates(before, now []ReplicaLag, elapsed time.Duration) []ReplicaRate {
	old := make(map[string]*ReplicaLag, len(before))
	for i := range before {
		old[ReplicaLagKind.ID(before[i])] = &before[i]
	}
	out := make([]ReplicaRate, len(now))
	for i := range now {
		out[i] = ReplicaRate{ReplicaLag: now[i]}
		b := old[ReplicaLagKind.ID(now[i])]
		if b == nil || elapsed <= 0 || b.LogEndOffset < 0 || now[i].LogEndOffset < 0 {
			continue
		}
		rate := int64(float64(now[i].LogEndOffset-b.LogEndOffset) / elapsed.Seconds())
		out[i].RatePerSecond = &rate
		switch closed := b.LagRecords - now[i].LagRecords; {
		case now[i].LagRecords == 0:
			out[i].CatchUpMs = new(int64)
		case b.LagRecords >= 0 && now[i].LagRecords > 0 && closed > 0:
			ms := int64(float64(now[i].LagRecords) / float64(closed) * float64(elapsed.Milliseconds()))
			out[i].CatchUpMs = &ms
		}
	}
	return out
}
