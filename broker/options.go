package broker

import (
	"net"
	"strconv"
	"time"

	"kctl/broker/config"
	"kctl/broker/controllershell"
	"kctl/broker/groupshell"
	"kctl/broker/replicashell"
	"kctl/zkutil/cluster"
)

func (b *Broker) replicaOptions() replicashell.Options {
	v := b.static.Values()
	streams := 0
	if _, set := b.static.Explicit("num.replica.fetchers"); set {
		streams = v.Int("num.replica.fetchers")
	}
	return replicashell.Options{
		BrokerID:                b.id,
		BrokerEpoch:             b.brokerEpoch,
		Storage:                 b.store,
		ZK:                      b.zk,
		BrokerAddr:              b.brokerAddr,
		TopicConfig:             b.dynamic.TopicConfig,
		ThrottledReplicas:       b.throttledReplicas,
		Throttles:               b.throttles,
		IsAlive:                 b.cache.IsAlive,
		OnLeadership:            b.onLeadership,
		Logger:                  b.log,
		Registerer:              b.reg,
		ReplicaLagTimeMax:       v.Millis("replica.lag.time.max.ms"),
		HighWatermarkCheckpoint: v.Millis("replica.high.watermark.checkpoint.interval.ms"),
		FetchWaitMax:            v.Millis("replica.fetch.wait.max.ms"),
		FetchBackoff:            v.Millis("replica.fetch.backoff.ms"),
		FetchMinBytes:           int32(v.Int("replica.fetch.min.bytes")),
		FetchMaxBytes:           int32(v.Int("replica.fetch.max.bytes")),
		FetchResponseMaxBytes:   int32(v.Int("replica.fetch.response.max.bytes")),
		FetchStreams:            streams,
		RequestTimeout:          v.Millis("replica.socket.timeout.ms"),
		FetchSessionSlots:       v.Int("max.incremental.fetch.session.cache.slots"),
	}
}

func (b *Broker) controllerOptions() controllershell.Options {
	v := b.static.Values()
	return controllershell.Options{
		BrokerID:            b.id,
		ZK:                  b.zk,
		Listener:            b.static.ControlListener,
		InterBrokerListener: b.static.InterBrokerListener,
		Logger:              b.log,
		Registerer:          b.reg,
		TopicID:             b.knownTopicID,
		Config: controllershell.Config{
			TransitionTimeout:      v.Millis("leader.transition.timeout.ms"),
			ImbalanceCheckInterval: time.Duration(v.Long("leader.imbalance.check.interval.seconds")) * time.Second,
			ImbalancePercent:       v.Int("leader.imbalance.per.broker.percentage"),
			AutoRebalance:          v.Bool("auto.leader.rebalance.enable"),
			DeleteTopicEnable:      v.Bool("delete.topic.enable"),
			UncleanDefault:         v.Bool("unclean.leader.election.enable"),
			RequestTimeout:         v.Millis("controller.socket.timeout.ms"),
		},
	}
}

// knownTopicID is the id of a topic in this broker's metadata, else that of a log of it.
func (b *Broker) knownTopicID(topic string) (cluster.TopicID, bool) {
	if t, ok := b.cache.Snapshot().Topic(topic); ok && !t.ID.IsZero() {
		return t.ID, true
	}
	for _, log := range b.store.Logs() {
		if log.TopicPartition().Topic == topic && !log.TopicID().IsZero() {
			return log.TopicID(), true
		}
	}
	return cluster.TopicID{}, false
}

func groupConfig(v config.Values) groupshell.Config {
	c := groupshell.DefaultConfig()
	c.GroupMinSessionTimeout = v.Millis("group.min.session.timeout.ms")
	c.GroupMaxSessionTimeout = v.Millis("group.max.session.timeout.ms")
	c.GroupInitialRebalanceWait = v.Millis("group.initial.rebalance.delay.ms")
	c.GroupMaxSize = v.Int("group.max.size")
	c.OffsetMetadataMaxBytes = v.Int("offset.metadata.max.bytes")
	c.OffsetsRetention = time.Duration(v.Int("offsets.retention.minutes")) * time.Minute
	c.OffsetsRetentionCheck = v.Millis("offsets.retention.check.interval.ms")
	c.OffsetsCommitTimeout = v.Millis("offsets.commit.timeout.ms")
	c.OffsetsLoadBufferBytes = v.Int("offsets.load.buffer.size")
	c.OffsetsTopicPartitions = int32(v.Int("offsets.topic.num.partitions"))
	c.OffsetsTopicReplication = int16(v.Int("offsets.topic.replication.factor"))
	c.OffsetsTopicSegmentBytes = int32(v.Int("offsets.topic.segment.bytes"))
	return c
}

// brokerAddr returns a live broker's inter-broker address.
func (b *Broker) brokerAddr(id cluster.BrokerID) (string, bool) {
	live, ok := b.cache.Snapshot().Broker(id)
	if !ok {
		return "", false
	}
	e, ok := live.Endpoint(b.static.InterBrokerListener)
	if !ok {
		return "", false
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), true
}

// onLeadership tells the group coordinator which partitions of its topic are led here.
func (b *Broker) onLeadership(tp cluster.TopicPartition, leader bool, epoch cluster.LeaderEpoch) {
	if tp.Topic == groupshell.OffsetsTopic {
		b.groups.OnLeadership(tp.Partition, leader, epoch)
	}
}

// throttledReplicas returns the lists of a topic's throttled replicas.
func (b *Broker) throttledReplicas(topic string) (leader, follower string) {
	o := b.dynamic.Overrides(topic)
	return o["leader.replication.throttled.replicas"], o["follower.replication.throttled.replicas"]
}

// throttles returns the bounds of replication, dynamic values included.
func (b *Broker) throttles() replicashell.Throttles {
	return replicashell.Throttles{
		Leader:   b.dynamic.Long("leader.replication.throttled.rate"),
		Follower: b.dynamic.Long("follower.replication.throttled.rate"),
		Moves:    b.dynamic.Long("replica.alter.log.dirs.io.max.bytes.per.second"),
	}
}
