package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Ids of findings on configuration.
const (
	MinISRAboveReplicas   = "min-isr-above-replicas"
	MinISREqualsReplicas  = "min-isr-equals-replicas"
	MinISROne             = "min-isr-one"
	UncleanElectionOn     = "unclean-election-enabled"
	BadConfigValue        = "bad-config-value"
	SegmentAboveRetention = "segment-longer-than-retention"
	TimestampWindow       = "timestamp-window-narrow"
	BrokerConfigDiffers   = "broker-config-differs"
	AutoCreateOn          = "auto-create-enabled"
)

// TopicConfigNames are the settings of topics that checks look at.
func TopicConfigNames() []string {
	return []string{"min.insync.replicas", "unclean.leader.election.enable", "retention.ms", "segment.ms", "cleanup.policy",
		"message.timestamp.type", "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms",
		leaderThrottled, followerThrottled}
}

// BrokerConfigNames are the settings of brokers that checks look at.
func BrokerConfigNames() []string {
	return append(slices.Clone(sameEverywhere), "delete.topic.enable", "auto.create.topics.enable", leaderRate, followerRate, dirsRate,
		sessionTimeouts[0], sessionTimeouts[1])
}

// sameEverywhere are settings in which brokers of one cluster must not differ.
var sameEverywhere = []string{"inter.broker.protocol.version", "default.replication.factor", "min.insync.replicas",
	"unclean.leader.election.enable", "replica.lag.time.max.ms", "offsets.topic.replication.factor", "message.max.bytes"}

func configChecks() []Check {
	needs := []Source{FromBrokers, FromConfigs}
	return []Check{
		{MinISRAboveReplicas, model.SeverityWarning, "min.insync.replicas is above the number of replicas", needs,
			"Older brokers refuse every acks=all write to the topic; newer ones (3.x) count as if the setting were the number of replicas. Either way it does not say what happens.",
			"The setting was raised, or the cluster's default, without raising the replication factor.",
			"Set min.insync.replicas below the number of replicas, or add replicas.", minISRAbove},
		{MinISREqualsReplicas, model.SeverityWarning, "min.insync.replicas equals the number of replicas: any broker that stops also stops acks=all", needs,
			"No replica may be missing: restarting one broker stops producers with acks=all.",
			"min.insync.replicas was set to the replication factor.", "Set it one lower, or add a replica.", minISREquals},
		{MinISROne, model.SeverityInfo, "min.insync.replicas is 1 although there are three replicas or more", needs,
			"acks=all is acknowledged by the leader alone when the others are out of sync: its death then loses records.",
			"It is Kafka's default.", "Set min.insync.replicas=2 where acknowledged records must survive.", minISROne},
		{UncleanElectionOn, model.SeverityWarning, "unclean.leader.election.enable is on", needs,
			"When all in-sync replicas are down a replica that lacks records becomes leader: acknowledged records are lost without anybody being asked.",
			"Set on the topic or on the brokers to prefer availability, or left on after an emergency.",
			"Switch it off; in an emergency `kctl elect unclean` does it for chosen partitions.", uncleanOn},
		{BadConfigValue, model.SeverityWarning, "a topic's stored configuration has a value that brokers cannot take", []Source{FromZooKeeper},
			"A broker ignores the value or fails to load the topic's configuration; some versions do not start with it.",
			"A tool wrote /config/topics directly, without a broker's check.", "Set a good value or delete the setting.", badConfigValue},
		{SegmentAboveRetention, model.SeverityInfo, "segment.ms is above retention.ms: data stays longer than it should", needs,
			"Retention deletes whole segments, and the active one is only rolled after segment.ms: a quiet topic keeps data far longer than retention.ms.",
			"retention.ms was lowered and segment.ms kept its default of seven days.", "Set segment.ms no higher than retention.ms.", segmentAboveRetention},
		{TimestampWindow, model.SeverityInfo, "a topic refuses records whose timestamps are only a little off", needs,
			"Producers whose clock is off by more than the window get INVALID_TIMESTAMP; so does any replay of old data.",
			"message.timestamp.difference.max.ms (or before/after.max.ms) is below an hour while timestamps are the producers'.",
			"Raise the window, or use message.timestamp.type=LogAppendTime.", timestampWindow},
		{BrokerConfigDiffers, model.SeverityWarning, "brokers differ in a setting that should be the same everywhere", needs,
			"What happens depends on which broker leads or is the controller: new topics, elections and protocol versions differ.",
			"A rolling change that was not finished, or one broker with another server.properties.", "Give all brokers the same value.", brokerConfigDiffers},
		{AutoCreateOn, model.SeverityInfo, "topics are created by merely being asked for", needs,
			"A misspelled name in a client makes a topic with the default partitions and replication.",
			"auto.create.topics.enable=true is Kafka's default.", "Set auto.create.topics.enable=false and create topics on purpose.", autoCreateOn},
	}
}

// eachConfigured calls fn for every topic that has partitions, with its configuration.
func (s *scene) eachConfigured(fn func(t *model.Topic, c Config)) {
	for i := range s.Snapshot.Topics {
		t := &s.Snapshot.Topics[i]
		if c := s.TopicConfigs[t.Name]; c != nil && len(t.Partitions) > 0 {
			fn(t, c)
		}
	}
}

func number(c Config, name string) (int64, bool) {
	n, err := strconv.ParseInt(c[name].Text, 10, 64)
	return n, err == nil
}

func setTopic(topic, setting string) string {
	return fmt.Sprintf("kctl configs set %s %s --yes", model.ShellWord("topic/"+topic), setting)
}

func deleteConfig(topic, name string) string {
	return fmt.Sprintf("kctl configs delete %s %s --yes", model.ShellWord("topic/"+topic), model.ShellWord(name))
}

func minISRAbove(s *scene, add report) {
	s.eachConfigured(func(t *model.Topic, c Config) {
		if n, ok := number(c, "min.insync.replicas"); ok && int(n) > t.ReplicationFactor() {
			add("topic "+t.Name, fmt.Sprintf("min.insync.replicas %d, replication factor %d", n, t.ReplicationFactor()),
				setTopic(t.Name, fmt.Sprintf("min.insync.replicas=%d", max(1, t.ReplicationFactor()-1))))
		}
	})
}

func minISREquals(s *scene, add report) {
	s.eachConfigured(func(t *model.Topic, c Config) {
		if n, ok := number(c, "min.insync.replicas"); ok && n > 1 && int(n) == t.ReplicationFactor() {
			add("topic "+t.Name, fmt.Sprintf("min.insync.replicas %d, replication factor %d", n, t.ReplicationFactor()),
				setTopic(t.Name, fmt.Sprintf("min.insync.replicas=%d", n-1)))
		}
	})
}

func minISROne(s *scene, add report) {
	s.eachConfigured(func(t *model.Topic, c Config) {
		if n, ok := number(c, "min.insync.replicas"); ok && n <= 1 && t.ReplicationFactor() >= 3 && !t.Internal {
			add("topic "+t.Name, fmt.Sprintf("min.insync.replicas %d, replication factor %d", n, t.ReplicationFactor()), setTopic(t.Name, "min.insync.replicas=2"))
		}
	})
}

func uncleanOn(s *scene, add report) {
	s.eachConfigured(func(t *model.Topic, c Config) {
		if v := c["unclean.leader.election.enable"]; v.Text == "true" && v.Own {
			add("topic "+t.Name, "unclean.leader.election.enable=true", setTopic(t.Name, "unclean.leader.election.enable=false"))
		}
	})
	for _, id := range sortedIDs(s.BrokerConfigs) {
		if s.BrokerConfigs[id]["unclean.leader.election.enable"].Text == "true" {
			add(objectBroker(id), "unclean.leader.election.enable=true", fmt.Sprintf("kctl configs set broker/%d unclean.leader.election.enable=false --yes", id))
		}
	}
}

func sortedIDs[V any](m map[cluster.BrokerID]V) []cluster.BrokerID {
	ids := make([]cluster.BrokerID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// wellFormed are tests of stored topic settings: those whose wrong value does harm.
var wellFormed = map[string]func(string) bool{
	"min.insync.replicas": positive, "retention.ms": integer, "retention.bytes": integer, "segment.ms": positive, "segment.bytes": positive,
	"max.message.bytes": integer, "delete.retention.ms": integer, "flush.ms": integer, "flush.messages": positive, "file.delete.delay.ms": integer,
	"unclean.leader.election.enable": boolean, "preallocate": boolean, "message.downconversion.enable": boolean,
	"min.cleanable.dirty.ratio": ratio, "message.timestamp.type": among("CreateTime", "LogAppendTime"),
	"compression.type": among("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
	"cleanup.policy":   cleanup, leaderThrottled: throttleList, followerThrottled: throttleList,
}

func integer(v string) bool { _, err := strconv.ParseInt(v, 10, 64); return err == nil }

func positive(v string) bool { n, err := strconv.ParseInt(v, 10, 64); return err == nil && n > 0 }

func boolean(v string) bool { return v == "true" || v == "false" }

func ratio(v string) bool { f, err := strconv.ParseFloat(v, 64); return err == nil && f >= 0 && f <= 1 }

func among(words ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(words, v) }
}

func cleanup(v string) bool {
	for _, p := range strings.Split(v, ",") {
		if p = strings.TrimSpace(p); p != "delete" && p != "compact" {
			return false
		}
	}
	return true
}

// throttleList: partition:broker pairs, none, or a star. A broker -1 keeps some versions from starting.
func throttleList(v string) bool {
	if v == "" || v == "*" || v == "none" {
		return true
	}
	for _, pair := range strings.Split(v, ",") {
		p, b, ok := strings.Cut(strings.TrimSpace(pair), ":")
		if pn, err := strconv.ParseInt(p, 10, 32); !ok || err != nil || pn < 0 {
			return false
		}
		if bn, err := strconv.ParseInt(b, 10, 32); err != nil || bn < 0 {
			return false
		}
	}
	return true
}

func badConfigValue(s *scene, add report) {
	for _, n := range s.Tree.TopicConfigs {
		topic := lastName(n.Path)
		values, err := storedConfig(n)
		if err != nil {
			add("topic "+topic, n.Path+": "+err.Error(), "kctl zk get "+n.Path)
			continue
		}
		for _, name := range sortedKeys(values) {
			if ok := wellFormed[name]; ok != nil && !ok(values[name]) {
				add("topic "+topic, name+"="+values[name], deleteConfig(topic, name))
			}
		}
	}
}

func segmentAboveRetention(s *scene, add report) {
	s.eachConfigured(func(t *model.Topic, c Config) {
		seg, ok1 := number(c, "segment.ms")
		keep, ok2 := number(c, "retention.ms")
		if ok1 && ok2 && keep >= 0 && seg > keep && !t.Internal && !strings.Contains(c["cleanup.policy"].Text, "compact") {
			add("topic "+t.Name, fmt.Sprintf("segment.ms %d, retention.ms %d", seg, keep), setTopic(t.Name, fmt.Sprintf("segment.ms=%d", max(1, keep))))
		}
	})
}

func timestampWindow(s *scene, add report) {
	const narrow = 3_600_000
	s.eachConfigured(func(t *model.Topic, c Config) {
		if c["message.timestamp.type"].Text == "LogAppendTime" {
			return
		}
		for _, name := range []string{"message.timestamp.difference.max.ms", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"} {
			if n, ok := number(c, name); ok && c[name].Own && n < narrow {
				add("topic "+t.Name, fmt.Sprintf("%s=%d", name, n), deleteConfig(t.Name, name))
			}
		}
	})
}

func brokerConfigDiffers(s *scene, add report) {
	for _, name := range sameEverywhere {
		by := map[string][]cluster.BrokerID{}
		for _, id := range sortedIDs(s.BrokerConfigs) {
			if v, ok := s.BrokerConfigs[id][name]; ok {
				by[v.Text] = append(by[v.Text], id)
			}
		}
		if len(by) < 2 {
			continue
		}
		var parts []string
		for _, v := range sortedKeys(by) {
			parts = append(parts, fmt.Sprintf("%s on broker %s", v, IDList(by[v])))
		}
		add("setting "+name, strings.Join(parts, ", "), fmt.Sprintf("kctl configs get broker/%d   # give all brokers the same %s", s.Snapshot.Controller.ID, name))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func autoCreateOn(s *scene, add report) {
	var on []cluster.BrokerID
	for _, id := range sortedIDs(s.BrokerConfigs) {
		if s.BrokerConfigs[id]["auto.create.topics.enable"].Text == "true" {
			on = append(on, id)
		}
	}
	if len(on) > 0 {
		add("cluster", "auto.create.topics.enable=true on broker "+IDList(on), fmt.Sprintf("kctl configs get broker/%d   # set auto.create.topics.enable=false in server.properties, restart broker %s", on[0], IDList(on)))
	}
}
