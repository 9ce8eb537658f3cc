package check

import (
	"strings"

	"kctl/admin/model"
)

// healthChecks are those of Health, under the same ids.
func healthChecks() []Check {
	severities := map[string]model.Severity{
		ControllerMismatch: model.SeverityWarning, PendingTransition: model.SeverityInfo, DeadReplicaInISR: model.SeverityWarning,
		UnderReplicated: model.SeverityWarning, AtMinISR: model.SeverityInfo, TopicError: model.SeverityWarning, NotPreferred: model.SeverityInfo,
	}
	var out []Check
	for _, id := range IDs() {
		sev, ok := severities[id[0]]
		if !ok {
			sev = model.SeverityCritical
		}
		text := healthTexts[id[0]]
		c := Check{ID: id[0], Severity: sev, Summary: id[1], Needs: []Source{FromBrokers}, Means: text[0], Causes: text[1], Remedy: text[2], find: fromHealth(id[0])}
		if id[0] == StuckTransition || id[0] == PendingTransition || id[0] == LeaderUnreachable {
			c.Needs = []Source{FromTransitions}
		}
		out = append(out, c)
	}
	return out
}

func fromHealth(id string) func(*scene, report) {
	return func(s *scene, add report) {
		for _, f := range s.health {
			if f.ID != id {
				continue
			}
			fix := f.Fix
			if !strings.HasPrefix(fix, "kctl ") { // work at the broker's machine, or none
				fix = strings.TrimSuffix("kctl transitions   # "+fix, "   # ")
			}
			add(f.Object, f.Evidence, fix)
		}
	}
}

// healthTexts are meaning, causes and remedy of the checks of Health.
var healthTexts = map[string][3]string{
	NoController: {
		"No broker acts as controller. Nothing is elected: a partition whose leader dies stays without one, topics are neither created nor deleted, reassignments stand still.",
		"Every broker that could stand is down or has lost its ZooKeeper session; or /controller names a broker that is gone and its session has not expired yet. In KRaft mode: fewer than most of the controllers that controller.quorum.voters names run or reach each other, so none of them is active.",
		"Start a broker, or wait for the session to expire; in KRaft mode start controllers until most of them run. If /controller names a broker that does not act, `kctl controller move` ends its term and another is elected.",
	},
	ControllerMismatch: {
		"A broker names another controller than ZooKeeper does. It may take orders from one that was replaced, or has missed the news.",
		"A controller change within the last seconds; a broker cut off from the controller; a controller that lost its session without noticing.",
		"Ask again after a few seconds. If it stays, make a new controller with `kctl controller move`: it sends all brokers its metadata.",
	},
	BrokerDown: {
		"A broker that replica lists name is not registered. Its replicas do not follow, and partitions whose ISR it alone held are offline.",
		"The process ended, its machine is down, or it lost its ZooKeeper session and cannot get a new one.",
		"Start the broker. If it will not come back, move its replicas away with `kctl reassign generate --drain`.",
	},
	BrokerUnreachable: {
		"A broker is registered in ZooKeeper, but did not answer a request in time on its advertised address.",
		"A hung process, a firewall, an advertised listener that points to the wrong host or port, or an overloaded broker.",
		"Check the process and that its advertised address can be reached from here. Restart it if it hangs: its session keeps it in the cluster while it does not serve.",
	},
	OfflinePartition: {
		"Nobody leads the partition: it can be neither read nor written.",
		"All in-sync replicas are down or their log directories failed. With unclean.leader.election.enable=false nobody else may lead.",
		"Start the broker that was in sync last. Only if it is lost for good: `kctl elect unclean`, which loses what the others did not have.",
	},
	UnderMinISR: {
		"Fewer replicas are in sync than min.insync.replicas: producers with acks=all are refused (NOT_ENOUGH_REPLICAS).",
		"Brokers are down or replicas lag behind.",
		"Bring the missing replicas back. Lowering min.insync.replicas restores writes at the price of durability.",
	},
	LeaderUnreachable: {
		"A broker is registered and leads partitions, but does not answer: clients of these partitions wait. It is one finding for the broker, whatever the number of partitions; the evidence counts them and names the first, `kctl transitions` lists each.",
		"The process has just died and its session has not ended yet; it hangs, or its address cannot be reached from here. While the session lasts the controller takes the broker for alive and elects nobody else.",
		"A dead broker needs nothing but patience: when its session ends (zookeeper.session.timeout.ms, in KRaft mode broker.session.timeout.ms) other in-sync replicas are elected; partitions without one stay offline until it is started again. Restart a process that hangs: its session keeps it in office for as long as it hangs. A decision that something else is wrong with too (an alert of the controller, an epoch that no broker was told of) is still a `stuck-transition` of its own.",
	},
	StuckTransition: {
		"A leadership decision stands in ZooKeeper, but a broker named in it does not act on it. Clients are sent to a broker that refuses them.",
		"A request of the controller was lost (controller failure in between), the state was edited by hand, or the broker hangs.",
		"The fix of the finding is chosen by what the brokers answered: `kctl transitions` shows each step it waits for. Decisions that wait for nothing but the answer of a silent leader are one `leader-unreachable` of that broker.",
	},
	PendingTransition: {
		"A leadership decision is younger than the limit and not carried out by everybody yet. This is normal for a moment.",
		"An election, a controlled shutdown or a reassignment is under way.",
		"Look again in a few seconds. It becomes `stuck-transition` when it takes too long.",
	},
	DeadReplicaInISR: {
		"The ISR names a broker that is not registered. acks=all waits for it until the leader removes it.",
		"The broker died a moment ago and replica.lag.time.max.ms has not passed; or the leader cannot change the ISR (a stale znode version).",
		"Start the broker. If the ISR stays as it is for longer than replica.lag.time.max.ms, see `isr-stuck`.",
	},
	UnderReplicated: {
		"Fewer replicas are in sync than there are. The data is safe on fewer machines than you asked for.",
		"A broker is down, slow, or throttled; a disk failed; a reassignment has just added a replica.",
		"`kctl lag replicas` shows who is behind and by how much. Bring that broker back.",
	},
	AtMinISR: {
		"As many replicas are in sync as min.insync.replicas asks for: with one fewer, acks=all is refused.",
		"A replica has left the ISR, or the topic was made with as many replicas as min.insync.replicas (see `min-isr-equals-replicas`).",
		"None is needed while all brokers are up. Bring back the missing replica.",
	},
	TopicError: {
		"A broker answered an error for a topic or partition, or it could not be read from ZooKeeper.",
		"Missing permissions, a topic that is being deleted, or a znode that cannot be decoded.",
		"`kctl topics describe` shows the error in full.",
	},
	NotPreferred: {
		"Another replica than the first of the list leads. Harmless for one partition; many of them load brokers unevenly.",
		"A broker was restarted and leadership did not go back (auto.leader.rebalance.enable=false, or its turn has not come).",
		"`kctl elect preferred`.",
	},
}
