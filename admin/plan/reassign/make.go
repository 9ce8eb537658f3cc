package reassign

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"kctl/zkutil/cluster"
)

// Make plans. The same input gives the same plan, a cluster that meets the goal gives an empty one. It is an error
// when the goal cannot be met: fewer allowed brokers than replicas, or brokers in To that are not live.
func Make(brokers []Broker, parts []Partition, g Goal) (*Plan, error) {
	pl := &planner{goal: g, slot: map[cluster.BrokerID]int{}, topics: map[string]int{}}
	if err := pl.allow(brokers); err != nil {
		return nil, err
	}
	pl.load(parts)
	if !g.LeadersOnly {
		if err := pl.place(); err != nil {
			return nil, err
		}
		if g.Racks {
			pl.fixRacks()
		}
		if g.Balance {
			pl.balance()
		}
	}
	pl.lead(func(w *work) bool { return g.Leaders || g.LeadersOnly || w.headMoved })
	return pl.result(brokers), nil
}

// work is one partition while it is planned.
type work struct {
	*Partition
	topic     int                // index of the topic
	list      []cluster.BrokerID // the replicas as planned
	headMoved bool               // the first replica was put elsewhere
}

type planner struct {
	goal   Goal
	ids    []cluster.BrokerID       // allowed brokers by id; slots below are indices of this
	slot   map[cluster.BrokerID]int // of allowed brokers
	rack   []int                    // by slot; nil: racks do not count
	racks  []int                    // number of allowed brokers by rack
	parts  []*work                  // sorted by topic and partition
	topics map[string]int

	replicas []int   // planned replicas of the selected partitions, by slot
	all      []int   // of all partitions
	byTopic  [][]int // by topic and slot
	leaders  []int   // planned preferred leaders of the selected partitions
	warnings []string
}

// allow finds the brokers that may hold replicas.
func (pl *planner) allow(brokers []Broker) error {
	live := map[cluster.BrokerID]bool{}
	var all []cluster.BrokerID
	for _, b := range brokers {
		if b.Live {
			live[b.ID] = true
			all = append(all, b.ID)
		}
	}
	slices.Sort(all)
	for _, id := range pl.goal.To {
		if !live[id] {
			return fmt.Errorf("broker %d is not live; live are %s", id, idList(all))
		}
	}
	for _, id := range pl.goal.Drain {
		if !slices.ContainsFunc(brokers, func(b Broker) bool { return b.ID == id }) {
			return fmt.Errorf("broker %d does not exist; live are %s", id, idList(all))
		}
	}
	for _, id := range all {
		if (len(pl.goal.To) == 0 || slices.Contains(pl.goal.To, id)) && !slices.Contains(pl.goal.Drain, id) {
			pl.slot[id] = len(pl.ids)
			pl.ids = append(pl.ids, id)
		}
	}
	if len(pl.ids) == 0 {
		return errors.New("no broker is left that may hold replicas")
	}
	pl.findRacks(brokers)
	n := len(pl.ids)
	pl.replicas, pl.all, pl.leaders = make([]int, n), make([]int, n), make([]int, n)
	return nil
}

// findRacks numbers the racks. As in Kafka they count only when every broker has one.
func (pl *planner) findRacks(brokers []Broker) {
	if pl.goal.IgnoreRacks {
		return
	}
	number := map[string]int{}
	rack := make([]int, len(pl.ids))
	var size []int
	for slot, id := range pl.ids {
		i := slices.IndexFunc(brokers, func(b Broker) bool { return b.ID == id })
		name := brokers[i].Rack
		if name == "" {
			if len(number) > 0 || slices.ContainsFunc(brokers, func(b Broker) bool { return b.Live && b.Rack != "" }) {
				pl.warnings = append(pl.warnings, fmt.Sprintf("broker %d has no rack and others have: racks do not count", id))
			}
			return
		}
		if _, ok := number[name]; !ok {
			number[name] = len(size)
			size = append(size, 0)
		}
		rack[slot] = number[name]
		size[number[name]]++
	}
	pl.rack, pl.racks = rack, size
}

func (pl *planner) load(parts []Partition) {
	pl.parts = make([]*work, len(parts))
	for i := range parts {
		p := &parts[i]
		w := &work{Partition: p, list: slices.Clone(p.Replicas)}
		t, ok := pl.topics[p.Topic]
		if !ok {
			t = len(pl.topics)
			pl.topics[p.Topic] = t
			pl.byTopic = append(pl.byTopic, make([]int, len(pl.ids)))
		}
		w.topic = t
		pl.parts[i] = w
	}
	slices.SortFunc(pl.parts, func(a, b *work) int { return a.TP().Compare(b.TP()) })
	for _, w := range pl.parts {
		for k, id := range w.list {
			if s, ok := pl.slot[id]; ok {
				pl.count(w, s, 1)
				if k == 0 && !w.Fixed {
					pl.leaders[s]++
				}
			}
		}
	}
}

// count adds a replica of w to the load of a slot, or takes it away.
func (pl *planner) count(w *work, slot, by int) {
	pl.all[slot] += by
	pl.byTopic[w.topic][slot] += by
	if !w.Fixed {
		pl.replicas[slot] += by
	}
}

// put sets position k of the list.
func (pl *planner) put(w *work, k int, to cluster.BrokerID) {
	if s, ok := pl.slot[w.list[k]]; ok {
		pl.count(w, s, -1)
		if k == 0 {
			pl.leaders[s]--
		}
	}
	w.list[k] = to
	s := pl.slot[to]
	pl.count(w, s, 1)
	if k == 0 {
		pl.leaders[s]++
		w.headMoved = true
	}
}

// drop removes position k.
func (pl *planner) drop(w *work, k int) {
	if s, ok := pl.slot[w.list[k]]; ok {
		pl.count(w, s, -1)
		if k == 0 {
			pl.leaders[s]--
		}
	}
	w.list = slices.Delete(w.list, k, k+1)
	if k == 0 && len(w.list) > 0 {
		if s, ok := pl.slot[w.list[0]]; ok {
			pl.leaders[s]++
		}
	}
}

// crowding counts pairs of replicas that share a rack, leaving out position skip (-1: none) and adding a broker
// (cluster.NoLeader: none). The fewer, the better they are spread.
func (pl *planner) crowding(list []cluster.BrokerID, skip int, add cluster.BrokerID) int {
	if pl.rack == nil {
		return 0
	}
	var seen [16]int
	counts := seen[:0]
	if len(pl.racks) > len(seen) {
		counts = make([]int, 0, len(pl.racks))
	}
	counts = counts[:len(pl.racks)]
	pairs := 0
	take := func(id cluster.BrokerID) {
		if s, ok := pl.slot[id]; ok {
			pairs += counts[pl.rack[s]]
			counts[pl.rack[s]]++
		}
	}
	for k, id := range list {
		if k != skip {
			take(id)
		}
	}
	if add >= 0 {
		take(add)
	}
	return pairs
}

// leastCrowding is the smallest possible crowding of n replicas: each goes to the emptiest rack with a free broker.
func (pl *planner) leastCrowding(n int) int {
	used := make([]int, len(pl.racks))
	pairs := 0
	for range n {
		best := -1
		for r := range used {
			if used[r] < pl.racks[r] && (best < 0 || used[r] < used[best]) {
				best = r
			}
		}
		if best < 0 {
			break
		}
		pairs += used[best]
		used[best]++
	}
	return pairs
}

// place brings every list to its length on allowed brokers.
func (pl *planner) place() error {
	for _, w := range pl.parts {
		if w.Fixed {
			continue
		}
		want := len(w.list)
		if pl.goal.ReplicationFactor > 0 {
			want = pl.goal.ReplicationFactor
		}
		if want > len(pl.ids) {
			return fmt.Errorf("%s is to have %d replicas, but only %d brokers may hold them: %s", Name(w.TP()), want, len(pl.ids), idList(pl.ids))
		}
		for len(w.list) > want {
			pl.drop(w, pl.leastUseful(w))
		}
	}
	for _, w := range pl.parts {
		if w.Fixed {
			continue
		}
		for k, id := range w.list {
			if _, ok := pl.slot[id]; !ok {
				pl.put(w, k, pl.best(w, k))
			}
		}
		for len(w.list) < pl.goal.ReplicationFactor {
			w.list = append(w.list, cluster.NoLeader)
			pl.put(w, len(w.list)-1, pl.best(w, len(w.list)-1))
		}
	}
	return nil
}

// leastUseful is the position to give up first: a broker that is not allowed, then what leaves the racks spread best,
// then a follower, then the fullest broker, then the last.
func (pl *planner) leastUseful(w *work) int {
	type rank struct{ allowed, crowding, head, room, place int }
	of := func(k int) rank {
		s, ok := pl.slot[w.list[k]]
		if !ok {
			return rank{0, 0, 0, 0, -k}
		}
		head := 0
		if k == 0 {
			head = 1
		}
		return rank{1, pl.crowding(w.list, k, cluster.NoLeader), head, -pl.replicas[s], -k}
	}
	best, at := of(0), 0
	for k := 1; k < len(w.list); k++ {
		r := of(k)
		if cmp.Or(cmp.Compare(r.allowed, best.allowed), cmp.Compare(r.crowding, best.crowding), cmp.Compare(r.head, best.head),
			cmp.Compare(r.room, best.room), cmp.Compare(r.place, best.place)) < 0 {
			best, at = r, k
		}
	}
	return at
}

// best is the allowed broker to put at position k: spread over racks, then the fewest replicas of the selected
// partitions, of the topic and in all, then the lowest id. There is always one: lists are shorter than the brokers.
func (pl *planner) best(w *work, k int) cluster.BrokerID {
	at, crowd := -1, 0
	for s, id := range pl.ids {
		if slices.Contains(w.list, id) {
			continue
		}
		c := pl.crowding(w.list, k, id)
		if at < 0 || cmp.Or(cmp.Compare(c, crowd), cmp.Compare(pl.replicas[s], pl.replicas[at]),
			cmp.Compare(pl.byTopic[w.topic][s], pl.byTopic[w.topic][at]), cmp.Compare(pl.all[s], pl.all[at])) < 0 {
			at, crowd = s, c
		}
	}
	return pl.ids[at]
}

// fixRacks moves replicas out of crowded racks until each partition is spread as well as possible.
func (pl *planner) fixRacks() {
	if pl.rack == nil {
		return
	}
	for _, w := range pl.parts {
		if w.Fixed {
			continue
		}
		least := pl.leastCrowding(len(w.list))
		for pl.crowding(w.list, -1, cluster.NoLeader) > least {
			k, to := pl.uncrowd(w)
			if k < 0 {
				break
			}
			pl.put(w, k, to)
		}
	}
}

// uncrowd is the move that spreads w best: a follower rather than the first, off the fullest broker.
func (pl *planner) uncrowd(w *work) (int, cluster.BrokerID) {
	at, to, crowd := -1, cluster.NoLeader, pl.crowding(w.list, -1, cluster.NoLeader)
	room := 0
	for k := len(w.list) - 1; k >= 0; k-- {
		b := pl.best(w, k)
		c := pl.crowding(w.list, k, b)
		full := pl.replicas[pl.slot[w.list[k]]]
		if k == 0 {
			full = -1
		}
		if c < crowd || c == crowd && at >= 0 && full > room {
			at, to, crowd, room = k, b, c, full
		}
	}
	return at, to
}

func (pl *planner) result(brokers []Broker) *Plan {
	out := &Plan{Warnings: pl.warnings}
	loads := map[cluster.BrokerID]*Load{}
	of := func(id cluster.BrokerID) *Load {
		if loads[id] == nil {
			_, ok := pl.slot[id]
			loads[id] = &Load{Broker: id, Allowed: ok}
		}
		return loads[id]
	}
	for _, b := range brokers {
		of(b.ID).Live = b.Live
	}
	for _, w := range pl.parts {
		for _, id := range w.Replicas {
			of(id).ReplicasBefore++
		}
		for _, id := range w.list {
			of(id).ReplicasAfter++
		}
		if len(w.Replicas) > 0 && len(w.list) > 0 {
			of(w.Replicas[0]).LeadersBefore++
			of(w.list[0]).LeadersAfter++
		}
		if slices.Equal(w.list, w.Replicas) {
			continue
		}
		m := Move{Topic: w.Topic, Partition: w.Partition.Partition, From: w.Replicas, To: w.list}
		for _, id := range m.Added() {
			of(id).In++
			of(id).BytesIn += w.Size
			m.Bytes += w.Size
		}
		for _, id := range m.Removed() {
			of(id).Out++
			of(id).BytesOut += w.Size
		}
		out.Bytes += m.Bytes
		out.Moves = append(out.Moves, m)
	}
	for _, l := range loads {
		out.Loads = append(out.Loads, *l)
	}
	slices.SortFunc(out.Loads, func(a, b Load) int { return cmp.Compare(a.Broker, b.Broker) })
	return out
}
