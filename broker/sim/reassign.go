package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// wish is one reassignment that somebody asked a controller for. The sets are those that the partition may end in:
// for a cancellation the replicas before, and the target if that was reached meanwhile.
type wish struct {
	tp     cluster.TopicPartition
	cancel bool
	ends   [][]cluster.BrokerID
}

// wishes is what must have become of the reassignments in the end (11).
type wishes struct {
	count uint64
	open  map[uint64]*wish                 // not answered
	kept  map[cluster.TopicPartition]*wish // the newest that was accepted, while nothing newer is in doubt
	doubt map[cluster.TopicPartition]bool  // a newer one may have been carried out, or not
}

// wishID is above the ids of other requests.
const wishID = 1 << 40

// reassignOne moves a random partition to other replicas, cancels that, or asks for it the old way.
func (s *Sim) reassignOne() {
	name := s.topics[s.rng.IntN(len(s.topics))]
	t, _, ok := s.topic(name)
	if !ok {
		return
	}
	tp := cluster.TopicPartition{Topic: name, Partition: int32(s.rng.IntN(len(t.Partitions)))}
	var target []cluster.BrokerID
	for _, i := range s.rng.Perm(brokers)[:1+s.rng.IntN(brokers)] {
		target = append(target, cluster.BrokerID(1+i))
	}
	now := t.Partitions[tp.Partition]
	w := &wish{tp: tp, ends: [][]cluster.BrokerID{target}}
	if w.cancel = now.Reassigning() && s.rng.IntN(2) == 0; w.cancel {
		origin := slices.DeleteFunc(slices.Clone(now.Replicas), func(b cluster.BrokerID) bool { return slices.Contains(now.Adding, b) })
		w.ends, target = [][]cluster.BrokerID{origin, now.Target()}, nil
	}
	if !w.cancel && s.rng.IntN(4) == 0 {
		s.trace.line("reassign %s to %v in ZooKeeper", tp, target)
		s.wishes.unsure(tp)
		s.adminDo(zkop.Request{Kind: zkop.Create, Path: znode.ReassignPartitionsPath,
			Data: znode.EncodeReassignments([]znode.Reassignment{{Partition: tp, Replicas: target}})})
		return
	}
	s.askReassign(w, target)
}

// askReassign asks whichever broker believes to be the controller.
func (s *Sim) askReassign(w *wish, target []cluster.BrokerID) {
	for _, n := range s.nodes {
		if !n.up || n.paused() || !n.ctl.Stats().Active {
			continue
		}
		s.trace.line("reassign %s to %v, asking broker %d", w.tp, target, n.id)
		part := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		part.Partition, part.Replicas = w.tp.Partition, cluster.IDsToInt32(target)
		if w.cancel {
			part.Replicas = nil
		}
		topic := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		topic.Topic, topic.Partitions = w.tp.Topic, []kmsg.AlterPartitionAssignmentsRequestTopicPartition{part}
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{topic}
		s.wishes.count++
		id := wishID + s.wishes.count
		if s.wishes.open == nil {
			s.wishes.open = map[uint64]*wish{}
		}
		s.wishes.open[id] = w
		n.ctlStep(controller.AlterReassignmentsRequested{At: s.now, RequestID: id, Request: req})
		return
	}
}

// unsure: something was asked for of which nobody will tell what became of it.
func (ws *wishes) unsure(tp cluster.TopicPartition) {
	if ws.doubt == nil {
		ws.doubt = map[cluster.TopicPartition]bool{}
	}
	ws.doubt[tp] = true
	delete(ws.kept, tp)
}

// reassignAnswered notes what a controller accepted. What it refused, or could not tell, changes nothing for certain.
func (s *Sim) reassignAnswered(e controller.Reply) {
	w := s.wishes.open[e.RequestID]
	if w == nil {
		return
	}
	delete(s.wishes.open, e.RequestID)
	resp := e.Response.(*kmsg.AlterPartitionAssignmentsResponse)
	if resp.ErrorCode != 0 {
		s.wishes.unsure(w.tp)
		return
	}
	switch code := resp.Topics[0].Partitions[0].ErrorCode; code {
	case 0:
		s.report.Reassigned++
		if s.wishes.kept == nil {
			s.wishes.kept = map[cluster.TopicPartition]*wish{}
		}
		s.wishes.kept[w.tp] = w
		if s.adminDo(zkop.Request{Kind: zkop.Exists, Path: znode.ReassignPartitionsPath}).Err != nil {
			// Whatever was asked for before has been done, or never will: controllers are fenced, and work in order.
			delete(s.wishes.doubt, w.tp)
		}
	case -1:
		s.wishes.unsure(w.tp)
	}
}

// checkWishes: a reassignment ends in its target, in that order; a cancelled one in the set of replicas before it (11).
func (s *Sim) checkWishes() {
	for _, w := range s.wishes.open { // its controller went without an answer
		s.wishes.unsure(w.tp)
	}
	tps := make([]cluster.TopicPartition, 0, len(s.wishes.kept))
	for tp := range s.wishes.kept {
		tps = append(tps, tp)
	}
	slices.SortFunc(tps, cluster.TopicPartition.Compare)
	for _, tp := range tps {
		w := s.wishes.kept[tp]
		t, _, ok := s.topic(tp.Topic)
		if !ok || s.wishes.doubt[tp] || s.check.deleted[tp.Topic] {
			continue
		}
		got := t.Partitions[tp.Partition].Replicas
		s.report.Arrived++
		if !slices.ContainsFunc(w.ends, func(end []cluster.BrokerID) bool { return w.reached(got, end) }) {
			s.fail("%s: ends on %v, wanted %v, cancelled %v (11)", tp, got, w.ends, w.cancel)
		}
	}
}

func (w *wish) reached(got, end []cluster.BrokerID) bool {
	if !w.cancel {
		return slices.Equal(got, end)
	}
	got, end = slices.Clone(got), slices.Clone(end)
	slices.Sort(got)
	slices.Sort(end)
	return slices.Equal(got, end)
}
