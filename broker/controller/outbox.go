package controller

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// Waits between attempts to one broker. A transport failure waits 100 ms as in Apache Kafka, a negative
// answer one second; both double up to their bound while they repeat.
const (
	resendDelayMin = 100 * time.Millisecond
	resendDelayMax = 2 * time.Second
	refuseDelayMin = time.Second
	refuseDelayMax = 10 * time.Second
)

// requestKind is one of the three control requests; they go out in this order.
type requestKind uint8

const (
	kindMetadata requestKind = iota
	kindLeaderAndISR
	kindStopReplica
)

// broker is a registered broker and its outbox. What waits for it is kept as sets of partitions, not as a
// queue of requests: a request is built from the newest decisions when the previous one was answered, so
// waiting requests merge by themselves and one slow broker delays nobody else (V3 points 2.6, 2.9).
type broker struct {
	info         cluster.Broker
	shuttingDown bool
	offline      map[*partition]struct{} // replicas whose log directory failed

	lead      map[*partition]struct{} // LeaderAndISR to send
	later     map[*partition]struct{} // LeaderAndISR that was refused, to be sent again after a wait
	stop      map[*partition]bool     // StopReplica to send; true: delete
	meta      metadataCursor
	contacted bool // this incarnation has accepted a LeaderAndISR of ours

	inflight *inflight
	held     bool // waiting for TimerResend
	failures int  // transport failures in a row
	refusals int  // negative answers in a row
}

func newBroker(info cluster.Broker) *broker {
	return &broker{
		info: info, offline: map[*partition]struct{}{}, lead: map[*partition]struct{}{},
		later: map[*partition]struct{}{}, stop: map[*partition]bool{},
	}
}

// inflight is the one unanswered request of a broker.
type inflight struct {
	token uint64
	kind  requestKind
	lead  []sentDecision
	stop  []sentStop
	meta  metadataCursor // to go back to when the request fails
}

// sentDecision is one partition of a LeaderAndISR request in flight.
type sentDecision struct {
	p     *partition
	epoch cluster.LeaderEpoch
}

// sentStop is one partition of a StopReplica request in flight.
type sentStop struct {
	p      *partition
	delete bool
}

func (b *broker) queueDepth(c *Controller) int {
	n := 0
	if b.inflight != nil {
		n++
	}
	if len(b.lead)+len(b.later) > 0 {
		n++
	}
	if len(b.stop) > 0 {
		n++
	}
	if b.meta.waits(&c.metadata) {
		n++
	}
	return n
}

// publish queues a decision for every alive replica and its metadata for every broker, and starts to track it.
func (c *Controller) publish(p *partition, reason string) {
	for _, id := range p.assignment.Replicas {
		if c.alive(id, p) {
			c.publishTo(p, id, reason)
		}
	}
	c.publishMetadata(p)
}

// publishTo queues the partition's decision for one broker.
func (c *Controller) publishTo(p *partition, id cluster.BrokerID, reason string) {
	b := c.brokers[id]
	if del, ok := b.stop[p]; ok {
		if del && p.topic.deleting {
			return
		}
		delete(b.stop, p)
	}
	delete(b.later, p)
	b.lead[p] = struct{}{}
	c.track(p, id, reason)
}

// publishStop queues a StopReplica; it replaces a waiting LeaderAndISR.
func (c *Controller) publishStop(p *partition, id cluster.BrokerID, del bool) {
	b := c.brokers[id]
	delete(b.lead, p)
	delete(b.later, p)
	b.stop[p] = b.stop[p] || del
	c.untrack(p, id)
}

// flush lets every idle broker's next request go.
func (c *Controller) flush() {
	if c.role != roleActive {
		return
	}
	for _, id := range c.brokerIDs() {
		c.flushTo(c.brokers[id])
	}
	c.settleHandovers()
	c.metadata.trim(c.brokers)
	c.armTransition()
}

// flushTo sends the most urgent waiting request. Order: the set of live brokers if one joined (followers
// need the new leader's address), LeaderAndISR, metadata, StopReplica. LeaderAndISR precedes metadata so
// that leaders act before clients are sent to them. A topic can only be made anew after every StopReplica
// of its predecessor was answered, so these never have to overtake anything.
func (c *Controller) flushTo(b *broker) {
	if b.inflight != nil || b.held {
		return
	}
	switch {
	case b.shuttingDown && len(b.stop) > 0: // it must stop leading before it stops
		c.sendStopReplica(b)
	case b.meta.brokersFirst:
		c.sendMetadata(b, true)
	case len(b.lead) > 0:
		c.sendLeaderAndISR(b)
	case b.meta.waits(&c.metadata):
		c.sendMetadata(b, false)
	case len(b.stop) > 0:
		c.sendStopReplica(b)
	}
}

func (c *Controller) send(b *broker, in *inflight, req kmsg.Request) {
	c.next.token++
	in.token = c.next.token
	b.inflight = in
	c.emit(Send{Broker: b.info.ID, Epoch: b.info.Epoch, Token: in.token, Request: req})
}

// answered handles the end of a request to a broker.
func (c *Controller) answered(ev Answered) {
	b := c.brokers[ev.Broker]
	if b == nil || b.inflight == nil || b.inflight.token != ev.Token {
		return // of an earlier incarnation or term
	}
	in := b.inflight
	b.inflight = nil
	if ev.Err != nil {
		b.failures++
		c.requeue(b, in, 0, ev.Err)
		c.hold(b, backoff(resendDelayMin, resendDelayMax, b.failures))
	} else {
		b.failures = 0
		c.answeredOK(b, in, ev.Response)
	}
	c.pump(b)
}

// pump lets a broker's next request go although a job may be under way: what waits for it is durable
// already. Only the first LeaderAndISR of an incarnation is left to the end of the job, so that it is full.
func (c *Controller) pump(b *broker) {
	c.settleHandovers()
	switch {
	case c.role != roleActive:
	case c.running == nil:
		c.flush()
	case b.contacted:
		c.flushTo(b)
		c.metadata.built = nil
		c.armTransition()
	}
}

func (c *Controller) answeredOK(b *broker, in *inflight, resp kmsg.Response) {
	switch resp := resp.(type) {
	case *kmsg.LeaderAndISRResponse:
		if c.accepted(b, in, resp.ErrorCode) {
			b.contacted = true
			c.leaderAndISRAnswered(b, in, resp)
		}
	case *kmsg.UpdateMetadataResponse:
		if c.accepted(b, in, resp.ErrorCode) {
			b.refusals = 0
		}
	case *kmsg.StopReplicaResponse:
		if c.accepted(b, in, resp.ErrorCode) {
			b.refusals = 0
			c.stopReplicaAnswered(b, in, resp)
		}
	default:
		c.accepted(b, in, codeUnknownServerError) // not an answer to anything we send
	}
}

// accepted handles a refusal of a whole request: it is kept and sent again after a wait. A stale epoch
// means that our picture is old: look at ZooKeeper.
func (c *Controller) accepted(b *broker, in *inflight, code int16) bool {
	if code == codeNone {
		return true
	}
	b.refusals++
	c.emit(Note{Kind: NoteRequestRefused, Broker: b.info.ID, Reason: codeName(code)})
	c.requeue(b, in, code, nil)
	c.hold(b, backoff(refuseDelayMin, refuseDelayMax, b.refusals))
	switch code {
	case codeStaleControllerEpoch:
		c.enqueueOnce("VerifyEpoch", "", c.verifyEpoch)
	case codeStaleBrokerEpoch:
		c.enqueueOnce("BrokerChange", "", c.brokerChange)
	}
	return false
}

// requeue puts the content of a failed request back. Newer decisions for the same partitions win, because
// the next request is built from the present ones.
func (c *Controller) requeue(b *broker, in *inflight, code int16, err error) {
	switch in.kind {
	case kindMetadata:
		b.meta = b.meta.back(in.meta)
	case kindLeaderAndISR:
		for _, s := range in.lead {
			if _, stopping := b.stop[s.p]; !stopping && !s.p.topic.deleting {
				b.lead[s.p] = struct{}{}
			}
			c.transitionFailed(s.p, b.info.ID, s.epoch, code, err)
		}
	case kindStopReplica:
		for _, s := range in.stop {
			// A replica that is to be there again: the epoch of the request in doubt is below its new one.
			back := !s.p.topic.deleting && s.p.replicaIndex(b.info.ID) >= 0
			if _, newer := b.lead[s.p]; s.delete && back || newer && !s.delete {
				continue
			}
			b.stop[s.p] = b.stop[s.p] || s.delete
		}
	}
}

// hold keeps the broker's next request back for a while.
func (c *Controller) hold(b *broker, d time.Duration) {
	b.held = true
	c.emit(ArmTimer{Timer: Timer{Kind: TimerResend, Broker: b.info.ID}, At: c.now.Add(d)})
}

func (c *Controller) resendDue(id cluster.BrokerID) {
	b := c.brokers[id]
	if b == nil {
		return
	}
	b.held = false
	for p := range b.later {
		b.lead[p] = struct{}{}
	}
	clear(b.later)
	c.pump(b)
}

func backoff(lo, hi time.Duration, attempt int) time.Duration {
	return min(lo<<min(attempt-1, 10), hi)
}

// verifyEpoch: a broker says that a newer controller exists. If so, the fence fails and the term ends.
func (c *Controller) verifyEpoch(done func()) {
	c.zk([]zkop.Request{znode.Fenced(c.epochVersion)}, func(got []zkop.Response) {
		if fenceFailed(&got[0]) {
			c.resign("fenced: a broker knows a newer controller")
			return
		}
		done()
	})
}

// sorted returns the keys of a partition set in order of topic and number.
func sorted[V any](set map[*partition]V) []*partition {
	out := make([]*partition, 0, len(set))
	for p := range set {
		out = append(out, p)
	}
	slices.SortFunc(out, comparePartitions)
	return out
}
