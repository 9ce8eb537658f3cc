package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// leaderFindings makes one finding for each registered broker that leads and does not answer.
func leaderFindings(in Input) []model.Finding {
	silent := map[cluster.BrokerID][]*model.Transition{}
	for i := range in.Transitions {
		if t := &in.Transitions[i]; t.LeaderSilent && t.State != model.TransitionDone {
			silent[t.Leader] = append(silent[t.Leader], t)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	alone := withoutHeir(in.Snapshot, silent)
	out := make([]model.Finding, 0, len(silent))
	for _, id := range slices.Sorted(maps.Keys(silent)) {
		out = append(out, model.Finding{
			ID: LeaderUnreachable, Severity: model.SeverityCritical, Object: objectBroker(id),
			Evidence: silence(in, silent[id], alone[id]),
			Fix:      fmt.Sprintf("kctl brokers describe %d   # if its process hangs, restart it; if it is gone, others lead when its session ends", id),
		})
	}
	return out
}

// silence says what a silent leader holds up, and for how long at most if it is dead.
func silence(in Input, ts []*model.Transition, alone []string) string {
	parts := make([]string, len(ts))
	for i, t := range ts {
		parts[i] = cluster.TopicPartition{Topic: t.Topic, Partition: t.Partition}.String()
	}
	text := fmt.Sprintf("%s; it leads %s: %s", ts[0].Reason, count(len(parts), "partition"), some(parts))
	if len(alone) > 0 {
		text += fmt.Sprintf("; no other replica in sync lives for %d of them: %s", len(alone), some(alone))
	}
	end := "when its session ends"
	if in.Session > 0 {
		end = fmt.Sprintf("when its session ends, at most %s from now", in.Session)
	}
	return text + "; if its process is gone, others are elected " + end
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// withoutHeir names, by silent leader, its partitions that nobody else can lead: no other in-sync replica is registered and answers.
func withoutHeir(s *model.Snapshot, silent map[cluster.BrokerID][]*model.Transition) map[cluster.BrokerID][]string {
	live := Live(s)
	led := map[cluster.TopicPartition]cluster.BrokerID{}
	for id, ts := range silent {
		for _, t := range ts {
			led[cluster.TopicPartition{Topic: t.Topic, Partition: t.Partition}] = id
		}
	}
	out := map[cluster.BrokerID][]string{}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			id, ok := led[p.TP()]
			heir := func(r cluster.BrokerID) bool { return live[r] && silent[r] == nil }
			if ok && len(p.ISR) > 0 && !slices.ContainsFunc(p.ISR, heir) {
				out[id] = append(out[id], p.TP().String())
			}
		}
	}
	return out
}

// sessionTimeouts are the settings of brokers that say how long their sessions live, with ZooKeeper and in KRaft mode.
var sessionTimeouts = [2]string{"zookeeper.session.timeout.ms", "broker.session.timeout.ms"}

// sessionMax is the longest session time-out of the brokers that told theirs; 0 when none did. That of the one that is asked about
// is not known: it does not answer.
func (f *Facts) sessionMax() time.Duration {
	name := sessionTimeouts[0]
	if f.Snapshot.Controller.Quorum {
		name = sessionTimeouts[1]
	}
	longest := int64(0)
	for _, c := range f.BrokerConfigs {
		if ms, err := strconv.ParseInt(c[name].Text, 10, 64); err == nil {
			longest = max(longest, ms)
		}
	}
	return time.Duration(longest) * time.Millisecond
}
