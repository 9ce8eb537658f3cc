package replicashell

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/zkutil/cluster"
)

// controlWorkers is how many partitions of one LeaderAndISR are applied at the same time: opening a log is
// disk work, and ten thousand of them must not be opened one after the other.
const controlWorkers = 8

// fullLeaderAndISR marks a LeaderAndISR that names every partition of the receiver: the first one a controller
// sends to a broker. It is V3's INIT flag (points 2.8, C.5).
const fullLeaderAndISR int8 = 2

// decision is one partition of a LeaderAndISR request.
type decision struct {
	tp   cluster.TopicPartition
	ev   replica.LeaderAndISR
	p    *partition
	made bool
	code replica.Code
}

// HandleLeaderAndISR applies the controller's decisions. A request of an older controller is refused as a
// whole with STALE_CONTROLLER_EPOCH, one that was meant for an earlier registration of this broker with
// STALE_BROKER_EPOCH (KIP-380). It returns when every decision is in force.
func (m *Manager) HandleLeaderAndISR(ctx context.Context, req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
	m.control.Lock()
	defer m.control.Unlock()
	if code := m.checkController(req.BrokerEpoch, req.ControllerEpoch); code != 0 {
		resp.ErrorCode = code
		return resp
	}
	for _, l := range req.LiveLeaders {
		m.setBrokerAddr(cluster.BrokerID(l.BrokerID), l.Host, l.Port)
	}
	leaders, followers := m.decisions(req)
	if req.Version >= 5 && req.Type == fullLeaderAndISR {
		m.dropStrays(leaders, followers)
	}
	m.applyAll(leaders)
	m.applyAll(followers)
	m.hwDirty.Store(true)
	if len(leaders)+len(followers) > 0 {
		m.hurry()
	}
	m.log.LogAttrs(ctx, slog.LevelInfo, "LeaderAndISR applied", slog.Int(obs.KeyControllerEpoch, int(req.ControllerEpoch)),
		slog.Int("leaders", len(leaders)), slog.Int("followers", len(followers)))
	answerDecisions(req, resp, leaders, followers)
	return resp
}

// checkController is called under m.control.
func (m *Manager) checkController(brokerEpoch int64, controllerEpoch int32) int16 {
	if mine := int64(m.opts.BrokerEpoch()); brokerEpoch >= 0 && brokerEpoch < mine {
		return kerr.StaleBrokerEpoch.Code
	}
	if cluster.ControllerEpoch(controllerEpoch) < m.controllerEpoch {
		return kerr.StaleControllerEpoch.Code
	}
	m.controllerEpoch = cluster.ControllerEpoch(controllerEpoch)
	return 0
}

// decisions splits the request: those that make this broker leader come first, as in Kafka.
func (m *Manager) decisions(req *kmsg.LeaderAndISRRequest) (leaders, followers []*decision) {
	now := m.opts.Now()
	add := func(topic string, id cluster.TopicID, s *kmsg.LeaderAndISRRequestTopicPartition) {
		d := &decision{tp: cluster.TopicPartition{Topic: topic, Partition: s.Partition}, ev: replica.LeaderAndISR{
			At: now, ControllerEpoch: cluster.ControllerEpoch(s.ControllerEpoch), Leader: cluster.BrokerID(s.Leader),
			LeaderEpoch: cluster.LeaderEpoch(s.LeaderEpoch), ISR: cluster.IDsFromInt32(s.ISR),
			ZKVersion: cluster.ZKVersion(s.ZKVersion), Replicas: cluster.IDsFromInt32(s.Replicas),
			Adding: cluster.IDsFromInt32(s.AddingReplicas), Removing: cluster.IDsFromInt32(s.RemovingReplicas),
			IsNew: s.IsNew, TopicID: id}}
		if d.ev.Leader == m.opts.BrokerID {
			leaders = append(leaders, d)
		} else {
			followers = append(followers, d)
		}
	}
	for i := range req.PartitionStates { // v0-1
		add(req.PartitionStates[i].Topic, cluster.TopicID{}, &req.PartitionStates[i])
	}
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		for j := range t.PartitionStates {
			add(t.Topic, cluster.TopicID(t.TopicID), &t.PartitionStates[j])
		}
	}
	return leaders, followers
}

// dropStrays puts aside every log that a complete request does not name, or names with another topic id: the
// topic was deleted, or deleted and made anew, while this broker was away (V3 points C.5, E.4). The log is kept
// as <tp>.<uuid>-stray until an operator removes it.
func (m *Manager) dropStrays(groups ...[]*decision) {
	named := map[cluster.TopicPartition]cluster.TopicID{}
	for _, ds := range groups {
		for _, d := range ds {
			named[d.tp] = d.ev.TopicID
		}
	}
	for _, log := range m.storage.Logs() {
		tp, has := log.TopicPartition(), log.TopicID()
		id, ok := named[tp]
		if ok && (id.IsZero() || has.IsZero() || id == has) {
			continue
		}
		m.log.LogAttrs(context.Background(), slog.LevelWarn, "log is not assigned to this broker any more: put aside",
			slog.String(obs.KeyTopicPartition, tp.String()))
		if err := m.putAside(tp); err != nil {
			m.log.LogAttrs(context.Background(), slog.LevelError, "log could not be put aside",
				slog.String(obs.KeyTopicPartition, tp.String()), obs.Err(err))
		}
	}
}

func (m *Manager) putAside(tp cluster.TopicPartition) error {
	if p := m.partition(tp); p != nil {
		var a after
		p.mu.Lock()
		ev := replica.StopReplica{At: m.opts.Now(), LeaderEpoch: cluster.EpochDuringDelete}
		p.step(ev, &a)
		m.bury(p, ev)
		p.mu.Unlock()
		a.run()
	}
	return m.storage.Stray(tp)
}

// bury retires a replica and remembers by which decision, so that an older one that comes late makes no empty one. p.mu is held.
func (m *Manager) bury(p *partition, ev replica.StopReplica) {
	m.gravesMu.Lock()
	m.graves.Bury(p.tp, p.core, ev)
	m.gravesMu.Unlock()
	m.retire(p)
}

// retire takes a partition out of the table for good. p.mu is held.
func (m *Manager) retire(p *partition) {
	p.dead = true
	m.remove(p)
	p.wakeAll()
	p.followerMoved()
}

func (m *Manager) applyAll(ds []*decision) {
	spread(ds, func(d *decision) cluster.TopicPartition { return d.tp }, m.apply)
}

// spread calls f for each item, several at a time when there are many. Several items of one partition are not
// legal in one request; if they come, they still must not run into each other.
func spread[T any](items []T, tp func(T) cluster.TopicPartition, f func(T)) {
	if len(items) < 2*controlWorkers {
		for _, it := range items {
			f(it)
		}
		return
	}
	work := make([][]T, controlWorkers)
	seen := make(map[cluster.TopicPartition]int, len(items))
	for i, it := range items {
		w, ok := seen[tp(it)]
		if !ok {
			w = i % controlWorkers
			seen[tp(it)] = w
		}
		work[w] = append(work[w], it)
	}
	var wg sync.WaitGroup
	for _, share := range work {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, it := range share {
				f(it)
			}
		}()
	}
	wg.Wait()
}

func (m *Manager) apply(d *decision) {
	m.gravesMu.Lock()
	late := m.graves.Late(d.tp, d.ev)
	m.gravesMu.Unlock()
	if late {
		d.code = replica.CodeStaleControllerEpoch
		return
	}
	d.p, d.made = m.obtain(d.tp)
	var a after
	d.p.mu.Lock()
	d.p.step(d.ev, &a)
	if a.answer == replica.CodeNone && d.p.topicID != d.ev.TopicID && d.p.topicID.IsZero() {
		d.p.topicID = d.ev.TopicID
		m.holdTopicID(d.tp.Topic, d.ev.TopicID)
	}
	if d.made && !d.p.core.LogOpen() && d.p.core.Role() == replica.None {
		m.retire(d.p) // refused: nothing of it stays
	}
	d.p.mu.Unlock()
	a.run()
	d.code = a.answer
}

func answerDecisions(req *kmsg.LeaderAndISRRequest, resp *kmsg.LeaderAndISRResponse, groups ...[]*decision) {
	part := func(d *decision) kmsg.LeaderAndISRResponseTopicPartition {
		p := kmsg.NewLeaderAndISRResponseTopicPartition()
		p.Topic, p.Partition, p.ErrorCode = d.tp.Topic, d.tp.Partition, int16(d.code)
		return p
	}
	topics := map[cluster.TopicID]int{}
	for _, ds := range groups {
		for _, d := range ds {
			if req.Version < 5 {
				resp.Partitions = append(resp.Partitions, part(d))
				continue
			}
			i, ok := topics[d.ev.TopicID]
			if !ok {
				i = len(resp.Topics)
				topics[d.ev.TopicID] = i
				t := kmsg.NewLeaderAndISRResponseTopic()
				t.TopicID = d.ev.TopicID
				resp.Topics = append(resp.Topics, t)
			}
			resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, part(d))
		}
	}
}

// hurry answers parked follower fetches now and keeps later ones short for a while, so that followers of the
// partitions that were just decided come for them at once instead of at the end of a long poll.
func (m *Manager) hurry() {
	m.fastUntil.Store(m.opts.Now().Add(fastPeriod).UnixNano())
	m.sessions.Replicas(func(s *session.Session) { s.Nudge() })
}

// hurried reports whether a leadership change was lately.
func (m *Manager) hurried(now time.Time) bool { return now.UnixNano() < m.fastUntil.Load() }

// stop is one partition of a StopReplica request.
type stop struct {
	tp    cluster.TopicPartition
	epoch cluster.LeaderEpoch
	del   bool

	answer *kmsg.StopReplicaResponsePartition // where its outcome goes
}

// HandleStopReplica stops, and where asked deletes, replicas. Stale requests are refused like those of
// HandleLeaderAndISR; a partition whose leader epoch is above the request's answers FENCED_LEADER_EPOCH.
func (m *Manager) HandleStopReplica(ctx context.Context, req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
	m.control.Lock()
	defer m.control.Unlock()
	if code := m.checkController(req.BrokerEpoch, req.ControllerEpoch); code != 0 {
		resp.ErrorCode = code
		return resp
	}
	stops := stops(req)
	resp.Partitions = make([]kmsg.StopReplicaResponsePartition, len(stops))
	for i := range stops {
		stops[i].answer = &resp.Partitions[i]
	}
	spread(stops, func(s stop) cluster.TopicPartition { return s.tp }, func(s stop) {
		s.answer.Default()
		s.answer.Topic, s.answer.Partition = s.tp.Topic, s.tp.Partition
		s.answer.ErrorCode = int16(m.stopReplica(s))
	})
	m.log.LogAttrs(ctx, slog.LevelInfo, "StopReplica applied", slog.Int(obs.KeyControllerEpoch, int(req.ControllerEpoch)),
		slog.Int(obs.KeyCount, len(resp.Partitions)))
	return resp
}

func stops(req *kmsg.StopReplicaRequest) []stop {
	var out []stop
	for i := range req.Topics {
		t := &req.Topics[i]
		switch {
		case req.Version == 0:
			out = append(out, stop{tp: cluster.TopicPartition{Topic: t.Topic, Partition: t.Partition}, epoch: cluster.NoLeaderEpoch, del: req.DeletePartitions})
		case req.Version <= 2:
			for _, n := range t.Partitions {
				out = append(out, stop{tp: cluster.TopicPartition{Topic: t.Topic, Partition: n}, epoch: cluster.NoLeaderEpoch, del: req.DeletePartitions})
			}
		default:
			for _, s := range t.PartitionStates {
				out = append(out, stop{tp: cluster.TopicPartition{Topic: t.Topic, Partition: s.Partition}, epoch: cluster.LeaderEpoch(s.LeaderEpoch), del: s.Delete})
			}
		}
	}
	return out
}

func (m *Manager) stopReplica(s stop) replica.Code {
	p := m.partition(s.tp)
	if p == nil {
		if !s.del {
			return replica.CodeNone
		}
		// A log of a partition that we were never told about, from before a restart: it goes too.
		if err := m.storage.Delete(s.tp); err != nil {
			m.log.LogAttrs(context.Background(), slog.LevelError, "delete of log failed",
				slog.String(obs.KeyTopicPartition, s.tp.String()), obs.Err(err))
			return replica.CodeKafkaStorageError
		}
		return replica.CodeNone
	}
	var a after
	p.mu.Lock()
	ev := replica.StopReplica{At: m.opts.Now(), LeaderEpoch: s.epoch, Delete: s.del}
	p.step(ev, &a)
	if s.del && a.answer == replica.CodeNone {
		m.bury(p, ev)
	}
	p.mu.Unlock()
	a.run()
	return a.answer
}
