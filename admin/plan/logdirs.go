package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// DirMove is what a move to another log directory does to one replica.
type DirMove struct {
	Topic     string
	Partition int32
	Broker    cluster.BrokerID
	From      string // the present directory; empty when the broker has no such replica
	Moving    string // the directory to which a move under way copies it; empty when there is none
	To        string
	Size      int64 // bytes to be copied
	Action    DirAction
	Reason    string // why it is impossible, or what is special about it
}

// TP names the partition.
func (m *DirMove) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: m.Topic, Partition: m.Partition}
}

// Bound is where the replica was to be before the move: where the copy under way leads, else where it is.
func (m *DirMove) Bound() string {
	if m.Moving != "" {
		return m.Moving
	}
	return m.From
}

// ExpectDir refuses moves of replicas that are neither in a directory nor on their way to it: somebody moved them since.
func ExpectDir(moves []DirMove, dir string) error {
	for i := range moves {
		m := &moves[i]
		switch bound := m.Bound(); {
		case bound == "":
			return fmt.Errorf("broker %d has no replica of %s:%d, expected was one in %s", m.Broker, m.Topic, m.Partition, dir)
		case bound != path.Clean(dir) && m.Moving != "":
			return fmt.Errorf("%s:%d on broker %d is on its way to %s, expected was %s", m.Topic, m.Partition, m.Broker, bound, dir)
		case bound != path.Clean(dir):
			return fmt.Errorf("%s:%d on broker %d is in %s, expected was %s", m.Topic, m.Partition, m.Broker, bound, dir)
		}
	}
	return nil
}

// UnderWay reports whether an earlier order already moves the replica to where it is wanted.
func (m *DirMove) UnderWay() bool { return m.Moving != "" && m.Moving == m.To }

// DirAction says what becomes of a replica.
type DirAction string

// The actions. DirCancel ends a move under way by naming the directory in which the replica is; DirPlace decides
// where a replica will be made that the broker does not have yet.
const (
	DirCopy      DirAction = "move"
	DirCancel    DirAction = "cancel"
	DirPlace     DirAction = "place"
	DirNotNeeded DirAction = "not-needed"
	DirRefused   DirAction = "impossible"
)

// Writes reports whether the action asks anything of the broker.
func (a DirAction) Writes() bool { return a == DirCopy || a == DirCancel || a == DirPlace }

// DirMoves plans the move of partitions, all replicas of one broker, to its directory to. dirs are the directories
// of that broker. Replicas on it are found in dirs; the others are placed. A move that would not fit into what is
// usable on the volume, together with those before it, is refused.
func DirMoves(dirs []model.LogDir, broker cluster.BrokerID, partitions []cluster.TopicPartition, to string) ([]DirMove, error) {
	to = path.Clean(to)
	target := slices.IndexFunc(dirs, func(d model.LogDir) bool { return path.Clean(d.Path) == to })
	if target < 0 {
		return nil, fmt.Errorf("broker %d has no log directory %s: it has %s", broker, to, dirList(dirs))
	}
	if !dirs[target].Online() {
		return nil, fmt.Errorf("log directory %s of broker %d is offline: %s", to, broker, dirs[target].Err)
	}
	for i := range dirs {
		if !dirs[i].Online() {
			return nil, fmt.Errorf("log directory %s of broker %d is offline (%s): a broker moves no replicas while one of its directories is",
				dirs[i].Path, broker, dirs[i].Err)
		}
	}
	current, future := locate(dirs)
	left := dirs[target].Usable
	out := make([]DirMove, 0, len(partitions))
	for _, tp := range partitions {
		m := DirMove{Topic: tp.Topic, Partition: tp.Partition, Broker: broker, To: dirs[target].Path}
		m.decide(current[tp], future[tp], &left)
		out = append(out, m)
	}
	return out, nil
}

type place struct {
	dir  string
	size int64
}

func locate(dirs []model.LogDir) (current, future map[cluster.TopicPartition]*place) {
	current, future = map[cluster.TopicPartition]*place{}, map[cluster.TopicPartition]*place{}
	for i := range dirs {
		for j := range dirs[i].Replicas {
			r := &dirs[i].Replicas[j]
			in := current
			if r.Future {
				in = future
			}
			in[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}] = &place{dirs[i].Path, r.Size}
		}
	}
	return current, future
}

// decide settles one move. left is what is usable on the target's volume, -1 when that is not known.
func (m *DirMove) decide(current, future *place, left *int64) {
	if current == nil {
		m.Action, m.Reason = DirPlace, fmt.Sprintf("broker %d has no such replica: it will be made there", m.Broker)
		return
	}
	m.From, m.Size = current.dir, current.size
	if future != nil {
		m.Moving = future.dir
	}
	switch {
	case current.dir == m.To && future == nil:
		m.Action, m.Reason = DirNotNeeded, "it is there already"
	case current.dir == m.To:
		m.Action, m.Reason = DirCancel, "the move to "+future.dir+" ends"
	case future != nil && future.dir == m.To:
		m.Action, m.Reason = DirNotNeeded, "it is being moved there already"
	case *left >= 0 && m.Size > *left:
		m.Action = DirRefused
		m.Reason = fmt.Sprintf("%d bytes do not fit: %d are usable on the volume of %s", m.Size, *left, m.To)
	default:
		m.Action = DirCopy
		if future != nil {
			m.Reason = "instead of the move to " + future.dir
		}
		if *left >= 0 {
			*left -= m.Size
		}
	}
}

func dirList(dirs []model.LogDir) string {
	var names []string
	for i := range dirs {
		if dirs[i].Path != "" {
			names = append(names, dirs[i].Path)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
