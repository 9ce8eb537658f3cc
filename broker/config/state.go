package config

import (
	"math"
	"strconv"
	"strings"

	"kctl/broker/storage"
)

// state is everything that is configured at one moment; it is immutable and shared.
type state struct {
	static         *Broker
	own            map[string]string // /config/brokers/<id>
	clusterDefault map[string]string // /config/brokers/<default>
	topics         map[string]map[string]string

	defaults storage.Config // of a topic without overrides
}

func newState(static *Broker, own, clusterDefault map[string]string, topics map[string]map[string]string) *state {
	s := &state{static: static, own: own, clusterDefault: clusterDefault, topics: topics}
	s.defaults = s.build(nil)
	return s
}

// brokerValue returns the effective value of a broker key and whether it is other than null. Synonyms are not
// followed.
func (s *state) brokerValue(key string) (string, bool) {
	if v, ok := s.own[key]; ok {
		return v, true
	}
	if v, ok := s.clusterDefault[key]; ok {
		return v, true
	}
	return s.static.values.lookup(key)
}

// topicDefault returns the value of a topic key that no override sets.
func (s *state) topicDefault(k *Key) string {
	if k.Broker == "" {
		return k.Default
	}
	syns := synonymsOf(k.Broker)
	// Something that was set beats a default, and the finer unit beats the coarser.
	for _, explicit := range []bool{true, false} {
		for _, syn := range syns {
			if v, ok := s.brokerValue(syn.key); ok && (!explicit || s.isSet(syn.key)) {
				return scale(v, syn.factor)
			}
		}
	}
	return k.Default
}

func (s *state) isSet(key string) bool {
	if _, ok := s.own[key]; ok {
		return true
	}
	if _, ok := s.clusterDefault[key]; ok {
		return true
	}
	_, ok := s.static.set[key]
	return ok
}

// scale multiplies an integer; negative values (unlimited) and overflow keep their meaning.
func scale(v string, factor int64) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if factor == 1 || err != nil {
		return v
	}
	if n < 0 {
		return "-1"
	}
	if n > math.MaxInt64/factor {
		return strconv.FormatInt(math.MaxInt64, 10)
	}
	return strconv.FormatInt(n*factor, 10)
}

// topicValue returns the effective value of a topic key.
func (s *state) topicValue(overrides map[string]string, name string) string {
	if v, ok := overrides[name]; ok {
		return strings.TrimSpace(v)
	}
	return s.topicDefault(topicIndex[name])
}

// build makes the storage configuration of a topic with the given overrides.
func (s *state) build(overrides map[string]string) storage.Config {
	str := func(name string) string { return s.topicValue(overrides, name) }
	long := func(name string) int64 {
		n, err := strconv.ParseInt(str(name), 10, 64)
		if err != nil { // an override written by hand that nobody checked
			n, _ = strconv.ParseInt(s.topicDefault(topicIndex[name]), 10, 64)
		}
		return n
	}
	integer := func(name string) int32 { return int32(max(math.MinInt32, min(long(name), math.MaxInt32))) }
	ratio, err := strconv.ParseFloat(str("min.cleanable.dirty.ratio"), 64)
	c := storage.DefaultConfig()
	if err == nil {
		c.MinCleanableDirtyRatio = ratio
	}
	c.SegmentBytes = integer("segment.bytes")
	c.SegmentMs = long("segment.ms")
	c.SegmentJitterMs = long("segment.jitter.ms")
	c.SegmentIndexBytes = integer("segment.index.bytes")
	c.IndexIntervalBytes = integer("index.interval.bytes")
	c.RetentionMs = long("retention.ms")
	c.RetentionBytes = long("retention.bytes")
	c.FileDeleteDelayMs = long("file.delete.delay.ms")
	c.MaxMessageBytes = integer("max.message.bytes")
	c.FlushMessages = long("flush.messages")
	c.FlushMs = long("flush.ms")
	c.MessageTimestampType = str("message.timestamp.type")
	c.MessageTimestampBeforeMaxMs = min(long("message.timestamp.before.max.ms"), long("message.timestamp.difference.max.ms"))
	c.MessageTimestampAfterMaxMs = min(long("message.timestamp.after.max.ms"), long("message.timestamp.difference.max.ms"))
	c.CompressionType = str("compression.type")
	c.CleanupPolicy = str("cleanup.policy")
	c.MinInSyncReplicas = integer("min.insync.replicas")
	c.UncleanLeaderElection = strings.EqualFold(str("unclean.leader.election.enable"), "true")
	c.MinCompactionLagMs = long("min.compaction.lag.ms")
	c.MaxCompactionLagMs = long("max.compaction.lag.ms")
	c.DeleteRetentionMs = long("delete.retention.ms")
	return c
}

func (s *state) topicConfig(topic string) storage.Config {
	if overrides := s.topics[topic]; len(overrides) > 0 {
		return s.build(overrides)
	}
	return s.defaults
}
