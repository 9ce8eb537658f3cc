package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/ztree"
	"kctl/zkutil/znode"
)

// world runs controllers against a real ZooKeeper tree and fake brokers, all in one goroutine under a clock
// that only tests move. ZooKeeper effects run when zkStep is called; requests to brokers wait in sends.
type world struct {
	t     testing.TB
	now   time.Time
	tree  *ztree.Tree
	admin int64 // session of the admin tool
	nodes map[cluster.BrokerID]*node
	trace []string
	quiet bool
	// written is told of every multi that was applied, before the node hears of it.
	written func(n *node, req zkop.Request)
}

// node is one broker process: its session, its controller, and what its fake replica manager knows.
type node struct {
	id      cluster.BrokerID
	session int64 // 0: no session
	epoch   uint64
	czxid   int64
	ctl     *Controller
	zk      []ZK // not yet run, in order
	sends   []Send
	timers  map[Timer]time.Time
	active  bool
	// The broker side.
	controllerEpoch int32
	leaderEpochs    map[cluster.TopicPartition]int32
	failedDir       map[cluster.TopicPartition]bool
	metadata        map[cluster.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition
	full            int // LeaderAndISR requests of type full
	requests        int
	brokers         []int32                    // of the last UpdateMetadata
	ids             map[string]cluster.TopicID // as UpdateMetadata told them
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), tree: ztree.New(ztree.Options{}), nodes: map[cluster.BrokerID]*node{}}
	w.admin = w.tree.OpenSession(w.now, 24*365*time.Hour)
	for _, path := range znode.PersistentPaths() {
		w.mustZK(zkop.Request{Kind: zkop.Create, Path: path})
	}
	return w
}

func (w *world) log(format string, args ...any) {
	if !w.quiet {
		w.trace = append(w.trace, fmt.Sprintf(format, args...))
	}
}

// do runs one request in a session and delivers the fired watches at once.
func (w *world) do(session int64, req zkop.Request) zkop.Response {
	resp, fired := w.tree.Do(w.now, session, nil, req)
	w.fire(slices.Clone(fired))
	return resp
}

func (w *world) fire(fired []ztree.FiredWatch) {
	for _, f := range fired {
		for _, n := range w.sorted() {
			if n.session == f.Session && n.session != 0 {
				w.step(n, WatchFired{At: w.now, Event: f.Event})
			}
		}
	}
}

func (w *world) mustZK(req zkop.Request) zkop.Response {
	resp := w.do(w.admin, req)
	if resp.Err != nil {
		w.t.Helper()
		w.t.Fatalf("admin %v %s: %v", req.Kind, req.Path, resp.Err)
	}
	return resp
}

func (w *world) sorted() []*node {
	out := make([]*node, 0, len(w.nodes))
	for _, n := range w.nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *node) int { return int(a.id - b.id) })
	return out
}

// start boots (or reboots) a broker process: session, registration, standing for election when stand is set.
func (w *world) start(id cluster.BrokerID, cfg Config, stand bool) *node {
	n := w.nodes[id]
	if n == nil {
		cfg.BrokerID, cfg.InterBrokerListener = id, "PLAINTEXT"
		n = &node{id: id, ctl: New(cfg), timers: map[Timer]time.Time{}}
		w.nodes[id] = n
	}
	n.leaderEpochs, n.failedDir = map[cluster.TopicPartition]int32{}, map[cluster.TopicPartition]bool{}
	n.metadata = map[cluster.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition{}
	n.ids = map[string]cluster.TopicID{}
	n.controllerEpoch = -1
	w.openSession(n, stand)
	return n
}

// openSession gives a node a new session and registers the broker in it.
func (w *world) openSession(n *node, stand bool) {
	n.session = w.tree.OpenSession(w.now, 24*365*time.Hour)
	n.epoch++
	reg := znode.Registration{ID: n.id, JMXPort: -1, TimestampMs: w.now.UnixMilli(), Endpoints: []cluster.Endpoint{
		{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9000 + int32(n.id)},
	}}
	if resp := w.do(n.session, znode.RegisterBroker(reg)); resp.Err != nil {
		w.t.Fatalf("register %d: %v", n.id, resp.Err)
	}
	n.czxid = w.do(w.admin, zkop.Request{Kind: zkop.Get, Path: znode.BrokerPath(n.id)}).Stat.Czxid
	if stand {
		var seed [16]byte
		seed[0] = byte(n.id)
		w.step(n, SessionStarted{At: w.now, Session: n.epoch, SessionID: n.session, Seed: seed})
	}
}

// expire ends a node's session on the server; the node itself learns of it when told is set.
func (w *world) expire(n *node, told bool) {
	session := n.session
	if told {
		n.session = 0
		n.zk = nil
		w.step(n, SessionEnded{At: w.now, Reason: "session expired"})
		n.sends = nil
	}
	w.fire(slices.Clone(w.tree.CloseSession(w.now, session)))
}

// step applies an event and takes in the effects.
func (w *world) step(n *node, ev Event) {
	var recall *RecallTopicIDs
	defer func() {
		if recall != nil {
			w.step(n, TopicIDsRecalled{At: w.now, ID: recall.ID, IDs: n.ids})
		}
	}()
	for _, e := range n.ctl.Step(ev, nil) {
		switch e := e.(type) {
		case RecallTopicIDs:
			w.log("%d recalls the ids of %s", n.id, strings.Join(e.Topics, ","))
			recall = &e
		case ZK:
			n.zk = append(n.zk, e)
		case Send:
			n.sends = append(n.sends, e)
			w.log("%d -> %d %s", n.id, e.Broker, describeRequest(e.Request))
		case Disconnect:
			n.sends = slices.DeleteFunc(n.sends, func(s Send) bool { return s.Broker == e.Broker })
		case ArmTimer:
			n.timers[e.Timer] = e.At
		case CancelTimer:
			delete(n.timers, e.Timer)
		case Resigned:
			n.active = false
			clear(n.timers)
			n.sends = nil
			w.log("%d resigned epoch %d: %s", n.id, e.Epoch, e.Reason)
		case Activated:
			n.active = true
			w.log("%d controller epoch %d", n.id, e.Epoch)
		case RaiseAlert:
			w.log("%d ALERT %s", n.id, describeAlert(e.Alert))
		case ClearAlert:
			w.log("%d alert over %s", n.id, e.Partition)
		case Reply:
			w.log("%d reply %s", n.id, describeResponse(e.Response))
		case Note:
			w.log("%d note %s", n.id, describeNote(e))
		}
	}
}

// zkFault says what goes wrong with one ZK effect.
type zkFault uint8

const (
	zkOK zkFault = iota
	zkLoseReply
	zkLoseRequest
)

// zkStep runs the node's oldest ZK effect and delivers the answer.
func (w *world) zkStep(n *node, fault zkFault) bool {
	if len(n.zk) == 0 {
		return false
	}
	e := n.zk[0]
	n.zk = n.zk[1:]
	resps := make([]zkop.Response, len(e.Requests))
	reads, bigMultis, bigOps := 0, 0, 0
	for i, req := range e.Requests {
		switch {
		case e.Session != n.epoch || n.session == 0:
			resps[i].Err = zkop.ErrSessionExpired
			continue
		case fault == zkLoseRequest:
			resps[i].Err = zkop.ErrOutcomeUnknown
		default:
			resps[i] = w.do(n.session, req)
			if w.written != nil && resps[i].Err == nil && req.Kind == zkop.Multi {
				w.written(n, req)
			}
		}
		if len(req.Ops) > 50 && resps[i].Err == nil {
			bigMultis, bigOps = bigMultis+1, bigOps+len(req.Ops)-1
		} else if ztree.IsWrite(&req) {
			w.log("%d zk %s%s", n.id, describeZK(req), faultText(fault, resps[i].Err))
		} else {
			reads++
		}
		if fault == zkLoseReply {
			resps[i] = zkop.Response{Err: zkop.ErrOutcomeUnknown}
		}
	}
	if bigMultis > 0 {
		w.log("%d zk fenced %d multis with %d operations in one round%s", n.id, bigMultis, bigOps, faultText(fault, nil))
	}
	if reads > 0 {
		w.log("%d zk read %d%s", n.id, reads, faultText(fault, nil))
	}
	w.step(n, ZKDone{At: w.now, ID: e.ID, Responses: resps})
	return true
}

func faultText(f zkFault, err error) string {
	switch {
	case f == zkLoseReply:
		return " (reply lost)"
	case f == zkLoseRequest:
		return " (request lost)"
	case err != nil:
		return " = " + strings.TrimPrefix(err.Error(), "zookeeper: ")
	}
	return ""
}

// settle runs ZooKeeper effects of all nodes until none is left; retry timers of broken connections fire.
func (w *world) settle() {
	for busy := true; busy; {
		busy = false
		for _, n := range w.sorted() {
			for w.zkStep(n, zkOK) {
				busy = true
			}
			if at, ok := n.timers[Timer{Kind: TimerZKRetry}]; ok {
				delete(n.timers, Timer{Kind: TimerZKRetry})
				w.now = maxTime(w.now, at)
				w.step(n, TimerFired{At: w.now, Timer: Timer{Kind: TimerZKRetry}})
				busy = true
			}
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tick moves the clock and fires timers in order.
func (w *world) tick(d time.Duration) {
	end := w.now.Add(d)
	for {
		var at time.Time
		var who *node
		var which Timer
		for _, n := range w.sorted() {
			for t, due := range n.timers {
				earlier := who == nil || due.Before(at) || due.Equal(at) && n == who && lessTimer(t, which)
				if !due.After(end) && earlier {
					at, who, which = due, n, t
				}
			}
		}
		if who == nil {
			break
		}
		delete(who.timers, which)
		w.now = maxTime(w.now, at)
		w.step(who, TimerFired{At: w.now, Timer: which})
		w.settle()
	}
	w.now = maxTime(w.now, end)
}

// fireTimers moves the clock and fires what is due, without letting ZooKeeper run in between.
func (w *world) fireTimers(d time.Duration) {
	w.now = w.now.Add(d)
	for _, n := range w.sorted() {
		var due []Timer
		for t, at := range n.timers {
			if !at.After(w.now) {
				due = append(due, t)
			}
		}
		slices.SortFunc(due, func(a, b Timer) int {
			if lessTimer(a, b) {
				return -1
			}
			return 1
		})
		for _, t := range due {
			if _, armed := n.timers[t]; armed {
				delete(n.timers, t)
				w.step(n, TimerFired{At: w.now, Timer: t})
			}
		}
	}
}

func lessTimer(a, b Timer) bool {
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	return a.Broker < b.Broker
}

// deliver hands every waiting request to its broker and the answers back, until nothing is on its way.
func (w *world) deliver(only ...cluster.BrokerID) {
	for busy := true; busy; {
		busy = false
		for _, n := range w.sorted() {
			for i := 0; i < len(n.sends); i++ {
				s := n.sends[i]
				if len(only) > 0 && !slices.Contains(only, s.Broker) {
					continue
				}
				n.sends = slices.Delete(n.sends, i, i+1)
				busy = true
				w.answer(n, s)
				w.settle()
				i = -1
			}
		}
	}
}

// answer lets the addressed broker serve a request.
func (w *world) answer(n *node, s Send) {
	target := w.nodes[s.Broker]
	if target == nil || target.session == 0 {
		w.step(n, Answered{At: w.now, Broker: s.Broker, Token: s.Token, Err: errors.New("connection refused")})
		return
	}
	w.step(n, Answered{At: w.now, Broker: s.Broker, Token: s.Token, Response: target.serve(w, s.Request)})
}

// serve is the broker's side of the control requests, with Kafka's epoch checks.
func (n *node) serve(w *world, req kmsg.Request) kmsg.Response {
	n.requests++
	resp := req.ResponseKind()
	var epoch int32
	var brokerEpoch int64
	switch req := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		epoch, brokerEpoch = req.ControllerEpoch, req.BrokerEpoch
	case *kmsg.UpdateMetadataRequest:
		epoch, brokerEpoch = req.ControllerEpoch, req.BrokerEpoch
	case *kmsg.StopReplicaRequest:
		epoch, brokerEpoch = req.ControllerEpoch, req.BrokerEpoch
	}
	code := int16(0)
	switch {
	case brokerEpoch < n.czxid:
		code = codeStaleBrokerEpoch
	case epoch < n.controllerEpoch:
		code = codeStaleControllerEpoch
	default:
		n.controllerEpoch = epoch
	}
	switch resp := resp.(type) {
	case *kmsg.LeaderAndISRResponse:
		if resp.ErrorCode = code; code == 0 {
			n.leaderAndISR(req.(*kmsg.LeaderAndISRRequest), resp)
		}
	case *kmsg.UpdateMetadataResponse:
		if resp.ErrorCode = code; code == 0 {
			n.updateMetadata(req.(*kmsg.UpdateMetadataRequest))
		}
	case *kmsg.StopReplicaResponse:
		if resp.ErrorCode = code; code == 0 {
			n.stopReplica(req.(*kmsg.StopReplicaRequest), resp)
		}
	}
	return resp
}

func (n *node) leaderAndISR(req *kmsg.LeaderAndISRRequest, resp *kmsg.LeaderAndISRResponse) {
	if req.Type == requestFull {
		n.full++
	}
	for _, t := range req.TopicStates {
		out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
		for _, p := range t.PartitionStates {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			have, known := n.leaderEpochs[tp]
			code := int16(0)
			switch {
			case n.failedDir[tp]:
				code = codeKafkaStorageError
			case known && p.LeaderEpoch <= have:
				code = codeStaleControllerEpoch
			default:
				n.leaderEpochs[tp] = p.LeaderEpoch
			}
			out.Partitions = append(out.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
		}
		resp.Topics = append(resp.Topics, out)
	}
}

func (n *node) updateMetadata(req *kmsg.UpdateMetadataRequest) {
	n.brokers = nil
	for _, b := range req.LiveBrokers {
		n.brokers = append(n.brokers, b.ID)
	}
	for _, t := range req.TopicStates {
		for _, p := range t.PartitionStates {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if p.Leader == int32(cluster.LeaderDuringDelete) {
				delete(n.metadata, tp)
				continue
			}
			n.metadata[tp] = p
			n.ids[t.Topic] = t.TopicID
		}
	}
}

func (n *node) stopReplica(req *kmsg.StopReplicaRequest, resp *kmsg.StopReplicaResponse) {
	for _, t := range req.Topics {
		for _, p := range t.PartitionStates {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			code := int16(0)
			if n.failedDir[tp] {
				code = codeKafkaStorageError
			} else if p.Delete {
				delete(n.leaderEpochs, tp)
			}
			resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition, ErrorCode: code})
		}
	}
}

// state reads a partition's state znode.
func (w *world) state(tp cluster.TopicPartition) (znode.State, int32, bool) {
	resp := w.do(w.admin, zkop.Request{Kind: zkop.Get, Path: znode.StatePath(tp)})
	if resp.Err != nil {
		return znode.State{}, 0, false
	}
	s, err := znode.DecodeState(tp, resp.Data)
	if err != nil {
		w.t.Fatalf("state of %v: %v", tp, err)
	}
	return s, resp.Stat.Version, true
}
