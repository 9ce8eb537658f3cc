package controller

import (
	"fmt"
	"time"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// Config is what an operator may set. The zero value of a duration or percentage means Kafka's default.
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
	// RebalancePercent is leader.imbalance.per.broker.percentage. Default 10; 0 is written as -1.
	RebalancePercent int
	// DeleteTopicEnable is delete.topic.enable.
	DeleteTopicEnable bool
	// UncleanDefault is unclean.leader.election.enable of the broker; a topic's own config wins.
	UncleanDefault bool
}

// The defaults of Config and the fixed waits.
const (
	transitionTimeoutDefault = 10 * time.Second
	rebalanceIntervalDefault = 300 * time.Second
	rebalancePercentDefault  = 10
	rebalanceFirstDelay      = 5 * time.Second
	zkRetryDelay             = 100 * time.Millisecond
	electRetryDelay          = time.Second
	repairDelay              = 5 * time.Second
)

func (cfg Config) withDefaults() Config {
	if cfg.TransitionTimeout <= 0 {
		cfg.TransitionTimeout = transitionTimeoutDefault
	}
	if cfg.RebalanceInterval <= 0 {
		cfg.RebalanceInterval = rebalanceIntervalDefault
	}
	switch {
	case cfg.RebalancePercent == 0:
		cfg.RebalancePercent = rebalancePercentDefault
	case cfg.RebalancePercent < 0:
		cfg.RebalancePercent = 0
	}
	return cfg
}

// role is where the broker stands in the controller election.
type role uint8

const (
	roleNone    role = iota // no session to stand in
	roleStandby             // another broker leads, or the election is under way
	roleLoading             // elected, reading the cluster
	roleActive
)

// Controller is the state machine. Use New.
type Controller struct {
	cfg Config
	now time.Time // of the event being applied
	out []Effect  // of the event being applied

	role         role
	session      uint64
	sessionID    int64
	seed         [16]byte
	epoch        cluster.ControllerEpoch
	epochVersion cluster.ZKVersion

	jobs    []*job
	queued  map[string]bool // keys of coalesced jobs that wait
	running *job
	next    struct{ zk, token uint64 }
	zkID    uint64                // of the unanswered ZK effect whose answer matters
	zkThen  func([]zkop.Response) // its continuation; nil: none
	zkRetry func()                // runs at TimerZKRetry

	recalledIDs map[string]cluster.TopicID // of the last TopicIDsRecalled, until its continuation has run

	brokers   map[cluster.BrokerID]*broker
	topics    map[string]*topic
	topicByID map[cluster.TopicID]*topic
	order     []*topic // sorted by name
	topicSeq  int

	reassigning map[*partition]struct{} // assignment.Reassigning()
	// legacy is what runs of the list in /admin/reassign_partitions: the targets as they stand there.
	legacy map[cluster.TopicPartition][]cluster.BrokerID

	metadata    metadataLog
	transitions transitions
	repair      repairs
	dataEpochs  dataEpochs
	handovers   []*handover
}

// New returns a controller that waits for its first SessionStarted.
func New(cfg Config) *Controller {
	c := &Controller{cfg: cfg.withDefaults()}
	c.reset()
	return c
}

// reset forgets everything that belongs to one term of office.
func (c *Controller) reset() {
	c.epoch, c.epochVersion = -1, 0
	c.jobs, c.queued, c.running = nil, map[string]bool{}, nil
	c.zkThen, c.zkRetry = nil, nil
	c.brokers = map[cluster.BrokerID]*broker{}
	c.topics = map[string]*topic{}
	c.topicByID = map[cluster.TopicID]*topic{}
	c.order = nil
	c.reassigning, c.legacy = map[*partition]struct{}{}, nil
	c.metadata = metadataLog{}
	c.transitions = transitions{}
	c.repair = repairs{}
	c.dataEpochs = dataEpochs{}
	c.handovers = nil
}

// Step applies one event and appends, in required order, what the shell must do.
func (c *Controller) Step(ev Event, out []Effect) []Effect {
	c.now, c.out = ev.at(), out
	c.apply(ev)
	c.runJobs()
	invariant.Assert(c.running == nil || c.zkThen != nil || c.zkRetry != nil,
		"job %v waits for nothing", c.running)
	out, c.out = c.out, nil
	return out
}

func (c *Controller) apply(ev Event) {
	switch ev := ev.(type) {
	case SessionStarted:
		c.sessionStarted(ev)
	case SessionEnded:
		c.sessionEnded(ev)
	case WatchFired:
		c.watchFired(ev.Event)
	case ZKDone:
		c.zkDone(ev)
	case TopicIDsRecalled:
		c.recalled(ev)
	case Answered:
		c.answered(ev)
	case TimerFired:
		c.timerFired(ev.Timer)
	case ControlledShutdownRequested:
		c.enqueueRequest("ControlledShutdown", ev.RequestID, ev.Request, func(done func()) { c.controlledShutdown(ev, done) })
	case AlterPartitionRequested:
		c.enqueueRequest("AlterPartition", ev.RequestID, ev.Request, func(done func()) { c.alterPartition(ev, done) })
	case ElectLeadersRequested:
		c.enqueueRequest("ElectLeaders", ev.RequestID, ev.Request, func(done func()) { c.electLeaders(ev, done) })
	case LeaderAndISRRequested:
		c.enqueueRequest("SetLeaderAndISR", ev.RequestID, ev.Request, func(done func()) { c.setLeaderAndISR(ev, done) })
	case AlterReassignmentsRequested:
		c.enqueueRequest("ApiPartitionReassignment", ev.RequestID, ev.Request, func(done func()) { c.alterReassignments(ev, done) })
	case ListReassignmentsRequested:
		c.enqueueRequest("ListPartitionReassignments", ev.RequestID, ev.Request, func(done func()) { c.listReassignments(ev, done) })
	case TopicConfigChanged:
		c.topicConfigChanged(ev.Topic)
	default:
		panic(fmt.Sprintf("controller: unknown event %T", ev))
	}
}

func (c *Controller) timerFired(t Timer) {
	switch t.Kind {
	case TimerZKRetry:
		if retry := c.zkRetry; retry != nil {
			c.zkRetry = nil
			retry()
		}
	case TimerElect:
		if c.role == roleStandby {
			c.enqueueElection()
		}
	case TimerTransition:
		c.transitionsDue()
	case TimerRebalance:
		if c.role == roleActive {
			c.enqueueOnce("AutoPreferredReplicaLeaderElection", "", c.rebalance)
		}
	case TimerResend:
		c.resendDue(t.Broker)
	case TimerHandover:
		c.handoverDue(t.Broker)
	case TimerRepair:
		if c.role == roleActive {
			c.repairDue()
		}
	}
}

func (c *Controller) emit(e Effect) { c.out = append(c.out, e) }

func (c *Controller) note(kind NoteKind, count int, reason string) {
	c.emit(Note{Kind: kind, Count: count, Reason: reason})
}

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
	ReplicasIneligible int
	Reassigning        int // partitions that are being reassigned
	Transitions        int // decisions not yet confirmed
	Alerts             int
	QueuedJobs         int
	QueuedRequests     int // control requests in flight or waiting for brokers
}

// Stats computes the gauges; its cost is linear in the number of partitions.
func (c *Controller) Stats() Stats {
	s := Stats{Active: c.role == roleActive, Epoch: -1, QueuedJobs: len(c.jobs)}
	if !s.Active {
		return s
	}
	s.Epoch, s.ActiveBrokers, s.Topics = c.epoch, len(c.brokers), len(c.order)
	s.Reassigning = len(c.reassigning)
	for _, t := range c.order {
		s.Partitions += len(t.partitions)
		if t.deleting || t.ineligible {
			s.TopicsToDelete++
			if t.ineligible {
				s.TopicsIneligible++
			}
		}
		for _, p := range t.partitions {
			c.partitionStats(&s, t, p)
		}
	}
	for _, b := range c.brokers {
		s.QueuedRequests += b.queueDepth(c)
	}
	return s
}

func (c *Controller) partitionStats(s *Stats, t *topic, p *partition) {
	if p.transition != nil {
		s.Transitions++
	}
	if p.alerted {
		s.Alerts++
	}
	if t.deleting {
		for i := range p.replicas {
			s.ReplicasToDelete++
			if p.replicas[i].state == replicaDeletionIneligible {
				s.ReplicasIneligible++
			}
		}
		return
	}
	if p.li.Leader < 0 || !p.known || !c.alive(p.li.Leader, p) {
		s.Offline++
	}
	if p.li.Leader != p.assignment.Replicas[0] {
		s.PreferredImbalance++
	}
}
