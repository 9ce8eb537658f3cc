package controller

import (
	"slices"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// preferredZnode serves the old way to ask for preferred elections: a list in a znode, deleted when
// processed, whether an election was possible or not.
func (c *Controller) preferredZnode(done func()) {
	path := znode.PreferredReplicaElectionPath
	reqs := []zkop.Request{{Kind: zkop.Exists, Path: path, Watch: true}, {Kind: zkop.Get, Path: path}}
	c.read(reqs, func(got []zkop.Response) {
		if !c.usable(path, &got[1]) {
			done()
			return
		}
		tps, err := znode.DecodePreferredReplicaElection(got[1].Data)
		if err != nil {
			c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
		}
		set := map[*partition]struct{}{}
		for _, tp := range tps {
			if p := c.partition(tp); p != nil && p.known && !p.topic.deleting {
				set[p] = struct{}{}
			}
		}
		c.decide(sorted(set), "preferred-election", c.preferredStrategy, func(outcomes map[*partition]outcome) {
			if n := count(outcomes, outcomeChanged); n > 0 {
				c.note(NoteElections, n, "preferred-election")
			}
			c.write([]writeOp{deleteOp(path)}, func([]writeResult) { done() })
		})
	})
}

// rebalance gives leaderships back to preferred replicas where too many have moved away (KAFKA_FACTS 2.8):
// per preferred broker the share of its partitions that others lead is compared with the allowed percentage.
func (c *Controller) rebalance(done func()) {
	c.emit(ArmTimer{Timer: Timer{Kind: TimerRebalance}, At: c.now.Add(c.cfg.RebalanceInterval)})
	total, moved := map[cluster.BrokerID]int{}, map[cluster.BrokerID][]*partition{}
	for _, p := range c.collect(func(p *partition) bool { return p.known }) {
		preferred := p.assignment.Replicas[0]
		total[preferred]++
		if p.li.Leader != preferred {
			moved[preferred] = append(moved[preferred], p)
		}
	}
	var ps []*partition
	for _, id := range c.brokerIDs() {
		if len(moved[id])*100 <= total[id]*c.cfg.RebalancePercent {
			continue
		}
		for _, p := range moved[id] {
			// The stored ISR decides; memory only keeps hopeless ones out.
			if c.live(id, p) && slices.Contains(p.li.ISR, id) && !p.assignment.Reassigning() {
				ps = append(ps, p)
			}
		}
	}
	if len(ps) == 0 {
		done()
		return
	}
	c.note(NoteRebalance, len(ps), "")
	c.decide(ps, "preferred-rebalance", c.preferredStrategy, func(map[*partition]outcome) { done() })
}
