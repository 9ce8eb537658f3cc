package controller

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// refusedWish is why a reassignment is not begun: Kafka's code and a sentence for the admin.
type refusedWish struct {
	code int16
	text string
}

// wish checks what an admin asks for and makes a move of it; replicas nil cancels. With dead allowed, new replicas
// may be on brokers that are down, as in the old znode.
func (c *Controller) wish(tp cluster.TopicPartition, replicas []cluster.BrokerID, deadAllowed bool) (*move, *refusedWish) {
	p := c.partition(tp)
	switch {
	case p == nil, p.topic.deleting:
		return nil, &refusedWish{codeUnknownTopicOrPartition, "The partition does not exist."}
	case replicas == nil && !p.assignment.Reassigning():
		return nil, &refusedWish{codeNoReassignmentInProgress, "No partition reassignment is in progress."}
	case replicas == nil:
		return &move{p: p, target: p.original(), written: true}, nil
	case p.topic.ineligible:
		return nil, &refusedWish{codeUnknownTopicOrPartition, "The topic is to be deleted when its reassignments are over."}
	case len(replicas) == 0:
		return nil, &refusedWish{codeInvalidReplicaAssignment, "Empty replica list specified in partition reassignment."}
	case !validAssignment(cluster.Assignment{Replicas: replicas}):
		return nil, &refusedWish{codeInvalidReplicaAssignment, fmt.Sprintf("Duplicate or negative replica ids in partition reassignment: %v.", replicas)}
	}
	for _, b := range replicas {
		br := c.brokers[b]
		if !deadAllowed && p.replicaIndex(b) < 0 && (br == nil || br.shuttingDown) {
			return nil, &refusedWish{codeInvalidReplicaAssignment,
				fmt.Sprintf("Replica assignment has brokers that are not alive. Replica list: %v, live brokers: %v.", replicas, c.brokerIDs())}
		}
	}
	return &move{p: p, target: slices.Clone(replicas), written: true}, nil
}

// original is what a cancelled reassignment goes back to: the set is certain, the order as well as it is known. The
// topic's node names the target first, so only the controller that began knows how the rest was interleaved.
func (p *partition) original() []cluster.BrokerID {
	origin := originOf(p.assignment)
	if len(p.origin) == len(origin) && subset(p.origin, origin) {
		return slices.Clone(p.origin)
	}
	return origin
}

// alterReassignments begins, changes and cancels reassignments (KIP-455). It is answered when the first step is
// durable.
func (c *Controller) alterReassignments(ev AlterReassignmentsRequested, done func()) {
	resp := ev.Request.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	answers := map[*partition]*kmsg.AlterPartitionAssignmentsResponseTopicPartition{}
	var ms []*move
	for _, t := range ev.Request.Topics {
		out := kmsg.AlterPartitionAssignmentsResponseTopic{
			Topic: t.Topic, Partitions: make([]kmsg.AlterPartitionAssignmentsResponseTopicPartition, len(t.Partitions)),
		}
		for i, rp := range t.Partitions {
			part := &out.Partitions[i]
			part.Partition = rp.Partition
			var replicas []cluster.BrokerID
			if rp.Replicas != nil {
				replicas = append([]cluster.BrokerID{}, cluster.IDsFromInt32(rp.Replicas)...)
			}
			m, why := c.wish(cluster.TopicPartition{Topic: t.Topic, Partition: rp.Partition}, replicas, false)
			switch {
			case why != nil:
				part.ErrorCode, part.ErrorMessage = why.code, &why.text
			case answers[m.p] != nil:
				text := "The partition is named twice."
				part.ErrorCode, part.ErrorMessage = codeInvalidRequest, &text
			default:
				answers[m.p] = part
				ms = append(ms, m)
			}
		}
		resp.Topics = append(resp.Topics, out)
	}
	c.dropLegacy(ms, func() {
		c.begin(ms, "reassignment", func(outcomes map[*partition]outcome) {
			for _, m := range ms {
				if o := outcomes[m.p]; o != outcomeChanged {
					text := "The partition's state in ZooKeeper could not be changed."
					answers[m.p].ErrorCode, answers[m.p].ErrorMessage = codeUnknownServerError, &text
				}
			}
			c.reply(ev.RequestID, resp)
			done()
		})
	})
}

// begin takes the first step of new moves. Partitions that never had a leader may get one now.
func (c *Controller) begin(ms []*move, reason string, then func(map[*partition]outcome)) {
	c.moveAll(ms, reason, func(outcomes map[*partition]outcome) {
		var fresh []*partition
		for _, m := range ms {
			if outcomes[m.p] == outcomeChanged && !m.p.known {
				fresh = append(fresh, m.p)
			}
		}
		c.initPartitions(fresh, func() { then(outcomes) })
	})
}

// listReassignments answers with the reassignments that are under way: all, or those of the named partitions.
func (c *Controller) listReassignments(ev ListReassignmentsRequested, done func()) {
	resp := ev.Request.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	wanted := map[*partition]bool{}
	for _, t := range ev.Request.Topics {
		for _, num := range t.Partitions {
			if p := c.partition(cluster.TopicPartition{Topic: t.Topic, Partition: num}); p != nil {
				wanted[p] = true
			}
		}
	}
	for _, p := range sorted(c.reassigning) {
		if ev.Request.Topics != nil && !wanted[p] {
			continue
		}
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != p.topic.name {
			resp.Topics = append(resp.Topics, kmsg.ListPartitionReassignmentsResponseTopic{Topic: p.topic.name})
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.ListPartitionReassignmentsResponseTopicPartition{
			Partition: p.num, Replicas: cluster.IDsToInt32(p.assignment.Replicas),
			AddingReplicas: cluster.IDsToInt32(p.assignment.Adding), RemovingReplicas: cluster.IDsToInt32(p.assignment.Removing),
		})
	}
	c.reply(ev.RequestID, resp)
	done()
}

// reassignZnode serves the old way to ask, a list in /admin/reassign_partitions: what is new in it is begun, what is
// over or cannot be done is taken out, and the empty node is deleted (V3 points F.1, F.7). It runs whenever the node
// is made or changed, and when a reassignment of its list is over.
func (c *Controller) reassignZnode(done func()) {
	path := znode.ReassignPartitionsPath
	reqs := []zkop.Request{{Kind: zkop.Exists, Path: path, Watch: true}, {Kind: zkop.Get, Path: path}}
	c.read(reqs, func(got []zkop.Response) {
		if !c.usable(path, &got[1]) {
			c.legacy = nil
			done()
			return
		}
		list, err := znode.DecodeReassignments(got[1].Data)
		if err != nil {
			c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
			list = nil
		}
		c.beginLegacy(list, func() { c.trimLegacy(list, got[1].Stat.Version, done) })
	})
}

// beginLegacy begins what is new in the list. c.legacy says which of its reassignments are known already.
func (c *Controller) beginLegacy(list []znode.Reassignment, then func()) {
	known := map[cluster.TopicPartition][]cluster.BrokerID{}
	var ms []*move
	for _, r := range list {
		if _, twice := known[r.Partition]; twice {
			continue // the first counts
		}
		if was, ok := c.legacy[r.Partition]; ok && slices.Equal(was, r.Replicas) {
			known[r.Partition] = was
			continue
		}
		m, why := c.wish(r.Partition, append([]cluster.BrokerID{}, r.Replicas...), true)
		if why != nil {
			c.emit(Note{Kind: NoteReassignmentDropped, Partition: r.Partition, Reason: why.text})
			continue
		}
		known[r.Partition] = m.target
		if !m.p.assignment.Reassigning() || !slices.Equal(m.p.assignment.Target(), m.target) {
			ms = append(ms, m)
		}
	}
	c.legacy = known
	c.begin(ms, "reassignment", func(outcomes map[*partition]outcome) {
		for _, m := range ms {
			if outcomes[m.p] != outcomeChanged {
				delete(c.legacy, m.p.tp())
				c.emit(Note{Kind: NoteReassignmentDropped, Partition: m.p.tp(), Reason: "its state in ZooKeeper could not be changed"})
			}
		}
		then()
	})
}

// legacyRuns: the entry's reassignment is under way.
func (c *Controller) legacyRuns(r znode.Reassignment) bool {
	target, listed := c.legacy[r.Partition]
	p := c.partition(r.Partition)
	return listed && slices.Equal(target, r.Replicas) && p != nil && p.assignment.Reassigning() &&
		slices.Equal(p.assignment.Target(), target)
}

// trimLegacy takes what does not run out of the list. Somebody who changes it meanwhile makes the watch fire.
func (c *Controller) trimLegacy(list []znode.Reassignment, version int32, done func()) {
	path := znode.ReassignPartitionsPath
	var kept []znode.Reassignment
	for _, r := range list {
		if c.legacyRuns(r) {
			kept = append(kept, r)
		} else {
			delete(c.legacy, r.Partition)
		}
	}
	var op writeOp
	switch {
	case len(kept) == 0:
		op = writeOp{reqs: []zkop.Request{{Kind: zkop.Delete, Path: path, Version: version}}}
	case len(kept) < len(list):
		op = setOp(path, znode.EncodeReassignments(kept), version)
	default:
		done()
		return
	}
	c.write([]writeOp{op}, func(results []writeResult) {
		if err := results[0].err; err != nil && !errors.Is(err, zkop.ErrBadVersion) && !errors.Is(err, zkop.ErrNoNode) {
			c.emit(Note{Kind: NoteBadZnode, Reason: "write " + path + ": " + err.Error()})
		}
		done()
	})
}

// dropLegacy takes partitions out of the old list before a request moves them elsewhere: the list wins over the
// topic's node when the next controller takes over.
func (c *Controller) dropLegacy(ms []*move, then func()) {
	dropped := false
	for _, m := range ms {
		if _, listed := c.legacy[m.p.tp()]; listed {
			delete(c.legacy, m.p.tp())
			dropped = true
		}
	}
	if !dropped {
		then()
		return
	}
	path := znode.ReassignPartitionsPath
	c.read([]zkop.Request{{Kind: zkop.Get, Path: path}}, func(got []zkop.Response) {
		if !c.usable(path, &got[0]) {
			then()
			return
		}
		list, err := znode.DecodeReassignments(got[0].Data)
		if err != nil {
			then()
			return
		}
		var kept []znode.Reassignment
		for _, r := range list {
			if !slices.ContainsFunc(ms, func(m *move) bool { return m.p.tp() == r.Partition }) {
				kept = append(kept, r)
			}
		}
		op := setOp(path, znode.EncodeReassignments(kept), got[0].Stat.Version)
		if len(kept) == 0 {
			op = writeOp{reqs: []zkop.Request{{Kind: zkop.Delete, Path: path, Version: got[0].Stat.Version}}}
		}
		c.write([]writeOp{op}, func([]writeResult) { then() })
	})
}
