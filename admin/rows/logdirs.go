package rows

import (
	"fmt"
	"strconv"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// LogDir is one row of log-dirs describe.
type LogDir struct {
	Broker      int32       `json:"broker"`
	Dir         string      `json:"dir" doc:"absolute path; empty when the broker did not answer"`
	Online      bool        `json:"online"`
	SizeBytes   int64       `json:"sizeBytes" doc:"bytes of the replicas that are listed"`
	UsableBytes *int64      `json:"usableBytes" doc:"free bytes of the volume; null when the broker does not tell (before 3.3)"`
	TotalBytes  *int64      `json:"totalBytes" doc:"size of the volume; null when the broker does not tell (before 3.3)"`
	Replicas    []DirEntry  `json:"replicas"`
	Futures     []DirFuture `json:"futureReplicas" doc:"copies being made of replicas that move here"`
	Error       string      `json:"error" doc:"why the directory is offline, or why the broker did not answer"`
}

// DirEntry is one replica within a LogDir.
type DirEntry struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	SizeBytes int64  `json:"sizeBytes"`
	OffsetLag int64  `json:"offsetLag" doc:"how far the log end is below the replica's own high watermark; not a follower's lag (see lag replicas)"`
}

// DirFuture is one copy under way within a LogDir.
type DirFuture struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	SizeBytes int64  `json:"sizeBytes"`
	OffsetLag int64  `json:"offsetLag" doc:"offsets that the copy lacks"`
	Progress  *int   `json:"progressPercent" doc:"0 to 100; null when the current replica is not known"`
}

// LogDirKind describes LogDir.
var LogDirKind = Kind[LogDir]{
	Name: "LogDir", Title: "log directories",
	ID: func(d LogDir) string { return itoa(d.Broker) + ":" + d.Dir },
	Columns: []Column[LogDir]{
		{Name: "BROKER", Right: true, Cell: func(d LogDir) string { return itoa(d.Broker) }},
		{Name: "DIR", Cell: func(d LogDir) string { return text(d.Dir) }},
		{Name: "STATE", Cell: func(d LogDir) string { return d.state() }},
		{Name: "REPLICAS", Right: true, Cell: func(d LogDir) string { return itoa(len(d.Replicas)) }},
		{Name: "MOVING-IN", Right: true, Cell: func(d LogDir) string { return itoa(len(d.Futures)) }},
		{Name: "SIZE", Right: true, Cell: func(d LogDir) string { return SizeText(d.SizeBytes) }},
		{Name: "USABLE", Right: true, Cell: func(d LogDir) string { return nullSize(d.UsableBytes) }},
		{Name: "TOTAL", Right: true, Cell: func(d LogDir) string { return nullSize(d.TotalBytes) }},
		{Name: "ERROR", Cell: func(d LogDir) string { return text(d.Error) }},
	},
}

func (d LogDir) state() string {
	switch {
	case d.Online:
		return "online"
	case d.Dir == "":
		return "unknown"
	}
	return "offline"
}

// LogDirs makes the rows of log-dirs describe.
func LogDirs(dirs []model.LogDir) []LogDir {
	out := make([]LogDir, len(dirs))
	for i := range dirs {
		d := &dirs[i]
		out[i] = LogDir{Broker: int32(d.Broker), Dir: d.Path, Online: d.Online(), SizeBytes: d.Size(), Error: d.Err,
			UsableBytes: known(d.Usable), TotalBytes: known(d.Total), Replicas: []DirEntry{}, Futures: []DirFuture{}}
		for j := range d.Replicas {
			r := &d.Replicas[j]
			if r.Future {
				out[i].Futures = append(out[i].Futures, DirFuture{r.Topic, r.Partition, r.Size, r.OffsetLag, progress(r)})
				continue
			}
			out[i].Replicas = append(out[i].Replicas, DirEntry{r.Topic, r.Partition, r.Size, r.OffsetLag})
		}
	}
	return out
}

func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func progress(r *model.DirReplica) *int {
	p := r.Progress()
	if p < 0 {
		return nil
	}
	return &p
}

// DirReplica is one row of log-dirs describe --replicas.
type DirReplica struct {
	Broker    int32  `json:"broker"`
	Dir       string `json:"dir" doc:"absolute path; empty when the broker did not answer"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition" doc:"-1 in the row of a broker that did not answer, or of an offline directory"`
	SizeBytes int64  `json:"sizeBytes"`
	OffsetLag int64  `json:"offsetLag"`
	Future    bool   `json:"future" doc:"a copy under way of a replica that moves here"`
	Progress  *int   `json:"progressPercent" doc:"of a future replica, 0 to 100; else null"`
	Error     string `json:"error"`
}

// DirReplicaKind describes DirReplica.
var DirReplicaKind = Kind[DirReplica]{
	Name: "DirReplica", Title: "replicas",
	ID: func(r DirReplica) string {
		return itoa(r.Broker) + ":" + r.Dir + ":" + r.Topic + ":" + itoa(r.Partition)
	},
	Columns: []Column[DirReplica]{
		{Name: "BROKER", Right: true, Cell: func(r DirReplica) string { return itoa(r.Broker) }},
		{Name: "DIR", Cell: func(r DirReplica) string { return text(r.Dir) }},
		{Name: "TOPIC", Cell: func(r DirReplica) string { return text(r.Topic) }},
		{Name: "PARTITION", Right: true, Cell: func(r DirReplica) string {
			if r.Partition < 0 {
				return "-"
			}
			return itoa(r.Partition)
		}},
		{Name: "SIZE", Right: true, Cell: func(r DirReplica) string { return SizeText(r.SizeBytes) }},
		{Name: "OFFSET-LAG", Right: true, Cell: func(r DirReplica) string { return itoa(r.OffsetLag) }},
		{Name: "MOVING", Cell: func(r DirReplica) string {
			switch {
			case !r.Future:
				return "-"
			case r.Progress == nil:
				return "in"
			}
			return "in " + strconv.Itoa(*r.Progress) + "%"
		}},
		{Name: "ERROR", Cell: func(r DirReplica) string { return text(r.Error) }},
	},
}

// DirReplicas makes the rows of log-dirs describe --replicas. What did not answer is a row of its own.
func DirReplicas(dirs []model.LogDir) []DirReplica {
	var out []DirReplica
	for i := range dirs {
		d := &dirs[i]
		if d.Err != "" {
			out = append(out, DirReplica{Broker: int32(d.Broker), Dir: d.Path, Partition: -1, Error: d.Err})
		}
		for j := range d.Replicas {
			r := &d.Replicas[j]
			row := DirReplica{Broker: int32(d.Broker), Dir: d.Path, Topic: r.Topic, Partition: r.Partition, SizeBytes: r.Size, OffsetLag: r.OffsetLag, Future: r.Future}
			if r.Future {
				row.Progress = progress(r)
			}
			out = append(out, row)
		}
	}
	return out
}

// DirMove is one row of log-dirs move.
type DirMove struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Broker    int32  `json:"broker"`
	From      string `json:"from" doc:"directory before; empty when the broker has no such replica"`
	To        string `json:"to"`
	SizeBytes int64  `json:"sizeBytes" doc:"bytes to be copied"`
	Action    string `json:"action" doc:"move, cancel, place, not-needed or impossible"`
	Accepted  bool   `json:"accepted" doc:"the broker took the order, this one or an earlier one"`
	Done      bool   `json:"done" doc:"the replica is in the directory (only looked for when waiting)"`
	Error     string `json:"error"`
	Reason    string `json:"reason" doc:"what is special about the action"`
}

// DirMoveKind describes DirMove.
var DirMoveKind = Kind[DirMove]{
	Name: "DirMove", Title: "moves",
	ID: func(m DirMove) string { return m.Topic + ":" + itoa(m.Partition) },
	Columns: []Column[DirMove]{
		{Name: "TOPIC", Cell: func(m DirMove) string { return m.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(m DirMove) string { return itoa(m.Partition) }},
		{Name: "BROKER", Right: true, Cell: func(m DirMove) string { return itoa(m.Broker) }},
		{Name: "FROM", Cell: func(m DirMove) string { return text(m.From) }},
		{Name: "TO", Cell: func(m DirMove) string { return m.To }},
		{Name: "SIZE", Right: true, Cell: func(m DirMove) string { return SizeText(m.SizeBytes) }},
		{Name: "ACTION", Cell: func(m DirMove) string { return m.Action }},
		{Name: "RESULT", Cell: func(m DirMove) string { return m.result() }},
		{Name: "REASON", Wide: true, Cell: func(m DirMove) string { return text(m.Reason) }},
	},
}

func (m DirMove) result() string {
	switch {
	case m.Error != "":
		return m.Error
	case m.Done:
		return "done"
	case m.Accepted && m.Action == string(plan.DirCopy):
		return "started"
	case m.Accepted && m.Action != string(plan.DirNotNeeded):
		return "accepted"
	}
	return text(m.Reason)
}

// OfDirMove makes the row of a planned move.
func OfDirMove(m *plan.DirMove) DirMove {
	r := DirMove{Topic: m.Topic, Partition: m.Partition, Broker: int32(m.Broker), From: m.From, To: m.To, SizeBytes: m.Size,
		Action: string(m.Action), Reason: m.Reason}
	if m.Action == plan.DirRefused {
		r.Error = m.Reason
	}
	return r
}

// SizeText writes bytes with a binary unit and one decimal.
func SizeText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return itoa(n) + " B"
	}
	f, u := float64(n), -1
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[u])
}

func nullSize(n *int64) string {
	if n == nil {
		return "-"
	}
	return SizeText(*n)
}
