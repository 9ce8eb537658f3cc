package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// The stable ids of findings.
const (
	OfflinePartition   = "offline-partition"
	UnderReplicated    = "under-replicated"
	UnderMinISR        = "under-min-isr"
	AtMinISR           = "at-min-isr"
	NoController       = "no-controller"
	BrokerDown         = "broker-down"
	BrokerUnreachable  = "broker-unreachable"
	LeaderUnreachable  = "leader-unreachable"
	StuckTransition    = "stuck-transition"
	PendingTransition  = "pending-transition"
	NotPreferred       = "not-preferred"
	DeadReplicaInISR   = "dead-replica-in-isr"
	ControllerMismatch = "controller-mismatch"
	TopicError         = "topic-error"
)

// IDs lists every finding id with what it means, in the order in which they are reported.
func IDs() [][2]string {
	return [][2]string{
		{NoController, "no broker is the active controller, so nothing is elected"},
		{ControllerMismatch, "ZooKeeper and the brokers name different controllers"},
		{BrokerDown, "a broker named in replica lists is not registered"},
		{BrokerUnreachable, "a registered broker did not answer"},
		{OfflinePartition, "a partition has no leader: no reads, no writes"},
		{UnderMinISR, "fewer in-sync replicas than min.insync.replicas: acks=all is refused"},
		{LeaderUnreachable, "a registered broker leads partitions and does not answer"},
		{StuckTransition, "a leadership decision has not been carried out in time"},
		{PendingTransition, "a leadership decision is being carried out"},
		{DeadReplicaInISR, "the ISR names a broker that is not registered"},
		{UnderReplicated, "fewer in-sync replicas than replicas"},
		{AtMinISR, "the loss of one more in-sync replica stops acks=all"},
		{TopicError, "a topic could not be read"},
		{NotPreferred, "the leader is not the first replica of the list"},
	}
}

// Input is what Health judges. Transitions may be nil when they were not looked for. Session is how long the session of a broker
// lives without a sign of it, at most; 0 when that is not known.
type Input struct {
	Snapshot    *model.Snapshot
	Transitions []model.Transition
	Session     time.Duration
}

// Healthy reports whether no finding is worse than info.
func Healthy(findings []model.Finding) bool {
	return !slices.ContainsFunc(findings, func(f model.Finding) bool { return f.Severity != model.SeverityInfo })
}

// Health returns every finding, worst kinds first, then by object. Nothing is summed up or cut off: a
// hundred offline partitions are a hundred findings. Only the decisions of a leader that is merely silent are one finding of
// that broker: they have one cause, and are done when it answers again or its session ends.
func Health(in Input) []model.Finding {
	var out []model.Finding
	out = append(out, controllerFindings(in)...)
	out = append(out, brokerFindings(in.Snapshot)...)
	live := Live(in.Snapshot)
	for i := range in.Snapshot.Topics {
		t := &in.Snapshot.Topics[i]
		if t.Err != "" {
			out = append(out, model.Finding{
				ID: TopicError, Severity: model.SeverityWarning, Object: "topic " + t.Name,
				Evidence: t.Err, Fix: "kctl topics describe " + model.ShellWord(t.Name),
			})
		}
		for j := range t.Partitions {
			out = append(out, partitionFindings(&t.Partitions[j], live)...)
		}
	}
	out = append(out, leaderFindings(in)...)
	out = append(out, transitionFindings(in.Transitions)...)
	sortFindings(out)
	return out
}

func sortFindings(out []model.Finding) {
	rank := map[string]int{}
	for i, id := range IDs() {
		rank[id[0]] = i
	}
	slices.SortStableFunc(out, func(a, b model.Finding) int {
		return cmp.Compare(rank[a.ID], rank[b.ID])
	})
}

// Live returns the ids of registered brokers.
func Live(s *model.Snapshot) map[cluster.BrokerID]bool {
	live := make(map[cluster.BrokerID]bool, len(s.Brokers))
	for i := range s.Brokers {
		if s.Brokers[i].Live {
			live[s.Brokers[i].ID] = true
		}
	}
	return live
}

func controllerFindings(in Input) []model.Finding {
	c := in.Snapshot.Controller
	live := Live(in.Snapshot)
	switch {
	case c.Silent:
		return []model.Finding{{
			ID: NoController, Severity: model.SeverityCritical, Object: "cluster",
			Evidence: "the controllers do not answer the brokers: nothing can be changed, and no new leader is elected",
			Fix:      "kctl controller describe   # start controllers until most of controller.quorum.voters run",
		}}
	case c.Quorum && c.ID < 0 && c.Epoch < 0:
		return nil // they did not tell, which is a problem of the snapshot
	case c.Quorum && c.ID < 0:
		return []model.Finding{{
			ID: NoController, Severity: model.SeverityCritical, Object: "cluster",
			Evidence: fmt.Sprintf("the quorum of the controllers has no leader (epoch %d)", c.Epoch), Fix: "kctl controller describe   # start controllers until most of them run",
		}}
	case c.Quorum:
		return nil // it need not be a broker
	case c.ID < 0:
		return []model.Finding{{
			ID: NoController, Severity: model.SeverityCritical, Object: "cluster",
			Evidence: "no broker is named as controller", Fix: "kctl brokers list   # start a broker: none stands for controller",
		}}
	case !live[c.ID]:
		return []model.Finding{{
			ID: NoController, Severity: model.SeverityCritical, Object: fmt.Sprintf("broker %d", c.ID),
			Evidence: fmt.Sprintf("broker %d is named as controller but is not registered", c.ID),
			Fix:      fmt.Sprintf("kctl controller describe   # start broker %d, or wait for its ZooKeeper session to expire", c.ID),
		}}
	}
	if !in.Snapshot.ZooKeeper {
		return nil // the brokers are one source only
	}
	var odd []string
	for i := range in.Snapshot.Brokers {
		if b := &in.Snapshot.Brokers[i]; b.Asked && b.Err == "" && b.Sees != c.ID {
			odd = append(odd, fmt.Sprintf("broker %d says %s", b.ID, IDText(b.Sees)))
		}
	}
	if len(odd) == 0 {
		return nil
	}
	return []model.Finding{{
		ID: ControllerMismatch, Severity: model.SeverityWarning, Object: fmt.Sprintf("broker %d", c.ID),
		Evidence: fmt.Sprintf("controller is %d, but %s", c.ID, strings.Join(odd, ", ")),
		Fix:      "kctl controller move --yes   # if it stays after a few seconds",
	}}
}

func brokerFindings(s *model.Snapshot) []model.Finding {
	hosted := map[cluster.BrokerID]int{}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			for _, r := range s.Topics[i].Partitions[j].Replicas {
				hosted[r]++
			}
		}
	}
	var out []model.Finding
	for i := range s.Brokers {
		b := &s.Brokers[i]
		switch {
		case !b.Live:
			out = append(out, model.Finding{
				ID: BrokerDown, Severity: model.SeverityCritical, Object: fmt.Sprintf("broker %d", b.ID),
				Evidence: fmt.Sprintf("named in %d replica lists but not registered", hosted[b.ID]),
				Fix:      startBroker(b.ID),
			})
		case b.Asked && b.Err != "":
			out = append(out, model.Finding{
				ID: BrokerUnreachable, Severity: model.SeverityCritical, Object: fmt.Sprintf("broker %d", b.ID),
				Evidence: b.Err, Fix: fmt.Sprintf("kctl brokers describe %d   # check the process and network of %s:%d", b.ID, b.Host, b.Port),
			})
		}
	}
	return out
}

func partitionFindings(p *model.Partition, live map[cluster.BrokerID]bool) []model.Finding {
	var out []model.Finding
	add := func(id string, sev model.Severity, evidence, fix string) {
		out = append(out, model.Finding{ID: id, Severity: sev, Object: p.TP().String(), Evidence: evidence, Fix: fix})
	}
	if p.Err != "" && len(p.Replicas) == 0 {
		add(TopicError, model.SeverityWarning, p.Err, "kctl topics describe "+model.ShellWord(p.Topic))
		return out
	}
	dead := notIn(p.Replicas, live)
	if p.IsOffline() {
		add(OfflinePartition, model.SeverityCritical,
			fmt.Sprintf("leader none, replicas %s, isr %s", IDList(p.Replicas), IDList(p.ISR)), offlineFix(p, live))
	}
	if !p.IsOffline() && p.UnderMinISR() {
		add(UnderMinISR, model.SeverityCritical,
			fmt.Sprintf("isr %s has %d of min.insync.replicas %d", IDList(p.ISR), len(p.ISR), p.MinISR), replicaFix(p, dead))
	}
	if deadISR := notIn(p.ISR, live); !p.IsOffline() && len(deadISR) > 0 {
		add(DeadReplicaInISR, model.SeverityWarning,
			fmt.Sprintf("isr %s names dead broker %s", IDList(p.ISR), IDList(deadISR)), replicaFix(p, deadISR))
	}
	if p.UnderReplicated() {
		add(UnderReplicated, model.SeverityWarning,
			fmt.Sprintf("isr %s of replicas %s", IDList(p.ISR), IDList(p.Replicas)), replicaFix(p, dead))
	} else if !p.IsOffline() && p.AtMinISR() && p.MinISR > 1 {
		add(AtMinISR, model.SeverityInfo,
			fmt.Sprintf("isr %s is exactly min.insync.replicas %d", IDList(p.ISR), p.MinISR), "kctl lag replicas "+target(p.TP())+"   # none needed while all brokers are up")
	}
	if p.NotPreferred() {
		add(NotPreferred, model.SeverityInfo,
			fmt.Sprintf("leader %d, preferred %d", p.Leader, p.Preferred()), preferredFix(p, live))
	}
	return out
}

func offlineFix(p *model.Partition, live map[cluster.BrokerID]bool) string {
	wanted := p.ISR
	if len(wanted) == 0 {
		wanted = p.Replicas
	}
	if dead := notIn(wanted, live); len(dead) > 0 {
		return startBroker(dead...) + " (an in-sync replica)"
	}
	return "kctl log-dirs describe   # check those of broker " + IDList(wanted)
}

// preferredFix is the election only when it can succeed: the preferred leader has to live and to be in sync.
func preferredFix(p *model.Partition, live map[cluster.BrokerID]bool) string {
	switch {
	case !live[p.Preferred()]:
		return startBroker(p.Preferred())
	case !slices.Contains(p.ISR, p.Preferred()):
		return fmt.Sprintf("kctl lag replicas %s   # broker %d has to catch up first", target(p.TP()), p.Preferred())
	}
	return fmt.Sprintf("kctl elect preferred %s --yes", target(p.TP()))
}

func replicaFix(p *model.Partition, dead []cluster.BrokerID) string {
	if len(dead) > 0 {
		return startBroker(dead...)
	}
	return "kctl lag replicas " + target(p.TP()) + "   # shows which follower is behind"
}

func transitionFindings(ts []model.Transition) []model.Finding {
	var out []model.Finding
	for i := range ts {
		t := &ts[i]
		if t.LeaderSilent {
			continue // leaderFindings
		}
		f := model.Finding{
			Object:   cluster.TopicPartition{Topic: t.Topic, Partition: t.Partition}.String(),
			Evidence: t.Reason, Fix: t.Fix,
		}
		switch t.State {
		case model.TransitionStuck:
			f.ID, f.Severity = StuckTransition, model.SeverityCritical
		case model.TransitionPending:
			f.ID, f.Severity = PendingTransition, model.SeverityInfo
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

func notIn(ids []cluster.BrokerID, live map[cluster.BrokerID]bool) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, id := range ids {
		if !live[id] {
			out = append(out, id)
		}
	}
	return out
}

// IDList writes broker ids in their order, separated by commas; none for an empty list.
func IDList(ids []cluster.BrokerID) string {
	if len(ids) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(id)))
	}
	return b.String()
}

// IDText writes one broker id; none when there is no broker.
func IDText(id cluster.BrokerID) string {
	if id < 0 {
		return "none"
	}
	return strconv.Itoa(int(id))
}
