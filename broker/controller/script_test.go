package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/invariant/scripts"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// TestScripts runs testdata/*.txt: lines that start with "> " are commands, the lines below each are the
// effects it must have, "# " lines are comments.
func TestScripts(t *testing.T) { scripts.Run(t, runScript) }

func runScript(t *testing.T, text string) string {
	s := &script{world: newWorld(t)}
	var got []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "> "):
			got = append(got, line)
			s.trace = nil
			s.run(strings.Fields(line[2:]))
			got = append(got, s.trace...)
		case strings.HasPrefix(line, "#") || line == "":
			got = append(got, line)
		}
	}
	return strings.Join(got, "\n") + "\n"
}

// script is the interpreter of one file.
type script struct {
	*world
	cfg      Config
	requests uint64
	fault    zkFault // of the next ZK effect that holds a write
	skip     int     // effects with a write to leave alone before that
}

func (s *script) run(args []string) {
	verb, args := args[0], args[1:]
	hold := false // ZooKeeper effects wait
	if n := len(args); n > 0 && args[n-1] == "hold" && verb != "quiet" {
		hold, args = true, args[:n-1]
	}
	switch verb {
	case "quiet": // run a command without showing its effects
		s.run(args)
		s.trace = nil
		return
	case "config":
		s.configure(args)
	case "brokers": // boot brokers; the first becomes controller
		for _, a := range args {
			s.start(id(a), s.cfg, true)
			s.finish()
		}
	case "bystanders": // boot brokers that do not stand for election
		for _, a := range args {
			s.start(id(a), s.cfg, false)
			s.finish()
		}
	case "return-broker":
		s.start(id(args[0]), s.cfg, len(args) > 1 && args[1] == "stand")
	case "expire-broker":
		for _, a := range args {
			s.expire(s.nodes[id(a)], true)
		}
	case "pause-broker": // the session ends; the process does not know
		s.expire(s.nodes[id(args[0])], false)
	case "bounce-broker": // down and up again before any watch is looked at
		n := s.nodes[id(args[0])]
		s.expire(n, true)
		s.start(n.id, s.cfg, false)
	case "topic":
		s.topic(args)
	case "delete-topic":
		s.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.DeleteTopicPath(args[0])})
	case "add-partitions":
		s.addPartitions(args)
	case "topic-config":
		k, v, _ := strings.Cut(args[1], "=")
		s.mustZK(zkop.Request{Kind: zkop.Set, Path: znode.ConfigEntityPath(znode.TopicConfig, args[0]), Version: -1, Data: znode.Config{Values: map[string]string{k: v}}.Encode()})
		s.eachActive(func(n *node) { s.step(n, TopicConfigChanged{At: s.now, Topic: args[0]}) })
	case "deliver":
		s.finish()
		var only []cluster.BrokerID
		for _, a := range args {
			only = append(only, id(a))
		}
		s.deliver(only...)
	case "deliver-one":
		n, e := s.takeSend(id(args[0]))
		s.answer(n, e)
	case "fail": // fail BROKER TEXT: the waiting request to it breaks
		s.failSend(id(args[0]), strings.Join(args[1:], " "))
	case "refuse": // refuse BROKER CODE: the broker answers every partition with the code
		s.refuse(id(args[0]), args[1])
	case "fail-dir":
		s.nodes[id(args[0])].failedDir[tp(args[1])] = true
	case "log-dir-event":
		s.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.LogDirEventPrefix, Mode: zkop.PersistentSequential, Data: znode.LogDirEvent{Broker: id(args[0]), Event: 1}.Encode()})
	case "isr": // isr TP 1,2: the leader writes its ISR itself
		s.leaderISR(tp(args[0]), ids(args[1]))
	case "notify":
		tps := tps(args)
		s.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.ISRChangePrefix, Mode: zkop.PersistentSequential, Data: znode.EncodeISRChange(tps)})
	case "preferred-znode":
		tps := tps(args)
		s.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.PreferredReplicaElectionPath, Data: znode.EncodePreferredReplicaElection(tps)})
	case "reassign-znode": // reassign-znode t-0=2,3 ...: the old way to ask
		var list []znode.Reassignment
		for _, a := range args {
			k, v, _ := strings.Cut(a, "=")
			list = append(list, znode.Reassignment{Partition: tp(k), Replicas: ids(v)})
		}
		s.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.ReassignPartitionsPath, Data: znode.EncodeReassignments(list)})
	case "crash": // crash BROKER: it is gone at once, whatever it was doing
		for _, a := range args {
			s.nodes[id(a)].zk = nil
			s.expire(s.nodes[id(a)], true)
		}
	case "zk-create", "zk-set", "zk-delete":
		s.zkVerb(verb, args)
	case "zk-fail": // zk-fail lose-reply|lose-request [SKIP]
		s.fault = map[string]zkFault{"lose-reply": zkLoseReply, "lose-request": zkLoseRequest}[args[0]]
		if s.skip = 0; len(args) > 1 {
			s.skip, _ = strconv.Atoi(args[1])
		}
	case "zk-step": // run N zk effects of a node
		for range atoi(args[1]) {
			s.zkStep(s.nodes[id(args[0])], zkOK)
		}
		return
	case "tick":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.finish()
		if hold {
			s.fireTimers(d)
		} else {
			s.tick(d)
		}
	case "request":
		s.request(args)
	case "show":
		s.show(args)
		return
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
	if !hold {
		s.finish()
	}
}

// finish runs ZooKeeper until idle, with the armed fault on the first effect that writes.
func (s *script) finish() {
	for s.fault != zkOK {
		done := true
		for _, n := range s.sorted() {
			if len(n.zk) == 0 {
				continue
			}
			done = false
			fault := zkOK
			if slices.ContainsFunc(n.zk[0].Requests, func(r zkop.Request) bool {
				return r.Kind != zkop.Get && r.Kind != zkop.Children && r.Kind != zkop.Exists
			}) {
				if s.skip--; s.skip < 0 {
					fault, s.fault = s.fault, zkOK
				}
			}
			s.zkStep(n, fault)
			break
		}
		if done {
			break
		}
	}
	s.settle()
}

func (s *script) configure(args []string) {
	for _, a := range args {
		switch k, v, _ := strings.Cut(a, "="); k {
		case "delete":
			s.cfg.DeleteTopicEnable = v == "true"
		case "unclean":
			s.cfg.UncleanDefault = v == "true"
		case "rebalance":
			s.cfg.AutoRebalance = v == "true"
		default:
			s.t.Fatalf("unknown config %q", a)
		}
	}
}

func (s *script) eachActive(fn func(*node)) {
	for _, n := range s.sorted() {
		if n.active {
			fn(n)
		}
	}
}

// topic NAME 0=1,2,3 1=2,3,1
func (s *script) topic(args []string) {
	z := znode.Topic{ID: cluster.TopicID{15: byte(len(args)), 0: args[0][0], 6: 0x40}, Partitions: parts(args[1:])}
	s.do(s.admin, zkop.Request{Kind: zkop.Create, Path: znode.ConfigEntityPath(znode.TopicConfig, args[0]), Data: znode.Config{}.Encode()})
	s.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.TopicPath(args[0]), Data: z.Encode()})
}

func parts(args []string) map[int32]cluster.Assignment {
	out := map[int32]cluster.Assignment{}
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok {
			continue
		}
		if from, to, isRange := strings.Cut(k, ".."); isRange {
			for p := atoi(from); p <= atoi(to); p++ {
				out[int32(p)] = cluster.Assignment{Replicas: ids(v)}
			}
			continue
		}
		out[int32(atoi(k))] = cluster.Assignment{Replicas: ids(v)}
	}
	return out
}

func (s *script) addPartitions(args []string) {
	resp := s.mustZK(zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(args[0])})
	z, err := znode.DecodeTopic(args[0], resp.Data)
	if err != nil {
		s.t.Fatal(err)
	}
	for p, a := range parts(args[1:]) {
		z.Partitions[p] = a
	}
	s.mustZK(zkop.Request{Kind: zkop.Set, Path: znode.TopicPath(args[0]), Version: resp.Stat.Version, Data: z.Encode()})
}

func (s *script) zkVerb(verb string, args []string) {
	req := zkop.Request{Kind: zkop.Create, Path: args[0], Version: -1}
	switch verb {
	case "zk-set":
		req.Kind = zkop.Set
	case "zk-delete":
		req.Kind = zkop.Delete
	}
	if len(args) > 1 {
		req.Data = []byte(args[1])
	}
	s.mustZK(req)
}

func (s *script) leaderISR(tp cluster.TopicPartition, isr []cluster.BrokerID) {
	st, version, ok := s.state(tp)
	if !ok {
		s.t.Fatalf("%v has no state", tp)
	}
	st.ISR = isr
	s.mustZK(zkop.Request{Kind: zkop.Set, Path: znode.StatePath(tp), Version: version, Data: st.Encode()})
}

func (s *script) takeSend(b cluster.BrokerID) (*node, Send) {
	for _, n := range s.sorted() {
		for i, e := range n.sends {
			if e.Broker == b {
				n.sends = slices.Delete(n.sends, i, i+1)
				return n, e
			}
		}
	}
	s.t.Fatalf("no request waits for broker %d", b)
	return nil, Send{}
}

func (s *script) failSend(b cluster.BrokerID, text string) {
	n, e := s.takeSend(b)
	s.step(n, Answered{At: s.now, Broker: b, Token: e.Token, Err: fmt.Errorf("%s", text)})
}

func (s *script) refuse(b cluster.BrokerID, code string) {
	n, e := s.takeSend(b)
	resp := e.Request.ResponseKind()
	switch resp := resp.(type) {
	case *kmsg.LeaderAndISRResponse:
		for _, t := range e.Request.(*kmsg.LeaderAndISRRequest).TopicStates {
			out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
			for _, p := range t.PartitionStates {
				out.Partitions = append(out.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(atoi(code))})
			}
			resp.Topics = append(resp.Topics, out)
		}
	case *kmsg.UpdateMetadataResponse:
		resp.ErrorCode = int16(atoi(code))
	case *kmsg.StopReplicaResponse:
		for _, t := range e.Request.(*kmsg.StopReplicaRequest).Topics {
			for _, p := range t.PartitionStates {
				resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition, ErrorCode: int16(atoi(code))})
			}
		}
	}
	s.step(n, Answered{At: s.now, Broker: b, Token: e.Token, Response: resp})
}

// request shutdown 2 | elect preferred|unclean T-0.. | elect preferred all | alter BROKER TP epoch=.. v=.. isr=..
func (s *script) request(args []string) {
	s.requests++
	var ev Event
	switch args[0] {
	case "shutdown":
		req := &kmsg.ControlledShutdownRequest{Version: 3, BrokerID: int32(id(args[1]))}
		if n := s.nodes[id(args[1])]; n != nil {
			req.BrokerEpoch = n.czxid
		}
		if len(args) > 2 && args[2] == "stale" {
			req.BrokerEpoch--
		}
		ev = ControlledShutdownRequested{At: s.now, RequestID: s.requests, Request: req}
	case "elect":
		req := &kmsg.ElectLeadersRequest{Version: 2, TimeoutMillis: 60000}
		if args[1] == "unclean" {
			req.ElectionType = 1
		}
		for _, a := range args[2:] {
			if a != "all" {
				req.Topics = append(req.Topics, kmsg.ElectLeadersRequestTopic{Topic: tp(a).Topic, Partitions: []int32{tp(a).Partition}})
			}
		}
		ev = ElectLeadersRequested{At: s.now, RequestID: s.requests, Request: req}
	case "set":
		req, changes := setRequest(args[1:])
		ev = LeaderAndISRRequested{At: s.now, RequestID: s.requests, Request: req, Changes: changes}
	case "reassign":
		ev = AlterReassignmentsRequested{At: s.now, RequestID: s.requests, Request: reassignRequest(args[1:])}
	case "list-reassignments":
		req := &kmsg.ListPartitionReassignmentsRequest{TimeoutMillis: 60000}
		for _, a := range args[1:] {
			req.Topics = append(req.Topics, kmsg.ListPartitionReassignmentsRequestTopic{Topic: tp(a).Topic, Partitions: []int32{tp(a).Partition}})
		}
		ev = ListReassignmentsRequested{At: s.now, RequestID: s.requests, Request: req}
	case "alter":
		ev = AlterPartitionRequested{At: s.now, RequestID: s.requests, Request: s.alterRequest(args[1:])}
	}
	to := s.nodes[1]
	for _, n := range s.sorted() {
		if n.active {
			to = n
		}
	}
	s.step(to, ev)
}

// setRequest t-0 leader=3 isr=1,3 v=2 epoch=1 unclean [t-1 ...]
func setRequest(args []string) (*kmsg.ElectLeadersRequest, []cluster.LeaderChange) {
	req := &kmsg.ElectLeadersRequest{Version: 2, ElectionType: cluster.SetLeaderAndISRElection, TimeoutMillis: 60000}
	var changes []cluster.LeaderChange
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok && a != "unclean" {
			changes = append(changes, cluster.LeaderChange{TopicPartition: tp(a), Leader: cluster.KeepLeader, ExpectEpoch: -1, ExpectVersion: -1})
			continue
		}
		w := &changes[len(changes)-1]
		switch k {
		case "leader":
			w.Leader = id(v)
		case "isr":
			w.ISR = []cluster.BrokerID{}
			if v != "" {
				w.ISR = ids(v)
			}
		case "v":
			w.ExpectVersion = cluster.ZKVersion(atoi(v))
		case "epoch":
			w.ExpectEpoch = cluster.LeaderEpoch(atoi(v))
		case "unclean":
			w.Unclean = true
		}
	}
	return req, changes
}

// reassignRequest t-0=3,1 t-1=cancel t-2=none t-3..90=1
func reassignRequest(args []string) *kmsg.AlterPartitionAssignmentsRequest {
	req := &kmsg.AlterPartitionAssignmentsRequest{TimeoutMillis: 60000}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		from, last, isRange := strings.Cut(k, "..")
		first := tp(from)
		to := int(first.Partition)
		if isRange {
			to = atoi(last)
		}
		topic := kmsg.AlterPartitionAssignmentsRequestTopic{Topic: first.Topic}
		for num := first.Partition; num <= int32(to); num++ {
			part := kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: num}
			switch v {
			case "cancel":
			case "none":
				part.Replicas = []int32{}
			default:
				part.Replicas = cluster.IDsToInt32(ids(v))
			}
			topic.Partitions = append(topic.Partitions, part)
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func (s *script) alterRequest(args []string) *kmsg.AlterPartitionRequest {
	n, p := s.nodes[id(args[0])], tp(args[1])
	req := &kmsg.AlterPartitionRequest{Version: 3, BrokerID: int32(n.id), BrokerEpoch: n.czxid}
	st, version, _ := s.state(p)
	part := kmsg.AlterPartitionRequestTopicPartition{Partition: p.Partition, LeaderEpoch: int32(st.LeaderEpoch), PartitionEpoch: version}
	for _, a := range args[2:] {
		switch k, v, _ := strings.Cut(a, "="); k {
		case "epoch":
			part.LeaderEpoch = int32(atoi(v))
		case "v":
			part.PartitionEpoch = int32(atoi(v))
		case "broker-epoch":
			req.BrokerEpoch = int64(atoi(v))
		case "isr":
			for _, b := range ids(v) {
				part.NewEpochISR = append(part.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: int32(b), BrokerEpoch: -1})
			}
		}
	}
	resp := s.do(s.admin, zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(p.Topic)})
	z, _ := znode.DecodeTopic(p.Topic, resp.Data)
	req.Topics = []kmsg.AlterPartitionRequestTopic{{TopicID: z.ID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{part}}}
	return req
}

// show zk PATH | tree PATH | stats | sends | requests BROKER | metadata BROKER TP
func (s *script) show(args []string) {
	switch args[0] {
	case "zk":
		resp := s.do(s.admin, zkop.Request{Kind: zkop.Get, Path: args[1]})
		if resp.Err != nil {
			s.log("%s: %v", args[1], resp.Err)
			return
		}
		s.log("%s v%d %s", args[1], resp.Stat.Version, resp.Data)
	case "tree":
		s.tree.Walk(args[1], func(path string, data []byte, st zkop.Stat) bool {
			s.log("%s", strings.TrimRight(fmt.Sprintf("%s v%d %s", path, st.Version, data), " "))
			return true
		})
	case "stats":
		s.eachActive(func(n *node) { s.log("%+v", n.ctl.Stats()) })
	case "sends":
		for _, n := range s.sorted() {
			for _, e := range n.sends {
				s.log("%d waits for %d: %s", n.id, e.Broker, describeRequest(e.Request))
			}
		}
	case "requests":
		n := s.nodes[id(args[1])]
		s.log("broker %d got %d requests, %d full", n.id, n.requests, n.full)
		n.requests, n.full = 0, 0
	case "metadata":
		n := s.nodes[id(args[1])]
		p, ok := n.metadata[tp(args[2])]
		s.log("broker %d knows %s: %v leader=%d epoch=%d isr=%v brokers=%v", n.id, args[2], ok, p.Leader, p.LeaderEpoch, p.ISR, n.brokers)
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func id(s string) cluster.BrokerID { return cluster.BrokerID(atoi(s)) }

func ids(s string) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, f := range strings.Split(s, ",") {
		out = append(out, id(f))
	}
	return out
}

func tps(args []string) []cluster.TopicPartition {
	var out []cluster.TopicPartition
	for _, a := range args {
		out = append(out, tp(a))
	}
	return out
}

func tp(s string) cluster.TopicPartition {
	i := strings.LastIndexByte(s, '-')
	return cluster.TopicPartition{Topic: s[:i], Partition: int32(atoi(s[i+1:]))}
}
