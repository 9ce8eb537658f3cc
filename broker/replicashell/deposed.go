package replicashell

import (
	"context"
	"log/slog"

	"kctl/broker/obs"
	"kctl/broker/replica"
	"kctl/zkutil/cluster"
)

// Deposed ends the leadership of a partition whose leader was elected anew at a later epoch, as other brokers
// tell while this one is cut off from ZooKeeper and so from its controller. The controller's next decision, of
// that epoch or later, gives the partition its new role. It reports whether this broker led until now.
func (m *Manager) Deposed(tp cluster.TopicPartition, elected cluster.LeaderEpoch) bool {
	m.control.Lock()
	defer m.control.Unlock()
	p := m.partition(tp)
	if p == nil {
		return false
	}
	var a after
	p.mu.Lock()
	own := p.core.LeaderEpoch()
	deposed := p.core.Role() == replica.Leader && own < elected
	if deposed {
		// Stopped at its own epoch: a decision of that epoch cannot bring it back, a later one can.
		p.step(replica.StopReplica{At: m.opts.Now(), LeaderEpoch: own}, &a)
	}
	p.mu.Unlock()
	a.run()
	if deposed {
		m.log.LogAttrs(context.Background(), slog.LevelWarn, "other brokers have a later leader: leadership is over",
			slog.String(obs.KeyTopicPartition, tp.String()), slog.Int(obs.KeyLeaderEpoch, int(own)), slog.Int("elected_epoch", int(elected)))
	}
	return deposed
}
