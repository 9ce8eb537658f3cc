package reassign

import (
	"cmp"
	"slices"

	"kctl/zkutil/cluster"
)

// lead evens out preferred leaders by putting another replica first in some lists. Along the shortest way from a
// broker that leads much to one that leads at least two less, each step hands one partition on. Only partitions that
// may says yes to are reordered.
func (pl *planner) lead(may func(*work) bool) {
	l := &leads{pl: pl, at: map[[2]int][]*work{}, stuck: make([]bool, len(pl.ids))}
	// Those whose replicas move anyway are pushed last and taken first: they are in the plan already.
	for _, moved := range []bool{false, true} {
		for i := len(pl.parts) - 1; i >= 0; i-- {
			w := pl.parts[i]
			if !w.Fixed && may(w) && slices.Equal(w.list, w.Replicas) != moved {
				l.offer(w)
			}
		}
	}
	for l.step() {
	}
}

type leads struct {
	pl    *planner
	at    map[[2]int][]*work // partitions that the first slot leads and the second could; stale ones are dropped when met
	stuck []bool             // slots that cannot hand on
}

// offer notes where the leadership of w could go.
func (l *leads) offer(w *work) {
	from, ok := l.pl.slot[w.list[0]]
	if !ok {
		return // its first replica is not allowed and stays where it is
	}
	for _, id := range w.list[1:] {
		if to, ok := l.pl.slot[id]; ok {
			l.at[[2]int{from, to}] = append(l.at[[2]int{from, to}], w)
		}
	}
}

// peek is a partition that from may hand to to.
func (l *leads) peek(from, to int) *work {
	key := [2]int{from, to}
	for list := l.at[key]; len(list) > 0; list = list[:len(list)-1] {
		if w := list[len(list)-1]; w.list[0] == l.pl.ids[from] {
			l.at[key] = list
			return w
		}
	}
	delete(l.at, key)
	return nil
}

func (l *leads) step() bool {
	order := make([]int, len(l.pl.ids))
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(l.pl.leaders[y], l.pl.leaders[x]) })
	for _, start := range order {
		if l.stuck[start] {
			continue
		}
		if path := l.path(start); path != nil {
			for i := len(path) - 1; i > 0; i-- {
				l.hand(l.peek(path[i-1], path[i]), path[i-1], path[i])
			}
			l.stuck[path[len(path)-1]] = false // it leads more now
			return true
		}
		l.stuck[start] = true
	}
	return false
}

// hand puts to first and keeps the order of the rest.
func (l *leads) hand(w *work, from, to int) {
	k := slices.Index(w.list, l.pl.ids[to])
	w.list = slices.Concat([]cluster.BrokerID{l.pl.ids[to]}, w.list[:k], w.list[k+1:])
	l.pl.leaders[from]--
	l.pl.leaders[to]++
	l.offer(w)
}

// path is the shortest way from start to a slot that leads at least two less; among the nearest, the one that leads
// least.
func (l *leads) path(start int) []int {
	back := make([]int, len(l.pl.ids))
	for i := range back {
		back[i] = -1
	}
	back[start] = start
	for level := []int{start}; len(level) > 0; {
		var next []int
		end := -1
		for _, at := range level {
			for to := range back {
				if back[to] >= 0 || l.peek(at, to) == nil {
					continue
				}
				back[to] = at
				next = append(next, to)
				if l.pl.leaders[start]-l.pl.leaders[to] >= 2 && (end < 0 || l.pl.leaders[to] < l.pl.leaders[end]) {
					end = to
				}
			}
		}
		if end >= 0 {
			path := []int{end}
			for s := end; s != start; s = back[s] {
				path = append(path, back[s])
			}
			slices.Reverse(path)
			return path
		}
		level = next
	}
	return nil
}
