package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// NewPartitions assigns the partitions that a topic gets when it grows to count: as many replicas as its first
// partition has, on live brokers only. Each replica goes to the broker with the fewest replicas of this topic, its
// first one to the broker with the fewest leaders of it, and racks are not repeated while another one is free.
func NewPartitions(t *model.Topic, brokers []model.Broker, count int32) ([][]cluster.BrokerID, error) {
	have := int32(len(t.Partitions))
	switch {
	case have == 0:
		return nil, fmt.Errorf("topic %s has no partitions", t.Name)
	case count < have:
		return nil, fmt.Errorf("topic %s has %d partitions: partitions cannot be removed", t.Name, have)
	case count > PartitionsMax:
		return nil, fmt.Errorf("--partitions %d is above %d", count, PartitionsMax)
	}
	live := slices.DeleteFunc(slices.Clone(brokers), func(b model.Broker) bool { return !b.Live })
	rf := len(t.Partitions[0].Replicas) - len(t.Partitions[0].Adding)
	if rf > len(live) {
		return nil, fmt.Errorf("topic %s has %d replicas of each partition, but only %d brokers are registered", t.Name, rf, len(live))
	}
	p := spread{brokers: live, replicas: map[cluster.BrokerID]int{}, leaders: map[cluster.BrokerID]int{}}
	for i := range t.Partitions {
		for j, id := range t.Partitions[i].Replicas {
			p.take(id, j == 0)
		}
	}
	out := make([][]cluster.BrokerID, 0, count-have)
	for range count - have {
		out = append(out, p.next(rf))
	}
	return out, nil
}

// spread counts what each broker has of one topic.
type spread struct {
	brokers           []model.Broker
	replicas, leaders map[cluster.BrokerID]int
}

func (p *spread) take(id cluster.BrokerID, leads bool) {
	p.replicas[id]++
	if leads {
		p.leaders[id]++
	}
}

func (p *spread) next(rf int) []cluster.BrokerID {
	var out []cluster.BrokerID
	racks := map[string]bool{}
	for range rf {
		best := -1
		for i := range p.brokers {
			b := &p.brokers[i]
			if !slices.Contains(out, b.ID) && (best < 0 || p.better(b, &p.brokers[best], racks, len(out) == 0)) {
				best = i
			}
		}
		b := &p.brokers[best]
		p.take(b.ID, len(out) == 0)
		racks[b.Rack] = true
		out = append(out, b.ID)
	}
	return out
}

func (p *spread) better(a, b *model.Broker, racks map[string]bool, leads bool) bool {
	used := func(m *model.Broker) int {
		if m.Rack != "" && racks[m.Rack] {
			return 1
		}
		return 0
	}
	first := 0
	if leads {
		first = cmp.Compare(p.leaders[a.ID], p.leaders[b.ID])
	}
	return cmp.Or(cmp.Compare(used(a), used(b)), first, cmp.Compare(p.replicas[a.ID], p.replicas[b.ID]), cmp.Compare(p.leaders[a.ID], p.leaders[b.ID]), cmp.Compare(a.ID, b.ID)) < 0
}

// CheckNewAssignment refuses an assignment of new partitions that does not fit the topic.
func CheckNewAssignment(t *model.Topic, brokers []model.Broker, a [][]cluster.BrokerID) error {
	if len(t.Partitions) == 0 {
		return errors.New("the topic has no partitions")
	}
	rf := len(t.Partitions[0].Replicas)
	for i, replicas := range a {
		n := len(t.Partitions) + i
		if len(replicas) != rf {
			return fmt.Errorf("new partition %d has %d replicas, the topic has %d", n, len(replicas), rf)
		}
		for _, id := range replicas {
			if !slices.ContainsFunc(brokers, func(b model.Broker) bool { return b.ID == id && b.Live }) {
				return fmt.Errorf("new partition %d: broker %d is not registered", n, id)
			}
		}
	}
	return nil
}
