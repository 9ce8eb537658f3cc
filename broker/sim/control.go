package sim

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/zkutil/cluster"
)

// control handles a request of a controller, as the broker's handlers do.
func (n *node) control(req kmsg.Request) kmsg.Response {
	switch r := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		return n.leaderAndISR(r)
	case *kmsg.StopReplicaRequest:
		return n.stopReplica(r)
	case *kmsg.UpdateMetadataRequest:
		return n.updateMetadata(r)
	}
	n.sim.fail("controller sent %T", req)
	return req.ResponseKind()
}

// stale checks the epochs of a control request: one from an older controller, or one meant for an earlier
// registration of this broker, is refused (KIP-380).
func (n *node) stale(controllerEpoch int32, brokerEpoch int64) int16 {
	switch {
	case cluster.BrokerEpoch(brokerEpoch) < n.brokerEpoch || !n.registered:
		return kerr.StaleBrokerEpoch.Code
	case cluster.ControllerEpoch(controllerEpoch) < n.controllerEpoch:
		return kerr.StaleControllerEpoch.Code
	}
	n.sim.check.controlAccepted(n, cluster.BrokerEpoch(brokerEpoch))
	n.controllerEpoch = cluster.ControllerEpoch(controllerEpoch)
	return 0
}

func (n *node) leaderAndISR(r *kmsg.LeaderAndISRRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.LeaderAndISRResponse)
	if resp.ErrorCode = n.stale(r.ControllerEpoch, r.BrokerEpoch); resp.ErrorCode != 0 {
		return resp
	}
	if r.Type == fullLeaderAndISR {
		n.dropStrays(r)
	}
	for _, t := range r.TopicStates {
		answer := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
		for _, st := range t.PartitionStates {
			if !n.up { // the disk failed on the way
				return resp
			}
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: st.Partition}
			n.sim.trace.line("  %s leader %d epoch %d isr %v zkv %d", tp, st.Leader, st.LeaderEpoch, st.ISR, st.ZKVersion)
			code := n.decide(tp, replica.LeaderAndISR{
				At:              n.sim.now,
				ControllerEpoch: cluster.ControllerEpoch(st.ControllerEpoch),
				Leader:          cluster.BrokerID(st.Leader),
				LeaderEpoch:     cluster.LeaderEpoch(st.LeaderEpoch),
				ISR:             cluster.IDsFromInt32(st.ISR),
				ZKVersion:       cluster.ZKVersion(st.ZKVersion),
				Replicas:        cluster.IDsFromInt32(st.Replicas),
				Adding:          cluster.IDsFromInt32(st.AddingReplicas),
				Removing:        cluster.IDsFromInt32(st.RemovingReplicas),
				IsNew:           st.IsNew,
				TopicID:         t.TopicID,
			})
			answer.Partitions = append(answer.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Topic: t.Topic, Partition: st.Partition, ErrorCode: code})
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp
}

// decide applies one decision, unless it comes behind the deletion of its replica.
func (n *node) decide(tp cluster.TopicPartition, ev replica.LeaderAndISR) int16 {
	if n.graves.Late(tp, ev) {
		n.sim.report.Late++
		return int16(replica.CodeStaleControllerEpoch)
	}
	return n.part(tp).stepAnswer(ev)
}

// fullLeaderAndISR marks a request that names every partition of the broker.
const fullLeaderAndISR = 2

// dropStrays puts the logs aside that a complete request does not name, as the replica manager does.
func (n *node) dropStrays(r *kmsg.LeaderAndISRRequest) {
	named := map[cluster.TopicPartition]cluster.TopicID{}
	for _, t := range r.TopicStates {
		for _, st := range t.PartitionStates {
			named[cluster.TopicPartition{Topic: t.Topic, Partition: st.Partition}] = t.TopicID
		}
	}
	for _, log := range n.store.Logs() {
		tp, has := log.TopicPartition(), log.TopicID()
		if id, ok := named[tp]; ok && (id.IsZero() || has.IsZero() || id == has) {
			continue
		}
		n.sim.trace.line("  stray %s", tp)
		if p := n.parts[tp]; p != nil {
			ev := replica.StopReplica{At: n.sim.now, LeaderEpoch: cluster.EpochDuringDelete}
			p.stepAnswer(ev)
			n.graves.Bury(tp, p.core, ev)
			n.forget(p)
			n.sim.check.logDeleted(p)
		}
		if !n.up {
			return
		}
		if err := n.store.Stray(tp); err != nil {
			n.diskFailed(err)
			return
		}
	}
}

func (n *node) stopReplica(r *kmsg.StopReplicaRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.StopReplicaResponse)
	if resp.ErrorCode = n.stale(r.ControllerEpoch, r.BrokerEpoch); resp.ErrorCode != 0 {
		return resp
	}
	for _, t := range r.Topics {
		for _, st := range t.PartitionStates {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: st.Partition}
			code := n.stopOne(tp, st)
			resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: st.Partition, ErrorCode: code})
		}
	}
	return resp
}

func (n *node) stopOne(tp cluster.TopicPartition, st kmsg.StopReplicaRequestTopicPartitionState) int16 {
	n.sim.trace.line("  stop %s epoch %d delete %v", tp, st.LeaderEpoch, st.Delete)
	if n.parts[tp] == nil && !st.Delete {
		return 0
	}
	p := n.part(tp)
	ev := replica.StopReplica{At: n.sim.now, LeaderEpoch: cluster.LeaderEpoch(st.LeaderEpoch), Delete: st.Delete}
	code := p.stepAnswer(ev)
	if code == 0 && st.Delete && n.up {
		n.graves.Bury(tp, p.core, ev)
		n.forget(p)
	}
	return code
}

func (n *node) updateMetadata(r *kmsg.UpdateMetadataRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.UpdateMetadataResponse)
	if resp.ErrorCode = n.stale(r.ControllerEpoch, r.BrokerEpoch); resp.ErrorCode != 0 {
		return resp
	}
	n.alive = map[cluster.BrokerID]bool{}
	for _, b := range r.LiveBrokers {
		n.alive[cluster.BrokerID(b.ID)] = true
	}
	for _, t := range r.TopicStates {
		for _, st := range t.PartitionStates {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: st.Partition}
			if cluster.BrokerID(st.Leader) == cluster.LeaderDuringDelete {
				delete(n.leaders, tp)
				continue
			}
			n.leaders[tp] = metaEntry{cluster.BrokerID(st.Leader), cluster.LeaderEpoch(st.LeaderEpoch)}
		}
	}
	return resp
}
