package controllershell

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/peer"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// Options is what the broker hands in.
type Options struct {
	BrokerID cluster.BrokerID
	ZK       zkutil.Client
	Dial     peer.Dialer // nil: plain TCP
	// Listener names the listener over which brokers receive control requests.
	Listener string
	// InterBrokerListener names the listener over which followers fetch; empty: the same.
	InterBrokerListener string
	Logger              *slog.Logger
	Registerer          prometheus.Registerer // nil: no metrics
	Config              Config
	Now                 func() time.Time // nil: time.Now
}

// Config is what an operator may set; see broker/controller.Config for defaults.
type Config struct {
	TransitionTimeout      time.Duration // leader.transition.timeout.ms
	ImbalanceCheckInterval time.Duration // leader.imbalance.check.interval.seconds
	ImbalancePercent       int           // leader.imbalance.per.broker.percentage
	AutoRebalance          bool          // auto.leader.rebalance.enable
	DeleteTopicEnable      bool          // delete.topic.enable
	UncleanDefault         bool          // unclean.leader.election.enable
	RequestTimeout         time.Duration // controller.socket.timeout.ms, default 30 s
}

// Shell is the controller of one broker. Use New, then Run.
type Shell struct{ opts Options }

// New makes a shell; nothing happens before Run.
func New(opts Options) *Shell { return &Shell{opts: opts} }

// Run stands for election whenever the broker is registered, acts while elected, and returns when ctx
// ends, after all its goroutines have. It deletes nothing in ZooKeeper: closing the session frees /controller.
func (s *Shell) Run(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// Registered tells that the broker's id node exists in the given session; the shell stands for election in
// no other. It may be called from any goroutine, also before Run.
func (s *Shell) Registered(session uint64) {}

// IsActive reports whether this broker is the controller.
func (s *Shell) IsActive() bool { return false }

// ActiveEpoch returns the epoch in which this broker is the controller, or -1.
func (s *Shell) ActiveEpoch() cluster.ControllerEpoch { return -1 }

// TopicConfigChanged tells that a topic's dynamic configs changed; empty means the cluster default.
func (s *Shell) TopicConfigChanged(topic string) {}

// HandleControlledShutdown serves API key 7. NOT_CONTROLLER when not active.
func (s *Shell) HandleControlledShutdown(ctx context.Context, req *kmsg.ControlledShutdownRequest) *kmsg.ControlledShutdownResponse {
	return req.ResponseKind().(*kmsg.ControlledShutdownResponse)
}

// HandleAlterPartition serves API key 56. NOT_CONTROLLER when not active.
func (s *Shell) HandleAlterPartition(ctx context.Context, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	return req.ResponseKind().(*kmsg.AlterPartitionResponse)
}

// HandleElectLeaders serves API key 43; it returns when the elections are durable in ZooKeeper.
func (s *Shell) HandleElectLeaders(ctx context.Context, req *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	return req.ResponseKind().(*kmsg.ElectLeadersResponse)
}
