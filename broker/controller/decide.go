package controller

import (
	"errors"
	"strconv"
	"strings"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// outcome is what became of one partition in a decision round.
type outcome uint8

const (
	outcomeUnchanged   outcome = iota // nothing had to change
	outcomeChanged                    // written and adopted
	outcomeNoCandidate                // no eligible leader
	outcomeNotNeeded                  // led as wanted already
	outcomeNoState                    // the state znode does not exist
	outcomeRefused                    // unreadable, or written by a newer controller
	outcomeBusy                       // lost to other writers too often; retried later
)

// decideRoundsMax bounds the re-read after a version clash; a partition that loses this often is left to
// the repair timer.
const decideRoundsMax = 20

// decision is one run of decide over many partitions.
type decision struct {
	c        *Controller
	reason   string
	decide   strategy
	unclean  map[*topic]uncleanRule
	outcomes map[*partition]outcome
	rounds   int
	then     func(map[*partition]outcome)
}

// stateRead is a partition's state znode as just read.
type stateRead struct {
	p       *partition
	state   znode.State
	version int32
	mzxid   int64
}

// decide applies a strategy to partitions: read the state from ZooKeeper, not from memory (V3 point A.4),
// choose, write conditionally with the next leader epoch, and on a version clash read again (A.8). What was
// written is adopted and queued for its brokers before then runs. Cost: one pipelined round of reads and
// one of batched multis, linear in the number of partitions.
func (c *Controller) decide(ps []*partition, reason string, s strategy, then func(map[*partition]outcome)) {
	d := &decision{c: c, reason: reason, decide: s, unclean: map[*topic]uncleanRule{},
		outcomes: make(map[*partition]outcome, len(ps)), then: then}
	d.round(ps)
}

func (d *decision) round(ps []*partition) {
	if d.rounds++; d.rounds > decideRoundsMax {
		for _, p := range ps {
			d.outcomes[p] = outcomeBusy
		}
		d.c.armRepair()
		ps = nil
	}
	if len(ps) == 0 {
		d.then(d.outcomes)
		return
	}
	d.c.readStates(ps, func(reads []stateRead, bad map[*partition]outcome) {
		for p, o := range bad {
			d.outcomes[p] = o
		}
		d.choose(reads)
	})
}

// readStates reads state znodes and refreshes the memory with what they say.
func (c *Controller) readStates(ps []*partition, then func(reads []stateRead, bad map[*partition]outcome)) {
	reqs := make([]zkop.Request, len(ps))
	for i, p := range ps {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.StatePath(p.tp())}
	}
	c.read(reqs, func(got []zkop.Response) {
		reads := make([]stateRead, 0, len(ps))
		bad := map[*partition]outcome{}
		for i, p := range ps {
			r, o := c.parseState(p, &got[i])
			if o != outcomeUnchanged {
				bad[p] = o
				continue
			}
			c.refresh(p, r)
			reads = append(reads, r)
		}
		then(reads, bad)
	})
}

func (c *Controller) parseState(p *partition, r *zkop.Response) (stateRead, outcome) {
	if errors.Is(r.Err, zkop.ErrNoNode) {
		return stateRead{}, outcomeNoState
	}
	if !c.usable(znode.StatePath(p.tp()), r) {
		return stateRead{}, outcomeRefused
	}
	s, err := znode.DecodeState(p.tp(), r.Data)
	if err != nil {
		c.emit(Note{Kind: NoteBadZnode, Partition: p.tp(), Reason: err.Error()})
		return stateRead{}, outcomeRefused
	}
	if s.ControllerEpoch > c.epoch {
		c.emit(Note{Kind: NoteRefusedWrite, Partition: p.tp(), Reason: "stored controller epoch is higher than ours"})
		return stateRead{}, outcomeRefused
	}
	return stateRead{p, s, r.Stat.Version, r.Stat.Mzxid}, outcomeUnchanged
}

// refresh takes over what a leader (or an admin) wrote since. A moved leader epoch is a decision that the
// brokers must hear of; a moved ISR concerns the metadata only.
func (c *Controller) refresh(p *partition, r stateRead) {
	p.mzxid = r.mzxid
	if p.known && p.version == cluster.ZKVersion(r.version) {
		return
	}
	decided := !p.known || p.li.LeaderEpoch != r.state.LeaderEpoch
	p.known, p.li, p.version = true, r.state.LeaderAndISR, cluster.ZKVersion(r.version)
	c.settle(p)
	if p.topic.deleting {
		return
	}
	c.reassignMoved(p)
	if decided {
		c.publish(p, "found in ZooKeeper")
		return
	}
	c.publishMetadata(p)
}

// choose applies the strategy; topics whose config decides about unclean elections are read first.
func (d *decision) choose(reads []stateRead) {
	var ask []*topic
	asked := map[*topic]bool{}
	choices := make([]choice, len(reads))
	for i, r := range reads {
		choices[i] = d.decide(r.p, r.state.LeaderAndISR, d.unclean[r.p.topic])
		if t := r.p.topic; choices[i].verdict == askUnclean && !asked[t] {
			asked[t] = true
			ask = append(ask, t)
		}
	}
	if len(ask) == 0 {
		d.write(reads, choices)
		return
	}
	d.c.readUnclean(ask, func(rules map[*topic]uncleanRule) {
		for t, rule := range rules {
			d.unclean[t] = rule
		}
		for i, r := range reads {
			if choices[i].verdict == askUnclean {
				choices[i] = d.decide(r.p, r.state.LeaderAndISR, d.unclean[r.p.topic])
			}
		}
		d.write(reads, choices)
	})
}

// uncleanKey is the config that allows elections outside the ISR.
const uncleanKey = "unclean.leader.election.enable"

// readUnclean reads unclean.leader.election.enable of topics. A topic's own config wins, then the dynamic
// config of this broker, then the dynamic default of all brokers, then the broker's file.
func (c *Controller) readUnclean(topics []*topic, then func(map[*topic]uncleanRule)) {
	brokerNames := []string{znode.DefaultEntity, strconv.Itoa(int(c.cfg.BrokerID))}
	var reqs []zkop.Request
	for _, name := range brokerNames {
		reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: znode.ConfigEntityPath(znode.BrokerConfig, name)})
	}
	for _, t := range topics {
		reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: znode.ConfigEntityPath(znode.TopicConfig, t.name)})
	}
	c.read(reqs, func(got []zkop.Response) {
		fallback := uncleanForbidden
		if c.cfg.UncleanDefault {
			fallback = uncleanAllowed
		}
		for i, name := range brokerNames {
			fallback = c.uncleanRuleIn(znode.BrokerConfig, name, &got[i], fallback)
		}
		rules := make(map[*topic]uncleanRule, len(topics))
		for i, t := range topics {
			rules[t] = c.uncleanRuleIn(znode.TopicConfig, t.name, &got[len(brokerNames)+i], fallback)
		}
		then(rules)
	})
}

// uncleanRuleIn is what one config node says; fallback when it says nothing. What cannot be read must not
// lose records.
func (c *Controller) uncleanRuleIn(kind znode.ConfigType, name string, r *zkop.Response, fallback uncleanRule) uncleanRule {
	if !c.usable(znode.ConfigEntityPath(kind, name), r) {
		return fallback
	}
	cfg, err := znode.DecodeConfig(kind, name, r.Data)
	if err != nil {
		c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
		return uncleanForbidden
	}
	switch v, ok := cfg.Values[uncleanKey]; {
	case !ok:
		return fallback
	case strings.EqualFold(strings.TrimSpace(v), "true"):
		return uncleanAllowed
	}
	return uncleanForbidden
}

// write makes the changes durable and adopts them; clashes go to the next round.
func (d *decision) write(reads []stateRead, choices []choice) {
	var ops []writeOp
	var at []int // reads index of each op
	next := make([]znode.State, len(reads))
	for i, r := range reads {
		if choices[i].verdict != change {
			d.outcomes[r.p] = outcomeOf(choices[i].verdict)
			continue
		}
		next[i] = znode.State{LeaderAndISR: choices[i].next, Unknown: r.state.Unknown}
		next[i].LeaderEpoch = r.state.LeaderEpoch + 1
		next[i].ControllerEpoch = d.c.epoch
		ops, at = append(ops, setOp(znode.StatePath(r.p.tp()), next[i].Encode(), r.version)), append(at, i)
	}
	d.c.write(ops, func(results []writeResult) {
		var again []*partition
		for k, i := range at {
			p := reads[i].p
			switch err := results[k].err; {
			case err == nil:
				d.outcomes[p] = outcomeChanged
				p.mzxid = results[k].mzxid
				d.adopt(p, next[i].LeaderAndISR, results[k].version, choices[i].unclean)
			case errors.Is(err, zkop.ErrBadVersion):
				again = append(again, p)
			case errors.Is(err, zkop.ErrNoNode):
				d.outcomes[p] = outcomeNoState
			default:
				d.outcomes[p] = outcomeRefused
				d.c.emit(Note{Kind: NoteBadZnode, Partition: p.tp(), Reason: "write state: " + err.Error()})
				d.c.armRepair()
			}
		}
		d.round(again)
	})
}

func outcomeOf(v verdict) outcome {
	switch v {
	case noCandidate, askUnclean:
		return outcomeNoCandidate
	case notNeeded:
		return outcomeNotNeeded
	default:
		return outcomeUnchanged
	}
}

// adopt makes a written decision ours and queues it for the brokers.
func (d *decision) adopt(p *partition, li cluster.LeaderAndISR, version int32, unclean bool) {
	c := d.c
	p.known, p.li, p.version = true, li, cluster.ZKVersion(version)
	c.settle(p)
	if unclean {
		c.emit(Note{Kind: NoteUncleanElection, Partition: p.tp(), Broker: li.Leader})
	}
	if li.Leader == cluster.NoLeader && !p.topic.deleting {
		c.emit(Note{Kind: NoteNoLeader, Partition: p.tp(), Reason: d.reason})
	}
	c.reassignMoved(p)
	c.publish(p, d.reason)
}

// count tells how many partitions had an outcome.
func count(outcomes map[*partition]outcome, want outcome) int {
	n := 0
	for _, o := range outcomes {
		if o == want {
			n++
		}
	}
	return n
}
