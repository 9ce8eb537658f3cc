package controllershell

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/broker/peer"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// The bounds of the shell's queues. A full inbox makes handlers wait (their context ends that); more
// unanswered requests than requestsMax are refused with REQUEST_TIMED_OUT, which every client retries.
const (
	inboxMax    = 1024
	requestsMax = 1000
)

const requestTimeoutDefault = 30 * time.Second

// Options is what the broker hands in.
type Options struct {
	BrokerID cluster.BrokerID
	ZK       zkutil.Client
	Dial     peer.Dialer // nil: plain TCP
	// Listener names the listener over which brokers receive control requests; empty: InterBrokerListener.
	Listener string
	// InterBrokerListener names the listener over which followers fetch; empty: Listener.
	InterBrokerListener string
	Logger              *slog.Logger          // nil: silent
	Registerer          prometheus.Registerer // nil: no metrics
	Config              Config
	Now                 func() time.Time // nil: time.Now
	// TopicID is the id by which this broker knows a topic, from its metadata or its logs; nil: none is known. It may be called at any time.
	TopicID func(topic string) (cluster.TopicID, bool)
}

// recall looks up the ids of topics.
func (s *Shell) recall(topics []string) map[string]cluster.TopicID {
	ids := map[string]cluster.TopicID{}
	for _, name := range topics {
		if s.opts.TopicID == nil {
			break
		}
		if id, ok := s.opts.TopicID(name); ok {
			ids[name] = id
		}
	}
	return ids
}

// Config is what an operator may set. Zero durations mean the defaults of broker/controller.Config.
type Config struct {
	TransitionTimeout      time.Duration // leader.transition.timeout.ms
	ImbalanceCheckInterval time.Duration // leader.imbalance.check.interval.seconds
	ImbalancePercent       int           // leader.imbalance.per.broker.percentage; 0: no imbalance is accepted
	AutoRebalance          bool          // auto.leader.rebalance.enable
	DeleteTopicEnable      bool          // delete.topic.enable
	UncleanDefault         bool          // unclean.leader.election.enable
	RequestTimeout         time.Duration // controller.socket.timeout.ms, default 30 s
}

// Shell is the controller of one broker. Use New, then Run once. All other methods may be called from any
// goroutine, before, during and after Run.
type Shell struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics

	inbox      chan message
	poke       chan struct{} // registered changed
	done       chan struct{} // closed when Run ends
	registered atomic.Uint64 // session in which the broker is registered
	epoch      atomic.Int64  // of the term of office; -1: none
	stats      atomic.Pointer[controller.Stats]
}

// message is one entry of the inbox: an event, or a request that becomes one and wants an answer.
type message struct {
	event   controller.Event
	request func(id uint64) controller.Event
	reply   chan<- kmsg.Response // with room for one
}

// New makes a shell; nothing happens before Run.
func New(opts Options) *Shell {
	if opts.Listener == "" {
		opts.Listener = opts.InterBrokerListener
	}
	if opts.InterBrokerListener == "" {
		opts.InterBrokerListener = opts.Listener
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Config.RequestTimeout <= 0 {
		opts.Config.RequestTimeout = requestTimeoutDefault
	}
	s := &Shell{
		opts: opts, log: opts.Logger,
		inbox: make(chan message, inboxMax), poke: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.epoch.Store(-1)
	s.stats.Store(&controller.Stats{Epoch: -1})
	s.metrics = newMetrics(s)
	return s
}

// coreConfig translates the operator's settings.
func (s *Shell) coreConfig() controller.Config {
	c := s.opts.Config
	percent := c.ImbalancePercent
	if percent == 0 {
		percent = -1
	}
	return controller.Config{
		BrokerID: s.opts.BrokerID, InterBrokerListener: s.opts.InterBrokerListener,
		TransitionTimeout: c.TransitionTimeout, AutoRebalance: c.AutoRebalance,
		RebalanceInterval: c.ImbalanceCheckInterval, RebalancePercent: percent,
		DeleteTopicEnable: c.DeleteTopicEnable, UncleanDefault: c.UncleanDefault,
	}
}

// Registered tells that the broker's id node exists in the given session (zkutil.Session.Epoch); the shell
// stands for election in no other.
func (s *Shell) Registered(session uint64) {
	s.registered.Store(session)
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// IsActive reports whether this broker is the controller.
func (s *Shell) IsActive() bool { return s.epoch.Load() >= 0 }

// ActiveEpoch returns the epoch in which this broker is the controller, or -1.
func (s *Shell) ActiveEpoch() cluster.ControllerEpoch {
	return cluster.ControllerEpoch(s.epoch.Load())
}

// Stats returns the gauges as of at most a second ago.
func (s *Shell) Stats() controller.Stats { return *s.stats.Load() }

// TopicConfigChanged tells that a topic's dynamic configs changed; empty means the cluster default.
func (s *Shell) TopicConfigChanged(topic string) {
	if !s.IsActive() {
		return
	}
	select {
	case s.inbox <- message{event: controller.TopicConfigChanged{At: s.opts.Now(), Topic: topic}}:
	case <-s.done:
	}
}

// HandleControlledShutdown serves API key 7. NOT_CONTROLLER when not active.
func (s *Shell) HandleControlledShutdown(ctx context.Context, req *kmsg.ControlledShutdownRequest) *kmsg.ControlledShutdownResponse {
	return s.submit(ctx, req, func(id uint64) controller.Event {
		return controller.ControlledShutdownRequested{At: s.opts.Now(), RequestID: id, Request: req}
	}).(*kmsg.ControlledShutdownResponse)
}

// HandleAlterPartition serves API key 56. NOT_CONTROLLER when not active.
func (s *Shell) HandleAlterPartition(ctx context.Context, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	return s.submit(ctx, req, func(id uint64) controller.Event {
		return controller.AlterPartitionRequested{At: s.opts.Now(), RequestID: id, Request: req}
	}).(*kmsg.AlterPartitionResponse)
}

// HandleElectLeaders serves API key 43; it returns when the elections are durable in ZooKeeper. The caller
// waits for its own metadata if the client is to see the result at once. The type of our own,
// cluster.SetLeaderAndISRElection, sets leaderAndISR.
func (s *Shell) HandleElectLeaders(ctx context.Context, req *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	if req.ElectionType == cluster.SetLeaderAndISRElection {
		return s.setLeaderAndISR(ctx, req)
	}
	return s.submit(ctx, req, func(id uint64) controller.Event {
		return controller.ElectLeadersRequested{At: s.opts.Now(), RequestID: id, Request: req}
	}).(*kmsg.ElectLeadersResponse)
}

// HandleAlterPartitionAssignments serves API key 45 (AlterPartitionReassignments); it returns when the first step of
// each reassignment is durable in ZooKeeper. NOT_CONTROLLER when not active.
func (s *Shell) HandleAlterPartitionAssignments(ctx context.Context, req *kmsg.AlterPartitionAssignmentsRequest) *kmsg.AlterPartitionAssignmentsResponse {
	return s.submit(ctx, req, func(id uint64) controller.Event {
		return controller.AlterReassignmentsRequested{At: s.opts.Now(), RequestID: id, Request: req}
	}).(*kmsg.AlterPartitionAssignmentsResponse)
}

// HandleListPartitionReassignments serves API key 46. NOT_CONTROLLER when not active.
func (s *Shell) HandleListPartitionReassignments(ctx context.Context, req *kmsg.ListPartitionReassignmentsRequest) *kmsg.ListPartitionReassignmentsResponse {
	return s.submit(ctx, req, func(id uint64) controller.Event {
		return controller.ListReassignmentsRequested{At: s.opts.Now(), RequestID: id, Request: req}
	}).(*kmsg.ListPartitionReassignmentsResponse)
}

// submit hands a request to the event loop and waits for its answer.
func (s *Shell) submit(ctx context.Context, req kmsg.Request, event func(id uint64) controller.Event) kmsg.Response {
	if !s.IsActive() {
		return refusal(req, codeNotController)
	}
	reply := make(chan kmsg.Response, 1)
	select {
	case s.inbox <- message{request: event, reply: reply}:
	case <-ctx.Done():
		return refusal(req, codeRequestTimedOut)
	case <-s.done:
		return refusal(req, codeNotController)
	}
	select {
	case resp := <-reply:
		if resp == nil {
			return refusal(req, codeRequestTimedOut)
		}
		return resp
	case <-ctx.Done():
		return refusal(req, codeRequestTimedOut)
	case <-s.done:
		return refusal(req, codeNotController)
	}
}

// Kafka's error codes that the shell itself gives.
const (
	codeRequestTimedOut int16 = 7
	codeNotController   int16 = 41
	codeInvalidRequest  int16 = 42
)

func refusal(req kmsg.Request, code int16) kmsg.Response {
	resp := req.ResponseKind()
	switch resp := resp.(type) {
	case *kmsg.ControlledShutdownResponse:
		resp.ErrorCode = code
	case *kmsg.AlterPartitionResponse:
		resp.ErrorCode = code
	case *kmsg.AlterPartitionAssignmentsResponse:
		resp.ErrorCode = code
	case *kmsg.ListPartitionReassignmentsResponse:
		resp.ErrorCode = code
	case *kmsg.ElectLeadersResponse:
		resp.ErrorCode = code
		for _, t := range req.(*kmsg.ElectLeadersRequest).Topics {
			out := kmsg.ElectLeadersResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.ElectLeadersResponseTopicPartition{Partition: p, ErrorCode: code})
			}
			resp.Topics = append(resp.Topics, out)
		}
	}
	return resp
}
