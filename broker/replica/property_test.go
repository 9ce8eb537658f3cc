package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kctl/zkutil/cluster"
)

// TestSafety wires three cores over an exchange that loses, doubles and reorders messages, with a controller
// that only ever elects from the ISR, replies from ZooKeeper that get lost, writes that land late, and brokers
// that are killed and come back with an old high watermark checkpoint. After every action:
//
//   - every record that was acknowledged with acks=all is in the log of every member of the znode's ISR, at its
//     offset (so whoever of them is elected has it);
//   - the logs of any two replicas are equal below the smaller high watermark;
//   - no high watermark falls while its process lives, and none is above its log end.
func TestSafety(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"":           w.check,
			"produce":    w.produce,
			"produce2":   w.produce,
			"fetch":      w.fetch,
			"fetch2":     w.fetch,
			"deliver":    w.deliver,
			"deliver2":   w.deliver,
			"deliver3":   w.deliver,
			"deliver4":   w.deliver,
			"deliver5":   w.deliver,
			"deliver6":   w.deliver,
			"fetch3":     w.fetch,
			"fetch4":     w.fetch,
			"zookeeper":  w.zookeeper,
			"late write": w.lateWrite,
			"elect":      w.elect,
			"resend":     w.resend,
			"kill":       w.kill,
			"start":      w.start,
			"tick":       w.tick,
		})
	})
}

const worldSize = 3

// record is one record of the model log; id is unique.
type record struct {
	id    int
	epoch cluster.LeaderEpoch
}

type world struct {
	now   time.Time
	nodes [worldSize + 1]*node // by broker id, 1 to 3
	bag   []message
	state cluster.LeaderAndISR
	ver   cluster.ZKVersion
	tasks []zkTask   // effects waiting for ZooKeeper
	late  []WriteISR // writes whose reply was lost and which may yet land
	acked map[int64]record
	next  int
	trace []string // for a failure's report
}

// node is one broker: its core, and its log, which outlives the core.
type node struct {
	id      cluster.BrokerID
	p       *Partition // nil while dead
	recs    []record
	log     modelLog
	hwSeen  int64 // highest since the process started
	ckpt    int64 // checkpointed high watermark
	life    int   // counts starts
	fetch   *StartFetching
	waiting []int64 // offsets of acks=all records
}

type message struct {
	to      cluster.BrokerID
	ev      Event      // LeaderAndISR
	life    int        // of the receiver at the time: a decision for an earlier registration is refused (KIP-380)
	request *fetchSent // a follower's fetch
	answer  *fetchGot
}

type fetchSent struct {
	from   cluster.BrokerID
	epoch  cluster.LeaderEpoch
	last   cluster.LeaderEpoch
	offset int64
}

type fetchGot struct {
	req  fetchSent
	ev   FetchAnswered
	recs []record
}

type zkTask struct {
	node cluster.BrokerID
	p    *Partition
	eff  Effect
}

func newWorld(t *rapid.T) *world {
	w := &world{now: time.Unix(1000, 0), acked: map[int64]record{}}
	minISR := rapid.IntRange(1, 2).Draw(t, "min.insync")
	for id := cluster.BrokerID(1); id <= worldSize; id++ {
		w.nodes[id] = &node{id: id}
		w.nodes[id].log.topicID = cluster.TopicID{1}
		w.boot(w.nodes[id], minISR)
	}
	w.state = cluster.LeaderAndISR{Leader: 1, LeaderEpoch: 0, ISR: []cluster.BrokerID{1, 2, 3}}
	w.publish()
	return w
}

func (w *world) boot(n *node, minISR int) {
	n.p = New(Config{Self: n.id, LagTimeMax: 10 * time.Second, MinInSync: minISR})
	n.life++
	n.log.hw, n.hwSeen, n.fetch, n.waiting = n.ckpt, 0, nil, nil
}

func (w *world) decision() LeaderAndISR {
	return LeaderAndISR{At: w.now, Leader: w.state.Leader, LeaderEpoch: w.state.LeaderEpoch, ISR: slices.Clone(w.state.ISR),
		ZKVersion: w.ver, Replicas: []cluster.BrokerID{1, 2, 3}}
}

func (w *world) publish() {
	for id := cluster.BrokerID(1); id <= worldSize; id++ {
		w.bag = append(w.bag, message{to: id, ev: w.decision(), life: w.nodes[id].life})
	}
}

// step runs an event and every log effect that it leads to.
func (w *world) step(n *node, ev Event) {
	for events := []Event{ev}; len(events) > 0; events = events[1:] {
		for _, eff := range n.p.Step(events[0], nil) {
			w.trace = append(w.trace, fmt.Sprintf("%d %T -> %s", n.id, events[0], describe(eff)))
			if answer := w.execute(n, eff); answer != nil {
				events = append(events, answer)
			}
		}
	}
}

func (w *world) execute(n *node, eff Effect) Event {
	switch eff := eff.(type) {
	case WriteISR, ReadState:
		w.tasks = append(w.tasks, zkTask{n.id, n.p, eff})
	case StartFetching:
		n.fetch = &eff
	case StopFetching:
		n.fetch = nil
	case FetchFrom:
		if n.fetch != nil {
			n.fetch.From, n.fetch.LastEpoch = eff.Offset, eff.LastEpoch
		}
	case AskLeader:
		return w.askLeader(eff)
	case FailWaiting:
		n.waiting = nil
	}
	answer := n.log.answer(eff, w.now)
	n.recs = n.recs[:n.log.end]
	return answer
}

func (w *world) askLeader(eff AskLeader) Event {
	l := w.nodes[eff.Leader]
	ev := LeaderAsked{At: w.now, LeaderEpoch: eff.LeaderEpoch, Code: CodeNotLeaderOrFollower, EpochEnd: UndefinedEpochEnd}
	if l.p == nil || l.p.CheckEpoch(eff.LeaderEpoch) != CodeNone {
		return ev
	}
	e, o := l.log.EndOffsetForEpoch(eff.LastEpoch)
	return LeaderAsked{At: w.now, LeaderEpoch: eff.LeaderEpoch, LogStart: l.log.start, LogEnd: l.log.end, EpochEnd: EpochEnd{e, o}}
}

func (w *world) pick(t *rapid.T, name string) *node {
	n := w.nodes[rapid.IntRange(1, worldSize).Draw(t, name)]
	if n.p == nil {
		t.Skip("dead")
	}
	return n
}

func (w *world) produce(t *rapid.T) {
	n := w.pick(t, "to")
	if n.p.CheckProduce(w.now, AllReplicas) != CodeNone {
		t.Skip("refused")
	}
	w.next++
	n.recs = append(n.recs, record{w.next, n.p.LeaderEpoch()})
	n.log.end++
	n.waiting = append(n.waiting, n.log.end)
	w.step(n, Appended{At: w.now, LogEnd: n.log.end})
}

func (w *world) fetch(t *rapid.T) {
	n := w.pick(t, "from")
	if n.fetch == nil {
		t.Skip("does not fetch")
	}
	w.bag = append(w.bag, message{to: n.fetch.Leader, request: &fetchSent{n.id, n.fetch.LeaderEpoch, n.fetch.LastEpoch, n.fetch.From}})
}

func (w *world) deliver(t *rapid.T) {
	if len(w.bag) == 0 {
		t.Skip("nothing under way")
	}
	i := rapid.IntRange(0, len(w.bag)-1).Draw(t, "message")
	m := w.bag[i]
	switch rapid.IntRange(0, 19).Draw(t, "fate") {
	case 0: // doubled
	case 1:
		w.bag = slices.Delete(w.bag, i, i+1)
		return // lost
	default:
		w.bag = slices.Delete(w.bag, i, i+1)
	}
	n := w.nodes[m.to]
	switch {
	case n.p == nil:
	case m.ev != nil && m.life != n.life:
	case m.ev != nil:
		w.step(n, m.ev)
	case m.request != nil:
		w.serve(t, n, *m.request)
	case m.answer != nil:
		w.take(n, *m.answer)
	}
}

func (w *world) serve(t *rapid.T, n *node, r fetchSent) {
	got := &fetchGot{req: r, ev: FetchAnswered{LeaderEpoch: r.epoch, FetchOffset: r.offset, FetchedEpoch: r.last, HighWatermark: -1}}
	v := n.p.CheckFetch(FetchQuery{Replica: r.from, CurrentEpoch: r.epoch, LastFetchedEpoch: r.last, Offset: r.offset}, &n.log)
	if v.HigherEpoch {
		w.step(n, HigherEpochSeen{At: w.now, Replica: r.from, LeaderEpoch: r.epoch})
	}
	got.ev.Code, got.ev.Diverging = v.Code, v.Diverging
	if v.Code == CodeNone && v.Diverging == nil {
		w.step(n, FollowerFetched{At: w.now, Replica: r.from, FetchOffset: r.offset, Alive: true, ReplicaEpoch: -1})
		many := rapid.IntRange(0, 3).Draw(t, "records")
		got.recs = slices.Clone(n.recs[r.offset:min(n.log.end, r.offset+int64(many))])
		got.ev.HighWatermark = n.p.HighWatermark()
	}
	w.bag = append(w.bag, message{to: r.from, answer: got})
}

func (w *world) take(n *node, got fetchGot) {
	ev := got.ev
	ev.At = w.now
	if !n.p.AcceptsFetch(ev.LeaderEpoch, ev.FetchOffset, ev.FetchedEpoch) {
		return
	}
	if ev.Diverging != nil {
		e, o := n.log.EndOffsetForEpoch(ev.Diverging.Epoch)
		ev.LocalEnd = EpochEnd{e, o}
	}
	for _, r := range got.recs {
		if n.log.lastEpoch() != r.epoch {
			n.log.assign(r.epoch, n.log.end)
		}
		n.recs = append(n.recs, r)
		n.log.end++
	}
	ev.LogEnd, ev.LastEpoch = n.log.end, n.log.lastEpoch()
	w.step(n, ev)
}

// zookeeper carries out one waiting effect; its reply may get lost, before or after it was applied.
func (w *world) zookeeper(t *rapid.T) {
	if len(w.tasks) == 0 {
		t.Skip("nothing to do")
	}
	task := w.tasks[0]
	w.tasks = w.tasks[1:]
	fate := rapid.IntRange(0, 3).Draw(t, "reply")
	n := w.nodes[task.node]
	live := n.p == task.p // the process that asked still lives
	switch eff := task.eff.(type) {
	case WriteISR:
		if fate == 0 {
			w.late = append(w.late, eff)
			if live {
				w.step(n, ISRWritten{At: w.now, IfVersion: eff.IfVersion, Outcome: Unknown})
			}
			return
		}
		out := Refused
		if w.write(eff) {
			out = Written
		}
		if fate == 1 {
			out = Unknown
		}
		if live {
			w.step(n, ISRWritten{At: w.now, IfVersion: eff.IfVersion, Outcome: out, Version: eff.IfVersion + 1})
		}
	case ReadState:
		if live {
			w.step(n, StateRead{At: w.now, OK: fate != 0, State: w.state.Clone(), Version: w.ver})
		}
	}
}

func (w *world) write(eff WriteISR) bool {
	if eff.IfVersion != w.ver {
		return false
	}
	w.state = cluster.LeaderAndISR{Leader: eff.Leader, LeaderEpoch: eff.LeaderEpoch, ISR: slices.Clone(eff.ISR)}
	w.ver++
	return true
}

func (w *world) lateWrite(t *rapid.T) {
	if len(w.late) == 0 {
		t.Skip("none")
	}
	eff := w.late[0]
	w.late = w.late[1:]
	w.write(eff)
}

// elect is the controller: a living member of the ISR leads, or nobody; members that died leave the ISR, but
// the last one never does.
func (w *world) elect(t *rapid.T) {
	var live []cluster.BrokerID
	for _, id := range w.state.ISR {
		if w.nodes[id].p != nil {
			live = append(live, id)
		}
	}
	next := w.state.Clone()
	next.LeaderEpoch++
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		t.Skip("seldom")
	}
	if len(live) == 0 {
		next.Leader, next.ISR = cluster.NoLeader, w.state.ISR[:1]
	} else {
		next.Leader, next.ISR = rapid.SampledFrom(live).Draw(t, "leader"), live
	}
	w.state = next
	w.ver++
	w.publish()
}

func (w *world) resend(t *rapid.T) { w.publish() }

func (w *world) kill(t *rapid.T) {
	n := w.pick(t, "broker")
	n.ckpt = rapid.Int64Range(0, n.p.HighWatermark()).Draw(t, "checkpoint")
	n.p = nil
}

func (w *world) start(t *rapid.T) {
	n := w.nodes[rapid.IntRange(1, worldSize).Draw(t, "broker")]
	if n.p != nil {
		t.Skip("lives")
	}
	w.boot(n, rapid.IntRange(1, 2).Draw(t, "min.insync"))
	if w.state.Leader == n.id {
		// The controller sees by the registration that the leader was away, and decides anew (KIP-380). A
		// write of its earlier life that is still under way to ZooKeeper is thereby fenced.
		w.state.LeaderEpoch++
		w.ver++
		w.publish()
		return
	}
	w.bag = append(w.bag, message{to: n.id, ev: w.decision(), life: n.life})
}

func (w *world) tick(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
	for _, n := range w.nodes[1:] {
		if n.p == nil {
			continue
		}
		if eff := w.settledTick(n); len(eff) > 0 {
			t.Fatalf("broker %d was settled and a tick made it do %v: %s", n.id, eff, w.dump())
		}
		w.step(n, Tick{At: w.now})
	}
}

// settledTick returns what a tick makes a settled partition do: nothing, or Settled is wrong.
func (w *world) settledTick(n *node) []Effect {
	if !n.p.Settled() {
		return nil
	}
	return n.p.Step(Tick{At: w.now}, nil)
}

func (w *world) check(t *rapid.T) {
	for _, n := range w.nodes[1:] {
		if n.p == nil {
			continue
		}
		hw := n.p.HighWatermark()
		if hw < n.hwSeen || hw > n.log.end && n.p.LogOpen() {
			t.Fatalf("broker %d: high watermark %d after %d, log end %d: %s", n.id, hw, n.hwSeen, n.log.end, w.dump())
		}
		n.hwSeen = hw
		w.settle(n)
	}
	for off, want := range w.acked {
		for _, id := range w.state.ISR {
			n := w.nodes[id]
			if int64(len(n.recs)) <= off || n.recs[off] != want {
				t.Fatalf("acknowledged record %v at offset %d is not on ISR member %d: %s", want, off, id, w.dump())
			}
		}
	}
	for i := 1; i <= worldSize; i++ {
		for j := i + 1; j <= worldSize; j++ {
			w.compare(t, w.nodes[i], w.nodes[j])
		}
	}
}

// settle acknowledges what the high watermark has passed.
func (w *world) settle(n *node) {
	kept := n.waiting[:0]
	for _, end := range n.waiting {
		done, code := n.p.CheckAcked(end)
		switch {
		case !done:
			kept = append(kept, end)
		case code == CodeNone:
			w.acked[end-1] = n.recs[end-1]
		}
	}
	n.waiting = kept
}

func (w *world) compare(t *rapid.T, a, b *node) {
	if a.p == nil || b.p == nil || !a.p.LogOpen() || !b.p.LogOpen() {
		return
	}
	for off := int64(0); off < min(a.p.HighWatermark(), b.p.HighWatermark()); off++ {
		if a.recs[off] != b.recs[off] {
			t.Fatalf("brokers %d and %d differ at offset %d: %s", a.id, b.id, off, w.dump())
		}
	}
}

func (w *world) dump() string {
	s := fmt.Sprintf("znode %+v v%d", w.state, w.ver)
	for _, n := range w.nodes[1:] {
		s += fmt.Sprintf("\n  %d: %v epochs %v", n.id, n.recs, n.log.epochs)
		if n.p != nil {
			s += fmt.Sprintf(" %s epoch=%d hw=%d isr=%v", n.p.Role(), n.p.LeaderEpoch(), n.p.HighWatermark(), n.p.ISR())
		}
	}
	for _, l := range w.trace {
		s += "\n    " + l
	}
	return s
}
