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
		m.noteTopicID(t.Topic, cluster.TopicID(t.TopicID))
		for j := range t.PartitionStates {
			add(t.Topic, cluster.TopicID(t.TopicID), &t.PartitionStates[j])
		}
	}
	return leaders, followers
}

func (m *Manager) applyAll(ds []*decision) {
	if len(ds) < 2*controlWorkers {
		for _, d := range ds {
			m.apply(d)
		}
		return
	}
	// Several decisions for one partition are not legal in one request; if they come, they still must not
	// run into each other.
	work := make([][]*decision, controlWorkers)
	seen := make(map[cluster.TopicPartition]int, len(ds))
	for i, d := range ds {
		w, ok := seen[d.tp]
		if !ok {
			w = i % controlWorkers
			seen[d.tp] = w
		}
		work[w] = append(work[w], d)
	}
	var wg sync.WaitGroup
	for _, share := range work {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, d := range share {
				m.apply(d)
			}
		}()
	}
	wg.Wait()
}

func (m *Manager) apply(d *decision) {
	d.p, d.made = m.obtain(d.tp)
	var a after
	d.p.mu.Lock()
	d.p.step(d.ev, &a)
	if d.p.topicID.IsZero() && a.answer == replica.CodeNone {
		d.p.topicID = d.ev.TopicID
	}
	opened := d.p.core.LogOpen()
	if d.made && !opened && d.p.core.Role() == replica.None {
		d.p.dead = true // refused: nothing of it stays
		m.remove(d.p)
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
	for _, s := range stops(req) {
		p := kmsg.NewStopReplicaResponsePartition()
		p.Topic, p.Partition = s.tp.Topic, s.tp.Partition
		p.ErrorCode = int16(m.stopReplica(s))
		resp.Partitions = append(resp.Partitions, p)
	}
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
			out = append(out, stop{cluster.TopicPartition{Topic: t.Topic, Partition: t.Partition}, cluster.NoLeaderEpoch, req.DeletePartitions})
		case req.Version <= 2:
			for _, n := range t.Partitions {
				out = append(out, stop{cluster.TopicPartition{Topic: t.Topic, Partition: n}, cluster.NoLeaderEpoch, req.DeletePartitions})
			}
		default:
			for _, s := range t.PartitionStates {
				out = append(out, stop{cluster.TopicPartition{Topic: t.Topic, Partition: s.Partition}, cluster.LeaderEpoch(s.LeaderEpoch), s.Delete})
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
	p.step(replica.StopReplica{At: m.opts.Now(), LeaderEpoch: s.epoch, Delete: s.del}, &a)
	if s.del && a.answer == replica.CodeNone {
		p.dead = true
		m.remove(p)
	}
	p.wakeAll()
	p.mu.Unlock()
	a.run()
	return a.answer
}
