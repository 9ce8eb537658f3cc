package replicashell

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/broker/peer"
	"kctl/broker/storage"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// Options configure a Manager. Fields without a stated default are required.
type Options struct {
	BrokerID cluster.BrokerID
	// BrokerEpoch returns the czxid of this broker's registration; requests of the controller that name
	// another one are refused with STALE_BROKER_EPOCH.
	BrokerEpoch func() cluster.BrokerEpoch
	Storage     *storage.Manager
	ZK          zkutil.Client
	// Dial opens connections to other brokers; nil means TCP.
	Dial peer.Dialer
	// BrokerAddr returns host:port of a broker's inter-broker listener, when it is known otherwise than by
	// the live leaders of LeaderAndISR requests (metadata cache). nil: those only.
	BrokerAddr func(cluster.BrokerID) (addr string, ok bool)
	// TopicConfig returns a topic's log configuration. Call ConfigChanged when it changes.
	TopicConfig func(topic string) storage.Config
	// ThrottledReplicas returns a topic's leader. and follower.replication.throttled.replicas; nil: none. Call
	// ConfigChanged when they change.
	ThrottledReplicas func(topic string) (leader, follower string)
	// Throttles returns the bounds of replication; nil: none. Call ThrottlesChanged when they change.
	Throttles func() Throttles
	// IsAlive says whether a broker is registered, as far as the metadata cache knows; nil: always.
	IsAlive func(cluster.BrokerID) bool
	// OnLeadership is called when this broker becomes leader of a partition, or stops being it. Calls for
	// one partition come in order and never at the same time; it must not block and must not call back.
	OnLeadership func(tp cluster.TopicPartition, leader bool, epoch cluster.LeaderEpoch)
	// OnDirOffline is called once for each log directory that fails; nil: the manager writes Kafka's
	// log-dir event notification itself and nothing more happens.
	OnDirOffline func(dir string, cause error)

	Logger     *slog.Logger          // nil: discard
	Registerer prometheus.Registerer // nil: no metrics

	// ReplicaLagTimeMax is replica.lag.time.max.ms, default 30 s.
	ReplicaLagTimeMax time.Duration
	// HighWatermarkCheckpoint is replica.high.watermark.checkpoint.interval.ms, default 5 s.
	HighWatermarkCheckpoint time.Duration
	// FetchWaitMax is replica.fetch.wait.max.ms, default 500 ms.
	FetchWaitMax time.Duration
	// FetchBackoff is replica.fetch.backoff.ms, default 1 s: the longest back-off; the first is shorter.
	FetchBackoff time.Duration
	// FetchMinBytes, FetchMaxBytes and FetchResponseMaxBytes are replica.fetch.min.bytes (default 1),
	// replica.fetch.max.bytes (1 MiB, per partition) and replica.fetch.response.max.bytes (10 MiB).
	FetchMinBytes, FetchMaxBytes, FetchResponseMaxBytes int32
	// FetchStreams is how many streams replicate from one leader, per log directory of ours; 0 chooses by the
	// machine's cores (num.replica.fetchers sets it).
	FetchStreams int
	// RequestTimeout bounds one exchange with another broker, default 30 s.
	RequestTimeout time.Duration
	// ISRNotifyLinger is how long ISR changes are gathered before the controller is told, default 200 ms.
	ISRNotifyLinger time.Duration
	// FetchSessionSlots is max.incremental.fetch.session.cache.slots, default 1000.
	FetchSessionSlots int

	// Now is the clock, default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	duration := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	size := func(n *int32, def int32) {
		if *n <= 0 {
			*n = def
		}
	}
	duration(&o.ReplicaLagTimeMax, 30*time.Second)
	duration(&o.HighWatermarkCheckpoint, 5*time.Second)
	duration(&o.FetchWaitMax, 500*time.Millisecond)
	duration(&o.FetchBackoff, time.Second)
	duration(&o.RequestTimeout, 30*time.Second)
	duration(&o.ISRNotifyLinger, 200*time.Millisecond)
	size(&o.FetchMinBytes, 1)
	size(&o.FetchMaxBytes, 1<<20)
	size(&o.FetchResponseMaxBytes, 10<<20)
	if o.FetchStreams <= 0 {
		o.FetchStreams = min(4, runtime.GOMAXPROCS(0))
	}
	if o.FetchSessionSlots <= 0 {
		o.FetchSessionSlots = 1000
	}
	if o.BrokerEpoch == nil {
		o.BrokerEpoch = func() cluster.BrokerEpoch { return cluster.NoBrokerEpoch }
	}
	if o.TopicConfig == nil {
		o.TopicConfig = func(string) storage.Config { return storage.DefaultConfig() }
	}
	if o.ThrottledReplicas == nil {
		o.ThrottledReplicas = func(string) (leader, follower string) { return "", "" }
	}
	if o.Throttles == nil {
		o.Throttles = func() Throttles { return Unthrottled }
	}
	if o.IsAlive == nil {
		o.IsAlive = func(cluster.BrokerID) bool { return true }
	}
	if o.OnLeadership == nil {
		o.OnLeadership = func(cluster.TopicPartition, bool, cluster.LeaderEpoch) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
