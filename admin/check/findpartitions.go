package check

import (
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Ids of findings on partitions and their placement.
const (
	LeaderNotAlive      = "leader-not-alive"
	LeaderNotInISR      = "leader-not-in-isr"
	NotAReplica         = "isr-names-stranger"
	DuplicateReplica    = "duplicate-replica"
	SingleReplica       = "single-replica"
	UnevenReplication   = "uneven-replication-factor"
	LeaderSkew          = "leader-skew"
	ReplicaSkew         = "replica-skew"
	TooManyReplicas     = "too-many-replicas"
	RackNotSpread       = "rack-not-spread"
	InternalTopicAtRisk = "internal-topic-at-risk"
	CoordinatorOffline  = "coordinator-offline"
)

// replicasMax is how many replicas a broker should hold at most: what Kafka's makers advise in ZooKeeper mode.
const replicasMax = 4000

func partitionChecks() []Check {
	return []Check{
		{LeaderNotAlive, model.SeverityCritical, "the leader of a partition is not registered", []Source{FromBrokers},
			"Metadata or the state znode names a leader that is not registered. Clients wait for a broker that is not there.",
			"The controller has not acted on the broker's death: it is slow, or names itself controller without working (a lost ZooKeeper watch).",
			"A new controller looks at all partitions again: `kctl controller move`.", leaderNotAlive},
		{LeaderNotInISR, model.SeverityCritical, "the leader of a partition is not in its ISR", []Source{FromBrokers},
			"The leader is not an in-sync replica: records acknowledged earlier may be missing from its log.",
			"A hand-made edit of the state znode, or an unclean election that is not finished.",
			"Have an in-sync replica elected: `kctl elect leader TOPIC:P BROKER`.", leaderNotInISR},
		{NotAReplica, model.SeverityCritical, "the ISR or the leader is not in the replica list", []Source{FromBrokers},
			"A broker is in the ISR, or leads, that the assignment does not name. The controller will not send it anything.",
			"The topic's assignment or the state was edited by hand; a reassignment was broken off by deleting its znode.",
			"Set an ISR out of the replica list with `kctl leader-and-isr set`, or assign the replica with `kctl reassign`.", notAReplica},
		{DuplicateReplica, model.SeverityWarning, "a replica list names a broker twice", []Source{FromBrokers},
			"The replica list counts a broker twice: there are fewer copies than the replication factor says.",
			"A reassignment by a tool that wrote ZooKeeper without checking.",
			"Reassign the partition to a list without repetition.", duplicateReplica},
		{SingleReplica, model.SeverityWarning, "a topic has a single replica although there are more brokers", []Source{FromBrokers},
			"The death of one broker makes the partition unavailable, that of its disk loses the data.",
			"default.replication.factor=1 with automatic creation, or a topic made so on purpose.",
			"Raise the replication factor with `kctl reassign generate --replication-factor`.", singleReplica},
		{UnevenReplication, model.SeverityInfo, "the partitions of a topic have different replication factors", []Source{FromBrokers},
			"Some partitions of the topic are safer than others.", "A reassignment that was broken off, or a plan that named only some partitions.",
			"Bring all to the same factor with `kctl reassign generate --replication-factor`.", unevenReplication},
		{LeaderSkew, model.SeverityWarning, "a broker leads far more partitions than others", []Source{FromBrokers},
			"One broker serves far more than its share of producers and consumers (more than 1.5 times the mean, and at least ten above it).",
			"Leadership has not gone back after restarts, or the preferred leaders are placed unevenly.",
			"`kctl elect preferred --all` first; if the preferred leaders themselves are uneven, `kctl reassign generate --leaders`.", leaderSkew},
		{ReplicaSkew, model.SeverityInfo, "a broker holds far more replicas than others", []Source{FromBrokers},
			"Disk and replication load are uneven (more than 1.5 times the mean, and at least ten above it).",
			"Brokers were added after the topics were made: nothing moves by itself.",
			"`kctl reassign generate --balance` plans a balance with the least movement.", replicaSkew},
		{TooManyReplicas, model.SeverityWarning, "a broker holds more than 4,000 replicas", []Source{FromBrokers},
			"Start-up, failover and controller changes become slow: each replica costs files, memory and requests.",
			"Too many topics or partitions for the number of brokers.", "Add brokers and spread, or use fewer partitions.", tooManyReplicas},
		{RackNotSpread, model.SeverityWarning, "all replicas of a partition are in one rack", []Source{FromBrokers},
			"The loss of one rack takes every copy, although there are several racks.",
			"The topic is older than the racks, or was assigned by hand.", "`kctl reassign generate --racks` plans a spread.", rackNotSpread},
		{InternalTopicAtRisk, model.SeverityWarning, "an internal topic has fewer replicas than it could have", []Source{FromBrokers},
			"__consumer_offsets or __transaction_state has fewer than three replicas (or than there are brokers): groups or transactions stop when one broker dies.",
			"The topic was made while the cluster had a single broker, or with offsets.topic.replication.factor=1.",
			"Raise the replication factor with `kctl reassign generate --replication-factor`.", internalTopicAtRisk},
		{CoordinatorOffline, model.SeverityCritical, "a partition of an internal topic is offline: its groups or transactions have no coordinator", []Source{FromBrokers},
			"Groups (or transactional ids) that hash to this partition get COORDINATOR_NOT_AVAILABLE: they can neither join nor commit.",
			"All replicas of that partition of __consumer_offsets or __transaction_state are down.",
			"Start a broker that holds the partition.", coordinatorOffline},
	}
}

// reassignTo plans what mends a placement; carrying it out moves data and is a second step.
func reassignTo(goal string) string {
	return "kctl reassign generate " + goal + " --out plan.json   # then kctl reassign execute plan.json"
}

func leaderNotAlive(s *scene, add report) {
	s.partitions(func(p *model.Partition) {
		if p.Leader >= 0 && !s.live[p.Leader] {
			add(p.TP().String(), fmt.Sprintf("leader %d is not registered; isr %s", p.Leader, IDList(p.ISR)), "kctl controller move --yes")
		}
	})
}

func leaderNotInISR(s *scene, add report) {
	s.partitions(func(p *model.Partition) {
		if p.Leader >= 0 && len(p.ISR) > 0 && !p.InSync(p.Leader) {
			add(p.TP().String(), fmt.Sprintf("leader %d, isr %s", p.Leader, IDList(p.ISR)),
				fmt.Sprintf("kctl elect leader %s %d --yes", target(p.TP()), p.ISR[0]))
		}
	})
	if s.Tree == nil {
		return
	}
	s.edited(func(n *model.StateNode, p *model.Partition, fix string) {
		if n.Leader >= 0 && len(n.ISR) > 0 && !slices.Contains(n.ISR, n.Leader) {
			add(p.TP().String(), fmt.Sprintf("the state znode has leader %d, isr %s; the brokers follow leader %d, isr %s", n.Leader, IDList(n.ISR), p.Leader, IDList(p.ISR)), fix)
		}
	})
}

func notAReplica(s *scene, add report) {
	s.partitions(func(p *model.Partition) {
		var strangers, members []cluster.BrokerID
		for _, id := range p.ISR {
			if slices.Contains(p.Replicas, id) {
				members = append(members, id)
			} else {
				strangers = append(strangers, id)
			}
		}
		if len(p.Replicas) == 0 || len(strangers) == 0 {
			return
		}
		fix := fmt.Sprintf("kctl leader-and-isr set %s --leader %d --unclean --yes", target(p.TP()), p.Replicas[0])
		if len(members) > 0 {
			fix = fmt.Sprintf("kctl leader-and-isr set %s --leader %d --isr %s --yes", target(p.TP()), members[0], IDList(members))
		}
		add(p.TP().String(), fmt.Sprintf("replicas %s, isr %s: %s is no replica", IDList(p.Replicas), IDList(p.ISR), IDList(strangers)), fix)
	})
	if s.Tree == nil {
		return
	}
	s.edited(func(n *model.StateNode, p *model.Partition, fix string) {
		members := append(slices.Clone(n.ISR), n.Leader)
		if slices.ContainsFunc(members, func(id cluster.BrokerID) bool { return id >= 0 && !slices.Contains(p.Replicas, id) }) {
			add(p.TP().String(), fmt.Sprintf("the state znode has leader %s, isr %s, replicas %s; the brokers follow leader %d, isr %s", IDText(n.Leader), IDList(n.ISR), IDList(p.Replicas), p.Leader, IDList(p.ISR)), fix)
		}
	})
}

func duplicateReplica(s *scene, add report) {
	s.partitions(func(p *model.Partition) {
		ids := slices.Clone(p.Replicas)
		slices.Sort(ids)
		if len(slices.Compact(ids)) < len(p.Replicas) {
			add(p.TP().String(), "replicas "+IDList(p.Replicas), reassignTo(fmt.Sprintf("--replication-factor %d --topic %s", len(p.Replicas), p.Topic)))
		}
	})
}

func singleReplica(s *scene, add report) {
	if s.liveCount() < 2 {
		return
	}
	for i := range s.Snapshot.Topics {
		t := &s.Snapshot.Topics[i]
		if !t.Internal && len(t.Partitions) > 0 && t.ReplicationFactor() == 1 {
			add("topic "+t.Name, fmt.Sprintf("replication factor 1, %d brokers", s.liveCount()),
				reassignTo(fmt.Sprintf("--replication-factor %d --topic %s", min(3, s.liveCount()), t.Name)))
		}
	}
}

func unevenReplication(s *scene, add report) {
	for i := range s.Snapshot.Topics {
		t := &s.Snapshot.Topics[i]
		low, high := 0, 0
		for j := range t.Partitions {
			n := len(t.Partitions[j].Replicas) - len(t.Partitions[j].Adding)
			if n > 0 && (low == 0 || n < low) {
				low = n
			}
			high = max(high, n)
		}
		if low < high {
			add("topic "+t.Name, fmt.Sprintf("replication factors from %d to %d", low, high),
				reassignTo(fmt.Sprintf("--replication-factor %d --topic %s", high, t.Name)))
		}
	}
}

// skewed finds brokers with more than 1.5 times the mean and at least ten above it.
func skewed(s *scene, count map[cluster.BrokerID]int) (ids []cluster.BrokerID, mean int) {
	total := 0
	for id := range s.live {
		total += count[id]
	}
	if s.liveCount() < 2 {
		return nil, 0
	}
	mean = total / s.liveCount()
	for i := range s.Snapshot.Brokers {
		if id := s.Snapshot.Brokers[i].ID; s.live[id] && count[id]*2 > mean*3 && count[id] >= mean+10 {
			ids = append(ids, id)
		}
	}
	return ids, mean
}

func leaderSkew(s *scene, add report) {
	leads, preferred := map[cluster.BrokerID]int{}, map[cluster.BrokerID]int{}
	s.partitions(func(p *model.Partition) {
		leads[p.Leader]++
		preferred[p.Preferred()]++
	})
	ids, mean := skewed(s, leads)
	for _, id := range ids {
		fix := "kctl elect preferred --all --yes"
		if preferred[id] >= leads[id] {
			fix = reassignTo("--leaders")
		}
		add(objectBroker(id), fmt.Sprintf("leads %d partitions, mean %d; it is preferred for %d", leads[id], mean, preferred[id]), fix)
	}
}

func hosted(s *scene) map[cluster.BrokerID]int {
	n := map[cluster.BrokerID]int{}
	s.partitions(func(p *model.Partition) {
		for _, id := range p.Replicas {
			n[id]++
		}
	})
	return n
}

func replicaSkew(s *scene, add report) {
	count := hosted(s)
	ids, mean := skewed(s, count)
	for _, id := range ids {
		add(objectBroker(id), fmt.Sprintf("holds %d replicas, mean %d", count[id], mean), reassignTo("--balance"))
	}
}

func tooManyReplicas(s *scene, add report) {
	count := hosted(s)
	for i := range s.Snapshot.Brokers {
		if id := s.Snapshot.Brokers[i].ID; count[id] > replicasMax {
			add(objectBroker(id), fmt.Sprintf("holds %d replicas", count[id]), reassignTo("--balance"))
		}
	}
}

func rackNotSpread(s *scene, add report) {
	racks, of := map[string]bool{}, map[cluster.BrokerID]string{}
	for i := range s.Snapshot.Brokers {
		if b := &s.Snapshot.Brokers[i]; b.Live && b.Rack != "" {
			racks[b.Rack], of[b.ID] = true, b.Rack
		}
	}
	if len(racks) < 2 {
		return
	}
	s.partitions(func(p *model.Partition) {
		used := map[string]bool{}
		for _, id := range p.Replicas {
			if of[id] == "" {
				return
			}
			used[of[id]] = true
		}
		if len(p.Replicas) > 1 && len(used) == 1 {
			add(p.TP().String(), fmt.Sprintf("replicas %s are all in rack %s, of %d racks", IDList(p.Replicas), of[p.Replicas[0]], len(racks)),
				reassignTo("--racks --topic "+p.Topic))
		}
	})
}

func internalTopicAtRisk(s *scene, add report) {
	want := min(3, s.liveCount())
	for i := range s.Snapshot.Topics {
		t := &s.Snapshot.Topics[i]
		if rf := t.ReplicationFactor(); t.Internal && rf > 0 && rf < want {
			add("topic "+t.Name, fmt.Sprintf("replication factor %d, %d brokers", rf, s.liveCount()),
				reassignTo(fmt.Sprintf("--replication-factor %d --topic %s", want, t.Name)))
		}
	}
}

func coordinatorOffline(s *scene, add report) {
	s.partitions(func(p *model.Partition) {
		if t := s.topics[p.Topic]; t != nil && t.Internal && p.IsOffline() {
			add(p.TP().String(), "no leader; replicas "+IDList(p.Replicas), startBroker(p.Replicas...))
		}
	})
}
