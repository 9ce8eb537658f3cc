package reassign

import (
	"cmp"
	"slices"

	"kctl/zkutil/cluster"
)

// balance moves replicas from full brokers to empty ones, one at a time from the fullest to the emptiest it can
// reach, until all brokers differ by at most one or nothing can move without crowding racks. Each move goes from a
// broker above the mean to one below, so that no plan with fewer moves reaches the same.
func (pl *planner) balance() {
	b := &balancer{pl: pl, on: make([][]*work, len(pl.ids)), next: map[[2]int]int{}}
	for _, w := range pl.parts {
		if w.Fixed {
			continue
		}
		for _, id := range w.list {
			b.on[pl.slot[id]] = append(b.on[pl.slot[id]], w)
		}
	}
	for s := range b.on {
		b.sort(s)
	}
	for fresh := true; ; {
		if b.step() {
			fresh = false
			continue
		}
		if b.chain() {
			clear(b.next)
			fresh = false
			continue
		}
		if fresh {
			return
		}
		// What could not move before may move now: look once more from the start.
		clear(b.next)
		fresh = true
	}
}

type balancer struct {
	pl   *planner
	on   [][]*work      // candidates by slot, cheapest first; stale entries are skipped
	next map[[2]int]int // how far the candidates from one slot to another were looked at
}

// sort puts the cheapest moves first: followers, then few bytes, then names.
func (b *balancer) sort(s int) {
	id := b.pl.ids[s]
	head := func(w *work) int {
		if w.list[0] == id {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(b.on[s], func(x, y *work) int {
		return cmp.Or(cmp.Compare(head(x), head(y)), cmp.Compare(x.Size, y.Size), x.TP().Compare(y.TP()))
	})
}

// slots by load: the fullest first.
func (b *balancer) byLoad() []int {
	out := make([]int, len(b.pl.ids))
	for s := range out {
		out[s] = s
	}
	slices.SortStableFunc(out, func(x, y int) int { return cmp.Compare(b.pl.replicas[y], b.pl.replicas[x]) })
	return out
}

// step makes one direct move; false when there is none.
func (b *balancer) step() bool {
	order := b.byLoad()
	for _, from := range order {
		for i := len(order) - 1; i >= 0; i-- {
			to := order[i]
			if b.pl.replicas[from]-b.pl.replicas[to] < 2 {
				break
			}
			if w := b.candidate(from, to); w != nil {
				b.move(w, from, to)
				return true
			}
		}
	}
	return false
}

// fits reports whether w may move a replica between two slots.
func (b *balancer) fits(w *work, from, to int) bool {
	k := slices.Index(w.list, b.pl.ids[from])
	return k >= 0 && !slices.Contains(w.list, b.pl.ids[to]) &&
		b.pl.crowding(w.list, k, b.pl.ids[to]) <= b.pl.crowding(w.list, -1, cluster.NoLeader)
}

// candidate is the cheapest partition that may move, preferably one whose topic has more on from than on to.
func (b *balancer) candidate(from, to int) *work {
	key := [2]int{from, to}
	var other *work
	for i := b.next[key]; i < len(b.on[from]); i++ {
		w := b.on[from][i]
		if !b.fits(w, from, to) {
			if other == nil {
				b.next[key] = i + 1
			}
			continue
		}
		if b.pl.byTopic[w.topic][from] > b.pl.byTopic[w.topic][to] {
			return w
		}
		if other == nil {
			other = w
		}
	}
	return other
}

func (b *balancer) move(w *work, from, to int) {
	b.pl.put(w, slices.Index(w.list, b.pl.ids[from]), b.pl.ids[to])
	b.on[to] = append(b.on[to], w)
}

// chain shifts load over brokers in between where no direct move is possible: the shortest way from a full broker to
// one with at least two replicas less. False when there is none.
func (b *balancer) chain() bool {
	order := b.byLoad()
	for _, start := range order {
		if b.pl.replicas[start]-b.pl.replicas[order[len(order)-1]] < 2 {
			return false
		}
		if path := b.path(start, order); path != nil {
			for i := len(path) - 1; i > 0; i-- { // the last first: it makes room
				w := b.any(path[i-1], path[i])
				if w == nil {
					return i < len(path)-1 // the moves before still count
				}
				b.move(w, path[i-1], path[i])
			}
			return true
		}
	}
	return false
}

// any is a partition that may move, looked for from the start.
func (b *balancer) any(from, to int) *work {
	for _, w := range b.on[from] {
		if b.fits(w, from, to) {
			return w
		}
	}
	return nil
}

func (b *balancer) path(start int, order []int) []int {
	back := map[int]int{start: start}
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for i := len(order) - 1; i >= 0; i-- {
			to := order[i]
			if _, seen := back[to]; seen || b.any(at, to) == nil {
				continue
			}
			back[to] = at
			if b.pl.replicas[start]-b.pl.replicas[to] >= 2 {
				path := []int{to}
				for s := to; s != start; s = back[s] {
					path = append(path, back[s])
				}
				slices.Reverse(path)
				return path
			}
			queue = append(queue, to)
		}
	}
	return nil
}
