package check

import (
	"fmt"

	"kctl/admin/model"
)

// Ids of findings on groups and on the ZooKeeper ensemble.
const (
	GroupUnreachable    = "group-coordinator-unavailable"
	GroupOffsetsOrphan  = "group-offsets-of-missing-topic"
	ServerDown          = "zookeeper-server-unreachable"
	ServerSlow          = "zookeeper-slow"
	ServerBacklog       = "zookeeper-requests-outstanding"
	ServerReadOnly      = "zookeeper-read-only"
	TreeLarge           = "zookeeper-many-nodes"
	EnsembleSmall       = "zookeeper-single-server"
	EnsembleNoLeader    = "zookeeper-no-leader"
	EnsembleVersionsMix = "zookeeper-mixed-versions"
)

// Bounds for a ZooKeeper server: average latency in milliseconds, requests waiting, nodes.
const (
	latencyMax     = 100
	outstandingMax = 100
	nodesMax       = 1_000_000
)

func groupChecks() []Check {
	needs := []Source{FromBrokers, FromGroups}
	return []Check{
		{GroupUnreachable, model.SeverityWarning, "a consumer group's coordinator does not answer", needs,
			"Its members can neither join nor commit.", "The coordinator is starting, its partition of __consumer_offsets is offline, or its broker hangs.",
			"Look at the partitions of __consumer_offsets.", groupUnreachable},
		{GroupOffsetsOrphan, model.SeverityInfo, "a consumer group holds offsets of a topic that does not exist", needs,
			"Lag cannot be computed for it, and a topic created anew with the name starts in the middle for that group.",
			"The topic was deleted while the group was empty.", "Delete these offsets: `kctl groups delete-offsets`.", groupOffsetsOrphan},
	}
}

func ensembleChecks() []Check {
	needs := []Source{FromEnsemble}
	return []Check{
		{ServerDown, model.SeverityWarning, "a ZooKeeper server does not answer", needs,
			"The ensemble has one server fewer to lose.", "The process is down, or its client port is closed to this machine.", "Start it.", serverDown},
		{ServerSlow, model.SeverityWarning, "a ZooKeeper server answers slowly", needs,
			"Elections and ISR changes take as long; sessions are at risk. The average is above 100 ms.",
			"A slow or shared disk under the transaction log, garbage collection, an overloaded machine.", "Give the transaction log its own disk.", serverSlow},
		{ServerBacklog, model.SeverityWarning, "a ZooKeeper server has many requests waiting", needs,
			"It cannot keep up with its clients.", "As for `zookeeper-slow`, or a client that floods it.", "Find the client with the four-letter word cons.", serverBacklog},
		{ServerReadOnly, model.SeverityCritical, "a ZooKeeper server is cut off and read-only", needs,
			"It has lost the quorum: brokers connected to it lose their sessions, kctl may read old data there.",
			"A network partition, or the majority of the ensemble is down.", "Bring the other servers back.", serverReadOnly},
		{TreeLarge, model.SeverityInfo, "ZooKeeper holds more than a million nodes", needs,
			"Snapshots and restarts become slow.", "Too many partitions, or another application that does not clean up.", "Find out who made them: `kctl zk tree`.", treeLarge},
		{EnsembleSmall, model.SeverityInfo, "there is a single ZooKeeper server", needs,
			"Its failure stops every election and every ISR change.", "A development cluster, or a connect string that names one server only.",
			"Run three or five servers and name them all.", ensembleSmall},
		{EnsembleNoLeader, model.SeverityCritical, "no ZooKeeper server that answers is the leader", needs,
			"Nothing can be written.", "The majority is down or cut off; or the connect string leaves the leader out and the others hide it.",
			"Bring the servers back.", ensembleNoLeader},
		{EnsembleVersionsMix, model.SeverityInfo, "ZooKeeper servers run different versions", needs,
			"Normal during an upgrade, not for long.", "An upgrade that was not finished.", "Finish it.", ensembleVersions},
	}
}

func groupUnreachable(s *scene, add report) {
	for _, g := range s.Groups {
		if g.Err != "" {
			add("group "+g.Name, g.Err, "kctl partitions list __consumer_offsets")
		}
	}
}

func groupOffsetsOrphan(s *scene, add report) {
	for _, g := range s.Groups {
		for _, t := range g.Topics {
			if s.topics[t] == nil {
				add("group "+g.Name, "holds offsets of topic "+t+", which does not exist", fmt.Sprintf("kctl groups delete-offsets %s --topic %s --yes", model.ShellWord(g.Name), model.ShellWord(t)))
			}
		}
	}
}

// inspect is what a person at the server's machine runs: kctl cannot restart it.
func inspect(sv Server, then string) string { return "kctl zk stat /   # " + then + " " + sv.Addr }

func serverDown(s *scene, add report) {
	for _, sv := range s.Servers {
		if sv.Err != "" {
			add("zookeeper "+sv.Addr, sv.Err, inspect(sv, "start"))
		}
	}
}

func serverSlow(s *scene, add report) {
	for _, sv := range s.Servers {
		if sv.AvgLatency > latencyMax {
			add("zookeeper "+sv.Addr, fmt.Sprintf("latency %.1f ms on average, %.0f ms at most", sv.AvgLatency, sv.MaxLatency), inspect(sv, "look at the disk of"))
		}
	}
}

func serverBacklog(s *scene, add report) {
	for _, sv := range s.Servers {
		if sv.Outstanding > outstandingMax {
			add("zookeeper "+sv.Addr, fmt.Sprintf("%d requests outstanding", sv.Outstanding), inspect(sv, "look at the clients of"))
		}
	}
}

func serverReadOnly(s *scene, add report) {
	for _, sv := range s.Servers {
		if sv.Mode == "read-only" {
			add("zookeeper "+sv.Addr, "mode read-only", inspect(sv, "restore the quorum of"))
		}
	}
}

func treeLarge(s *scene, add report) {
	for _, sv := range s.Servers {
		if sv.Nodes > nodesMax {
			add("zookeeper "+sv.Addr, fmt.Sprintf("%d nodes", sv.Nodes), "kctl zk tree / --depth 2")
			return // all servers hold the same tree
		}
	}
}

func ensembleSmall(s *scene, add report) {
	if len(s.Servers) == 1 && s.Servers[0].Mode == "standalone" {
		add("zookeeper "+s.Servers[0].Addr, "mode standalone", inspect(s.Servers[0], "add servers beside"))
	}
}

func ensembleNoLeader(s *scene, add report) {
	modes := map[string]int{}
	for _, sv := range s.Servers {
		if sv.Err == "" {
			modes[sv.Mode]++
		}
	}
	// Followers follow somebody: a leader that the connect string leaves out is one.
	if len(s.Servers) > 0 && modes["leader"]+modes["standalone"]+modes["follower"]+modes["observer"]+modes["unknown"] == 0 {
		add("zookeeper", fmt.Sprintf("%d servers, none leads or follows", len(s.Servers)), inspect(s.Servers[0], "restore the quorum of"))
	}
}

func ensembleVersions(s *scene, add report) {
	by := map[string][]string{}
	for _, sv := range s.Servers {
		if sv.Version != "" {
			by[sv.Version] = append(by[sv.Version], sv.Addr)
		}
	}
	if len(by) < 2 {
		return
	}
	var parts []string
	for _, v := range sortedKeys(by) {
		parts = append(parts, v+" on "+some(by[v]))
	}
	add("zookeeper", some(parts), inspect(s.Servers[0], "upgrade"))
}
