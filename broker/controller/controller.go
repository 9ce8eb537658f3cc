package controller

import (
	"time"

	"kctl/zkutil/cluster"
)

// Config is what an operator may set. The zero value of a field means Kafka's default.
type Config struct {
	BrokerID cluster.BrokerID
	// InterBrokerListener names the listener that followers use to reach a leader.
	InterBrokerListener string
	// TransitionTimeout is leader.transition.timeout.ms: how long a decision may stay unconfirmed before
	// an alert is raised. Default 10 s.
	TransitionTimeout time.Duration
	// AutoRebalance is auto.leader.rebalance.enable.
	AutoRebalance bool
	// RebalanceInterval is leader.imbalance.check.interval.seconds. Default 300 s; first run 5 s after takeover.
	RebalanceInterval time.Duration
	// RebalancePercent is leader.imbalance.per.broker.percentage. Default 10.
	RebalancePercent int
	// DeleteTopicEnable is delete.topic.enable.
	DeleteTopicEnable bool
	// UncleanDefault is unclean.leader.election.enable of the broker; a topic's own config wins.
	UncleanDefault bool
}

// Controller is the state machine. Use New.
type Controller struct {
	cfg Config
}

// New returns a controller that waits for its first SessionStarted.
func New(cfg Config) *Controller { return &Controller{cfg: cfg} }

// Step applies one event and appends, in required order, what the shell must do.
func (c *Controller) Step(ev Event, out []Effect) []Effect { return out }

// Stats is a snapshot of the controller's gauges.
type Stats struct {
	Active             bool
	Epoch              cluster.ControllerEpoch
	ActiveBrokers      int
	Topics             int
	Partitions         int
	Offline            int // partitions without a live leader
	PreferredImbalance int // partitions not led by their preferred replica
	TopicsToDelete     int
	TopicsIneligible   int
	ReplicasToDelete   int
	Transitions        int // decisions not yet confirmed
	Alerts             int
	QueuedJobs         int
	QueuedRequests     int // control requests waiting for brokers
}

// Stats computes the gauges; its cost is linear in the number of partitions.
func (c *Controller) Stats() Stats { return Stats{} }
