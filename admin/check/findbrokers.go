package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Ids of findings on brokers and on what they answer.
const (
	AddressShared         = "address-shared"
	LoopbackAddress       = "loopback-address"
	RackMissing           = "rack-missing"
	RegistrationMalformed = "registration-malformed"
	ClusterIDMismatch     = "cluster-id-mismatch"
	MixedVersions         = "mixed-versions"
	StaleMetadata         = "stale-metadata"
	LiveBrokersDiffer     = "live-brokers-differ"
	TooFewBrokers         = "too-few-brokers"
	ControllerDenies      = "controller-denies"
)

func brokerChecks() []Check {
	return []Check{
		{AddressShared, model.SeverityCritical, "two brokers are registered with the same address", []Source{FromBrokers},
			"Clients that look for one of them reach the other and get NOT_LEADER_OR_FOLLOWER without end.",
			"advertised.listeners was copied from another broker's configuration.", "Give each broker its own advertised.listeners and restart it.", addressShared},
		{LoopbackAddress, model.SeverityWarning, "a broker advertises a loopback address while others do not", []Source{FromBrokers},
			"Clients on other machines are sent to themselves.", "advertised.listeners is not set and the host name resolves to 127.0.0.1.",
			"Set advertised.listeners on that broker and restart it.", loopbackAddress},
		{RackMissing, model.SeverityWarning, "some brokers have a rack and others have none", []Source{FromBrokers},
			"Rack-aware placement is refused or wrong: Kafka's own tools fail on such a cluster.", "broker.rack is missing in some configurations.",
			"Set broker.rack on every broker, or on none.", rackMissing},
		{RegistrationMalformed, model.SeverityCritical, "a broker's registration cannot be decoded", []Source{FromBrokers, FromZooKeeper},
			"The controller and other brokers cannot learn the broker's address.", "An edit by hand.", "Restart the broker: it registers anew.", registrationMalformed},
		{TooFewBrokers, model.SeverityInfo, "there is a single broker", []Source{FromBrokers},
			"Nothing can be replicated: every failure is an outage.", "A development cluster, or all others are down and no replica list names them.",
			"Start more brokers.", tooFewBrokers},
		{ControllerDenies, model.SeverityCritical, "the broker that /controller names does not act as controller", []Source{FromBrokers, FromZooKeeper},
			"/controller names a broker that denies it: its own metadata names another broker or none, or it refuses requests for the controller (NOT_CONTROLLER). Nobody else stands while the znode is there, so nothing is elected, created or moved.",
			"The znode was made or edited by hand; or the broker lost its office without losing its session: its controller failed while taking over, or missed a ZooKeeper watch.",
			"`kctl controller move` removes the znode, and another controller is elected. If the same broker denies it again, restart it. It is looked for only when the znode is older than ten seconds: a controller that takes over tells itself last.",
			controllerDenies},
	}
}

func viewChecks() []Check {
	return []Check{
		{ClusterIDMismatch, model.SeverityCritical, "brokers, or ZooKeeper and brokers, have different cluster ids", []Source{FromBrokers},
			"They do not belong to the same cluster: what is changed through one does not reach the other.",
			"A broker was pointed at another ZooKeeper or chroot, or the addresses given to kctl belong to two clusters.",
			"Check zookeeper.connect of the broker that is named, and -b and -z.", clusterIDMismatch},
		{MixedVersions, model.SeverityInfo, "brokers run different versions", []Source{FromBrokers},
			"Their API versions differ. Normal during a rolling upgrade; not for long.",
			"An upgrade that was not finished, or a broker that was left out.", "Finish the upgrade.", mixedVersions},
		{StaleMetadata, model.SeverityWarning, "a broker's metadata differs from the decision in ZooKeeper or at other brokers", []Source{FromBrokers, FromTransitions},
			"Clients that ask this broker are sent to the wrong leader, or do not see a topic.",
			"The controller's update did not reach the broker, or the broker came back faster than the controller noticed (KAFKA-1120).",
			"`kctl cluster diff` shows every field. A new controller sends all metadata: `kctl controller move`.", staleMetadata},
		{LiveBrokersDiffer, model.SeverityWarning, "a broker sees other live brokers than ZooKeeper has", []Source{FromBrokers, FromZooKeeper},
			"Followers whose leader this broker does not see cannot fetch; clients are given an incomplete list.",
			"As for `stale-metadata`, or a registration that vanished with an expired session while its broker runs on (KAFKA-7165).",
			"If a running broker is missing in ZooKeeper, restart it; else make a new controller.", liveBrokersDiffer},
	}
}

func addressShared(s *scene, add report) {
	by := map[string][]cluster.BrokerID{}
	for i := range s.Snapshot.Brokers {
		b := &s.Snapshot.Brokers[i]
		if b.Live && b.Host != "" {
			at := fmt.Sprintf("%s:%d", b.Host, b.Port)
			by[at] = append(by[at], b.ID)
		}
	}
	for _, at := range sortedKeys(by) {
		if ids := by[at]; len(ids) > 1 {
			add("brokers "+IDList(ids), "both advertise "+at, fmt.Sprintf("kctl brokers describe %d   # set its own advertised.listeners and restart it", ids[1]))
		}
	}
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func loopbackAddress(s *scene, add report) {
	var loop []*model.Broker
	others := 0
	for i := range s.Snapshot.Brokers {
		switch b := &s.Snapshot.Brokers[i]; {
		case !b.Live || b.Host == "":
		case isLoopback(b.Host):
			loop = append(loop, b)
		default:
			others++
		}
	}
	for _, b := range loop {
		if others > 0 {
			add(objectBroker(b.ID), fmt.Sprintf("advertises %s:%d, %d others do not use a loopback address", b.Host, b.Port, others),
				fmt.Sprintf("kctl brokers describe %d   # set advertised.listeners and restart it", b.ID))
		}
	}
}

func rackMissing(s *scene, add report) {
	var with, without []cluster.BrokerID
	for i := range s.Snapshot.Brokers {
		switch b := &s.Snapshot.Brokers[i]; {
		case !b.Live:
		case b.Rack == "":
			without = append(without, b.ID)
		default:
			with = append(with, b.ID)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		add("brokers "+IDList(without), fmt.Sprintf("no rack; broker %s has one", IDList(with)),
			fmt.Sprintf("kctl brokers describe %d   # set broker.rack and restart it", without[0]))
	}
}

func registrationMalformed(s *scene, add report) {
	for _, r := range s.Tree.Registrations {
		if r.Err != "" {
			add(objectBroker(r.ID), r.Err, fmt.Sprintf("kctl zk get /brokers/ids/%d   # restart broker %d", r.ID, r.ID))
		}
	}
}

func tooFewBrokers(s *scene, add report) {
	if s.liveCount() == 1 && len(s.Snapshot.Brokers) == 1 {
		add("cluster", "1 broker", "kctl brokers list   # start more brokers")
	}
}

func clusterIDMismatch(s *scene, add report) {
	want, whose := s.Snapshot.ClusterID, "the bootstrap server"
	if s.Tree != nil && s.Tree.ClusterID != "" {
		want, whose = s.Tree.ClusterID, "ZooKeeper"
	}
	for i := range s.Views {
		if v := &s.Views[i]; v.Err == "" && v.ClusterID != "" && want != "" && v.ClusterID != want {
			add(objectBroker(v.Broker), fmt.Sprintf("cluster id %s, %s has %s", v.ClusterID, whose, want),
				fmt.Sprintf("kctl brokers describe %d   # check its zookeeper.connect", v.Broker))
		}
	}
}

func mixedVersions(s *scene, add report) {
	by := map[string][]cluster.BrokerID{}
	for i := range s.Views {
		if v := &s.Views[i]; v.Err == "" && len(v.Versions) > 0 {
			by[fingerprint(v.Versions)] = append(by[fingerprint(v.Versions)], v.Broker)
		}
	}
	if len(by) < 2 {
		return
	}
	var groups []string
	for _, k := range sortedKeys(by) {
		groups = append(groups, "broker "+IDList(by[k]))
	}
	slices.Sort(groups)
	add("cluster", fmt.Sprintf("%d sets of API versions: %s", len(by), strings.Join(groups, "; ")), "kctl configs get broker/"+IDText(s.Snapshot.Controller.ID)+"   # finish the upgrade")
}

func fingerprint(versions map[int16]int16) string {
	keys := make([]int16, 0, len(versions))
	for k := range versions {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%d:%d ", k, versions[k])
	}
	return b.String()
}

// staleMetadata compares every broker with the newest epoch that any source knows. A partition in transition is
// reported there.
func staleMetadata(s *scene, add report) {
	unfinished := map[cluster.TopicPartition]bool{}
	for i := range s.Transitions {
		unfinished[cluster.TopicPartition{Topic: s.Transitions[i].Topic, Partition: s.Transitions[i].Partition}] = true
	}
	by := map[cluster.BrokerID][]string{}
	for _, d := range Diff(s.Facts) {
		if d.Topic == "" || d.Field != FieldLeaderEpoch && d.Field != FieldExists {
			continue
		}
		tp := cluster.TopicPartition{Topic: d.Topic, Partition: d.Partition}
		if unfinished[tp] {
			continue
		}
		for _, id := range d.Behind {
			by[id] = append(by[id], tp.String())
		}
	}
	for _, id := range sortedIDs(by) {
		add(objectBroker(id), fmt.Sprintf("older metadata of %d partitions: %s", len(by[id]), some(by[id])), "kctl controller move --yes")
	}
}

func liveBrokersDiffer(s *scene, add report) {
	want := make([]cluster.BrokerID, 0, len(s.Tree.Registrations))
	for _, r := range s.Tree.Registrations {
		want = append(want, r.ID)
	}
	slices.Sort(want)
	for i := range s.Views {
		if v := &s.Views[i]; v.Err == "" && !slices.Equal(v.Live, want) {
			add(objectBroker(v.Broker), fmt.Sprintf("sees brokers %s, ZooKeeper has %s", IDList(v.Live), IDList(want)), "kctl controller move --yes")
		}
	}
}
