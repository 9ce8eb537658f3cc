package check

import (
	"fmt"
	"slices"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Ids of findings on log directories and on the positions of replicas.
const (
	DirOffline      = "log-dir-offline"
	DirFull         = "log-dir-nearly-full"
	StrayReplica    = "stray-replica"
	ReplicaMissing  = "replica-missing-on-disk"
	FutureReplica   = "replica-move-unfinished"
	ReplicaOffline  = "replica-offline"
	ReplicaStuck    = "replica-not-catching-up"
	ISRStuck        = "isr-stuck"
	WatermarkStuck  = "high-watermark-stuck"
	FollowerAhead   = "follower-ahead-of-leader"
	ReplicaBehind   = "replica-far-behind"
	InSyncButBehind = "in-sync-replica-far-behind"
)

// fullBelow is the part of a volume, in per cent, below which it is nearly full; farBehind a lag in records.
const (
	fullBelow = 10
	farBehind = 100_000
)

func storageChecks() []Check {
	needs := []Source{FromBrokers, FromLogDirs}
	return []Check{
		{DirOffline, model.SeverityCritical, "a log directory is offline", needs,
			"The broker cannot use the directory: its replicas there neither lead nor follow until the broker is restarted with a good disk.",
			"A disk error, a file system that was remounted read-only, missing permissions.", "Repair or replace the disk, then restart the broker.", dirOffline},
		{DirFull, model.SeverityWarning, "a log directory's volume has less than a tenth of its space left", needs,
			"When it is full the broker takes the directory offline, with all its replicas.",
			"Retention is too long for the disk, or replicas are placed unevenly.", "Shorten retention, move replicas away, or add space.", dirFull},
		{StrayReplica, model.SeverityInfo, "a broker has a replica on disk that is not assigned to it", needs,
			"It takes space, and comes back to life with old data if the partition is assigned to the broker again.",
			"The broker was down while its replica was moved away or the topic deleted, and ZooKeeper mode never tells it to delete what it missed.",
			"Delete the folder while the broker is stopped, after a look at the size; `kctl leftovers list` names it.", strayReplica},
		{ReplicaMissing, model.SeverityWarning, "a broker does not have a replica that is assigned to it", needs,
			"The broker is alive but has no log for the partition: it does not follow.",
			"The controller's order was lost or refused, for example with INCONSISTENT_TOPIC_ID, or the directory is offline.",
			"A new controller sends all orders again: `kctl controller move`.", replicaMissing},
		{FutureReplica, model.SeverityInfo, "a replica is on its way between two log directories", needs,
			"A copy is being made in another directory of the same broker. It is a finding because such moves are easily forgotten when throttled.",
			"`kctl log-dirs move`, or a reassignment with log_dirs.", "Wait; `kctl log-dirs describe` shows the copy's size and lag.", futureReplica},
		{ReplicaOffline, model.SeverityWarning, "a live broker reports a replica offline", []Source{FromBrokers},
			"The broker lives, but this replica is on a failed log directory.", "As for `log-dir-offline`.", "Repair the disk and restart the broker.", replicaOffline},
	}
}

func positionChecks() []Check {
	needs := []Source{FromBrokers, FromPositions}
	return []Check{
		{ReplicaStuck, model.SeverityWarning, "a follower is behind and its log end does not move", needs,
			"Between two looks the follower got nothing although the leader has more. It does not fetch: it will not catch up by itself.",
			"A fetcher thread died or the partition was put aside after an error (KAFKA-12996, KAFKA-7235); a throttle of nearly nothing.",
			"A new leader epoch starts the fetcher anew; if it stays, restart the follower.", replicaStuck},
		{ISRStuck, model.SeverityWarning, "a follower has all of the leader's log and is not in the ISR", needs,
			"The leader does not let it in: it cannot change the ISR any more. The partition stays under-replicated and a further failure may take it offline.",
			"The leader has an old version of the state znode (KAFKA-2729, KAFKA-3042), or waits for an answer of a controller that is gone (KAFKA-14154).",
			"A new leader epoch frees it: let another in-sync replica lead, or restart the leader where it is alone.", isrStuck},
		{WatermarkStuck, model.SeverityWarning, "the high watermark is below the log end of every in-sync replica and does not move", needs,
			"acks=all waits and consumers do not see the newest records although all in-sync replicas have them.",
			"The leader waits for an ISR change that was lost (KAFKA-12686), or the ISR is below min.insync.replicas.",
			"A new leader epoch frees it.", watermarkStuck},
		{FollowerAhead, model.SeverityWarning, "a follower's log is longer than its leader's", needs,
			"Records of an earlier epoch are on the follower only: it has not cut its log, or the leader has lost records.",
			"An unclean election, or a follower that does not fetch.", "Compare both logs before restarting the follower: it cuts its log to the leader's.", followerAhead},
		{ReplicaBehind, model.SeverityInfo, "a follower is more than 100,000 records behind, and catching up", needs,
			"It is not in sync yet. The figure moves: it will arrive.", "A broker that came back, or a reassignment.", "Wait; `kctl lag replicas --watch` shows rate and time.", replicaBehind},
		{InSyncButBehind, model.SeverityInfo, "an in-sync replica is more than 100,000 records behind", needs,
			"It still counts as in sync because it was at the end within replica.lag.time.max.ms. Its death would be harmless; a further burst may drop it.",
			"A burst of writes, or replica.lag.time.max.ms is long.", "None is needed if it passes.", inSyncButBehind},
	}
}

func dirOffline(s *scene, add report) {
	for i := range s.Dirs {
		if d := &s.Dirs[i]; d.Err != "" {
			add(objectBroker(d.Broker), fmt.Sprintf("%s: %s", d.Path, d.Err), fmt.Sprintf("kctl log-dirs describe --broker %d   # repair the disk, restart broker %d", d.Broker, d.Broker))
		}
	}
}

func dirFull(s *scene, add report) {
	for i := range s.Dirs {
		d := &s.Dirs[i]
		if d.Err == "" && d.Total > 0 && d.Usable >= 0 && d.Usable/(d.Total/100+1) < fullBelow {
			add(objectBroker(d.Broker), fmt.Sprintf("%s: %s of %s left", d.Path, Bytes(d.Usable), Bytes(d.Total)), fmt.Sprintf("kctl log-dirs describe --broker %d   # shorten retention, move replicas away, or add space", d.Broker))
		}
	}
}

// Bytes writes a size in binary units.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// Stray is a replica on a disk that no replica list names.
type Stray struct {
	Broker cluster.BrokerID
	Dir    string
	TP     cluster.TopicPartition
	Size   int64
}

// Strays finds them. Topics whose metadata has an error are left alone, and so are those being deleted.
func Strays(f *Facts) []Stray { return strays(newScene(f)) }

func strays(s *scene) []Stray {
	var out []Stray
	for i := range s.Dirs {
		d := &s.Dirs[i]
		for _, r := range d.Replicas {
			t := s.topics[r.TP.Topic]
			if r.Future || t != nil && t.Err != "" || s.Tree != nil && s.deleting(r.TP.Topic) {
				continue
			}
			p := s.parts[r.TP]
			if p == nil || !slices.Contains(p.Replicas, d.Broker) && len(p.Adding)+len(p.Removing) == 0 {
				out = append(out, Stray{d.Broker, d.Path, r.TP, r.Size})
			}
		}
	}
	return out
}

func strayReplica(s *scene, add report) {
	for _, st := range strays(s) {
		add(fmt.Sprintf("%s on broker %d", st.TP, st.Broker), fmt.Sprintf("%s in %s, and no replica list names it", Bytes(st.Size), st.Dir), fmt.Sprintf("kctl leftovers list stray-replica   # delete the folder while broker %d is stopped", st.Broker))
	}
}

func replicaMissing(s *scene, add report) {
	has, broken := map[replicaKey]bool{}, map[cluster.BrokerID]bool{}
	answered := map[cluster.BrokerID]bool{}
	for i := range s.Dirs {
		d := &s.Dirs[i]
		answered[d.Broker] = true
		broken[d.Broker] = broken[d.Broker] || d.Err != ""
		for _, r := range d.Replicas {
			has[replicaKey{r.TP, d.Broker}] = true
		}
	}
	s.partitions(func(p *model.Partition) {
		for _, id := range p.Replicas {
			if answered[id] && !broken[id] && !has[replicaKey{p.TP(), id}] && !slices.Contains(p.Adding, id) && s.missingToo(p.TP(), id) {
				add(fmt.Sprintf("%s on broker %d", p.TP(), id), fmt.Sprintf("replicas %s; none of broker %d's log directories has it", IDList(p.Replicas), id), "kctl controller move --yes")
			}
		}
	})
}

// missingToo asks the positions, where they were read: a topic may be created between two readings.
func (s *scene) missingToo(tp cluster.TopicPartition, id cluster.BrokerID) bool {
	if s.ends == nil {
		s.ends = make(map[replicaKey]int64, len(s.Positions))
		for i := range s.Positions {
			p := &s.Positions[i]
			s.ends[replicaKey{cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}, p.Broker}] = p.LogEndOffset
		}
	}
	end, ok := s.ends[replicaKey{tp, id}]
	return !ok || end < 0
}

func futureReplica(s *scene, add report) {
	for i := range s.Dirs {
		for _, r := range s.Dirs[i].Replicas {
			if r.Future {
				add(fmt.Sprintf("%s on broker %d", r.TP, s.Dirs[i].Broker), fmt.Sprintf("%s copied to %s", Bytes(r.Size), s.Dirs[i].Path),
					fmt.Sprintf("kctl log-dirs describe --broker %d", s.Dirs[i].Broker))
			}
		}
	}
}

func replicaOffline(s *scene, add report) {
	s.partitions(func(p *model.Partition) {
		for _, id := range p.Offline {
			if s.live[id] {
				add(fmt.Sprintf("%s on broker %d", p.TP(), id), fmt.Sprintf("offline replica, but broker %d is registered", id),
					fmt.Sprintf("kctl log-dirs describe --broker %d   # repair the disk, restart broker %d", id, id))
			}
		}
	})
}

// Suspects are the partitions whose replicas deserve a second look after a moment: a follower out of the ISR or far behind, or
// a high watermark below the log end.
func Suspects(f *Facts) []cluster.TopicPartition {
	s := newScene(f)
	var out []cluster.TopicPartition
	seen := map[cluster.TopicPartition]bool{}
	for i := range f.Positions {
		p := &f.Positions[i]
		tp := cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		odd := !p.InSync || p.LagRecords > farBehind || p.Leader && p.HighWatermark >= 0 && p.HighWatermark < p.LogEndOffset ||
			!p.Leader && p.LogEndOffset > s.leads[tp].LogEndOffset
		if p.Err == "" && odd && !seen[tp] {
			seen[tp] = true
			out = append(out, tp)
		}
	}
	return out
}

// twice calls fn for every follower that was looked at twice, with the leader's first position.
func (s *scene) twice(fn func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition)) {
	if len(s.later) == 0 {
		return
	}
	for _, p := range s.Positions {
		tp := cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		second, ok := s.later[replicaKey{tp, p.Broker}]
		leader, led := s.leads[tp]
		if ok && led && p.Err == "" && second.Err == "" && p.LogEndOffset >= 0 && leader.LogEndOffset >= 0 {
			fn(tp, leader, p, second)
		}
	}
}

// newEpoch makes a new leader epoch: another in-sync replica leads. Where the leader is alone it has to be restarted, which makes
// one as well.
func newEpoch(s *scene, tp cluster.TopicPartition) string {
	p := s.parts[tp]
	if p == nil {
		return "kctl lag replicas " + target(tp)
	}
	for _, id := range p.ISR {
		if id != p.Leader && s.live[id] {
			return fmt.Sprintf("kctl elect leader %s %d --yes", target(tp), id)
		}
	}
	return fmt.Sprintf("kctl brokers describe %d   # restart broker %d: it leads alone", p.Leader, p.Leader)
}

func replicaStuck(s *scene, add report) {
	s.twice(func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition) {
		if !first.Leader && first.LogEndOffset == second.LogEndOffset && second.LogEndOffset < leader.LogEndOffset {
			add(fmt.Sprintf("%s on broker %d", tp, first.Broker), fmt.Sprintf("log end %d twice, %d records behind leader %d", first.LogEndOffset, leader.LogEndOffset-first.LogEndOffset, leader.Broker), newEpoch(s, tp))
		}
	})
}

func isrStuck(s *scene, add report) {
	s.twice(func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition) {
		if !first.Leader && !second.InSync && !first.InSync && first.LogEndOffset >= leader.LogEndOffset && first.LeaderEpoch == leader.LeaderEpoch {
			add(fmt.Sprintf("%s on broker %d", tp, first.Broker), fmt.Sprintf("log end %d, leader's %d, isr %s", first.LogEndOffset, leader.LogEndOffset, IDList(s.isrOf(tp))), newEpoch(s, tp))
		}
	})
}

func (s *scene) isrOf(tp cluster.TopicPartition) []cluster.BrokerID {
	if p := s.parts[tp]; p != nil {
		return p.ISR
	}
	return nil
}

func watermarkStuck(s *scene, add report) {
	lowest := map[cluster.TopicPartition]int64{}
	for _, p := range s.Positions {
		tp := cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		if low, ok := lowest[tp]; p.InSync && (!ok || p.LogEndOffset < low) {
			lowest[tp] = p.LogEndOffset
		}
	}
	s.twice(func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition) {
		if first.Leader && first.HighWatermark >= 0 && first.HighWatermark == second.HighWatermark && first.HighWatermark < lowest[tp] {
			add(tp.String(), fmt.Sprintf("high watermark %d twice, every in-sync replica has %d", first.HighWatermark, lowest[tp]), newEpoch(s, tp))
		}
	})
}

func followerAhead(s *scene, add report) {
	s.twice(func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition) {
		now, ok := s.later[replicaKey{tp, leader.Broker}]
		if ok && !first.Leader && first.LogEndOffset > leader.LogEndOffset && second.LogEndOffset > now.LogEndOffset && now.LogEndOffset >= 0 {
			add(fmt.Sprintf("%s on broker %d", tp, first.Broker), fmt.Sprintf("log end %d, leader %d has %d", first.LogEndOffset, leader.Broker, leader.LogEndOffset), "kctl lag replicas "+target(tp))
		}
	})
}

func replicaBehind(s *scene, add report) {
	s.twice(func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition) {
		if !first.Leader && !first.InSync && leader.LogEndOffset-first.LogEndOffset > farBehind && second.LogEndOffset > first.LogEndOffset {
			add(fmt.Sprintf("%s on broker %d", tp, first.Broker), fmt.Sprintf("%d records behind, %d fewer a moment later", leader.LogEndOffset-first.LogEndOffset, second.LogEndOffset-first.LogEndOffset), "kctl lag replicas "+target(tp))
		}
	})
}

func inSyncButBehind(s *scene, add report) {
	for _, p := range s.Positions {
		tp := cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		if p.Err == "" && !p.Leader && p.InSync && p.LagRecords > farBehind {
			add(fmt.Sprintf("%s on broker %d", tp, p.Broker), fmt.Sprintf("%d records behind", p.LagRecords), "kctl lag replicas "+target(tp))
		}
	}
}

// roundAge writes an age as people read it.
func roundAge(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < 48*time.Hour:
		return d.Truncate(time.Minute).String()
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
