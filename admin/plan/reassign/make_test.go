package reassign

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kctl/admin/cputime"
	"kctl/zkutil/cluster"
)

type id = cluster.BrokerID

// drawCluster makes brokers, some dead, with or without racks, and partitions with any legal replica lists.
func drawCluster(t *rapid.T) ([]Broker, []Partition) {
	n := rapid.IntRange(1, 8).Draw(t, "brokers")
	racks := rapid.IntRange(0, 4).Draw(t, "racks")
	brokers := make([]Broker, n)
	for i := range brokers {
		brokers[i] = Broker{ID: id(i + 1), Live: rapid.IntRange(0, 9).Draw(t, "alive") > 0}
		if racks > 0 {
			brokers[i].Rack = fmt.Sprint("r", rapid.IntRange(0, racks-1).Draw(t, "rack"))
		}
	}
	var parts []Partition
	for topic := range rapid.IntRange(1, 3).Draw(t, "topics") {
		rf := rapid.IntRange(1, n).Draw(t, "rf")
		for p := range rapid.IntRange(1, 12).Draw(t, "partitions") {
			all := make([]id, n)
			for i := range all {
				all[i] = id(i + 1)
			}
			parts = append(parts, Partition{
				Topic: fmt.Sprint("t", topic), Partition: int32(p), Replicas: rapid.Permutation(all).Draw(t, "replicas")[:rf],
				Size: rapid.Int64Range(0, 1000).Draw(t, "size"), Fixed: rapid.IntRange(0, 9).Draw(t, "fixed") == 0,
			})
		}
	}
	return brokers, parts
}

func drawGoal(t *rapid.T, brokers []Broker) Goal {
	g := Goal{
		Racks: rapid.Bool().Draw(t, "fix racks"), Balance: rapid.Bool().Draw(t, "balance"), Leaders: rapid.Bool().Draw(t, "leaders"),
		IgnoreRacks: rapid.IntRange(0, 3).Draw(t, "ignore racks") == 0, LeadersOnly: rapid.IntRange(0, 4).Draw(t, "leaders only") == 0,
	}
	if rapid.IntRange(0, 2).Draw(t, "change rf") == 0 {
		g.ReplicationFactor = rapid.IntRange(1, len(brokers)).Draw(t, "new rf")
	}
	for _, b := range brokers {
		if rapid.IntRange(0, 4).Draw(t, "drain") == 0 {
			g.Drain = append(g.Drain, b.ID)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "to") == 0 {
		for _, b := range brokers {
			if b.Live && rapid.Bool().Draw(t, "use") {
				g.To = append(g.To, b.ID)
			}
		}
	}
	return g
}

// after is what the cluster looks like when the plan was carried out.
func after(parts []Partition, p *Plan) []Partition {
	out := slices.Clone(parts)
	for i := range out {
		for j := range p.Moves {
			if p.Moves[j].Topic == out[i].Topic && p.Moves[j].Partition == out[i].Partition {
				out[i].Replicas = p.Moves[j].To
			}
		}
	}
	return out
}

func (g *Goal) allowed(brokers []Broker) (ids []id, byRack map[string]int, racks bool) {
	byRack, racks = map[string]int{}, !g.IgnoreRacks
	for _, b := range brokers {
		if b.Live && !slices.Contains(g.Drain, b.ID) && (len(g.To) == 0 || slices.Contains(g.To, b.ID)) {
			ids = append(ids, b.ID)
			byRack[b.Rack]++
			racks = racks && b.Rack != ""
		}
	}
	return ids, byRack, racks
}

// TestMakeProperties: whatever the cluster and the goal, a plan keeps or reaches the replication factor, uses only
// allowed brokers, each once in a list, leaves fixed partitions alone, counts right, is the same the second time, and
// is empty where it was carried out already.
func TestMakeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers, parts := drawCluster(t)
		g := drawGoal(t, brokers)
		before := fmt.Sprint(parts)
		p, err := Make(brokers, parts, g)
		again, _ := Make(brokers, slices.Clone(parts), g)
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("two plans:\n%+v\n%+v", p, again)
		}
		if fmt.Sprint(parts) != before {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		allowed, _, _ := g.allowed(brokers)
		done := after(parts, p)
		for i, part := range done {
			checkPartition(t, &parts[i], &part, g, allowed)
		}
		checkLoads(t, parts, done, p)
		next, err := Make(brokers, done, g)
		if err != nil || len(next.Moves) > 0 {
			t.Fatalf("not settled: %v %+v\nafter %+v", err, next.Moves, p.Moves)
		}
	})
}

func checkPartition(t *rapid.T, was, is *Partition, g Goal, allowed []id) {
	want := len(was.Replicas)
	if g.ReplicationFactor > 0 && !was.Fixed && !g.LeadersOnly {
		want = g.ReplicationFactor
	}
	if len(is.Replicas) != want {
		t.Fatalf("%v has %d replicas, want %d", is.TP(), len(is.Replicas), want)
	}
	for k, r := range is.Replicas {
		if slices.Contains(is.Replicas[:k], r) {
			t.Fatalf("%v: %d twice in %v", is.TP(), r, is.Replicas)
		}
		if !was.Fixed && !g.LeadersOnly && !slices.Contains(allowed, r) {
			t.Fatalf("%v: %d in %v is not allowed: %v", is.TP(), r, is.Replicas, allowed)
		}
	}
	same := slices.Equal(was.Replicas, is.Replicas)
	if was.Fixed && !same {
		t.Fatalf("%v is fixed and moves", is.TP())
	}
	if g.LeadersOnly && !slices.Equal(slices.Sorted(slices.Values(was.Replicas)), slices.Sorted(slices.Values(is.Replicas))) {
		t.Fatalf("%v: another set: %v to %v", is.TP(), was.Replicas, is.Replicas)
	}
	// Without a wish for more, replicas on allowed brokers stay.
	if !g.Racks && !g.Balance && !g.LeadersOnly {
		kept := 0
		for _, r := range was.Replicas {
			if slices.Contains(is.Replicas, r) {
				kept++
			}
		}
		may := 0
		for _, r := range was.Replicas {
			if slices.Contains(allowed, r) {
				may++
			}
		}
		if !was.Fixed && kept != min(may, want) {
			t.Fatalf("%v: %v to %v keeps %d of %d", is.TP(), was.Replicas, is.Replicas, kept, min(may, want))
		}
	}
}

func checkLoads(t *rapid.T, parts, done []Partition, p *Plan) {
	count := func(list []Partition, b id) (n, l int) {
		for i := range list {
			if slices.Contains(list[i].Replicas, b) {
				n++
			}
			if list[i].Replicas[0] == b {
				l++
			}
		}
		return n, l
	}
	var in int64
	for _, l := range p.Loads {
		rb, lb := count(parts, l.Broker)
		ra, la := count(done, l.Broker)
		if rb != l.ReplicasBefore || ra != l.ReplicasAfter || lb != l.LeadersBefore || la != l.LeadersAfter || ra-rb != l.In-l.Out {
			t.Fatalf("load %+v, counted %d %d %d %d", l, rb, ra, lb, la)
		}
		in += l.BytesIn
	}
	if in != p.Bytes {
		t.Fatalf("%d bytes come in, the plan says %d", in, p.Bytes)
	}
}

// TestRacksProperty: with racks wanted, no list could be spread better over the racks that there are.
func TestRacksProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers, parts := drawCluster(t)
		g := drawGoal(t, brokers)
		g.Racks, g.LeadersOnly = true, false
		p, err := Make(brokers, parts, g)
		if err != nil {
			return
		}
		_, byRack, racks := g.allowed(brokers)
		if !racks {
			return
		}
		for _, part := range after(parts, p) {
			if part.Fixed {
				continue
			}
			used := map[string]int{}
			for _, r := range part.Replicas {
				used[brokers[r-1].Rack]++
			}
			for full, n := range used {
				for other, size := range byRack {
					if used[other] < size && used[other] < n-1 {
						t.Fatalf("%v %v: rack %s has %d, rack %s only %d of %d", part.TP(), part.Replicas, full, n, other, used[other], size)
					}
				}
			}
		}
	})
}

// TestBalanceProperty: without racks, with everything movable, brokers differ by one replica and one leader at most,
// and no replica moves needlessly.
func TestBalanceProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers, parts := drawCluster(t)
		for i := range brokers {
			brokers[i].Live = true
		}
		for i := range parts {
			parts[i].Fixed = false
		}
		p, err := Make(brokers, parts, Goal{Balance: true, Leaders: true, IgnoreRacks: true})
		if err != nil {
			t.Fatal(err)
		}
		low, high := spread(p, func(l Load) int { return l.ReplicasAfter })
		if high-low > 1 {
			t.Fatalf("replicas from %d to %d: %+v", low, high, p.Loads)
		}
		total, in := 0, 0
		for _, l := range p.Loads {
			total += l.ReplicasBefore
			in += l.In
		}
		excess := 0
		floor, rest := total/len(brokers), total%len(brokers)
		counts := []int{}
		for _, l := range p.Loads {
			counts = append(counts, l.ReplicasBefore)
		}
		slices.Sort(counts)
		slices.Reverse(counts)
		for i, c := range counts {
			want := floor
			if i < rest {
				want++
			}
			excess += max(0, c-want)
		}
		if in < excess || rapidDirect(parts, len(brokers)) && in != excess {
			t.Fatalf("%d replicas move, %d must", in, excess)
		}
	})
}

// rapidDirect reports whether no broker is in every list, so that no move ever needs a detour.
func rapidDirect(parts []Partition, brokers int) bool {
	for i := range parts {
		if len(parts[i].Replicas)*2 > brokers {
			return false
		}
	}
	return len(parts) > 3*brokers
}

func spread(p *Plan, of func(Load) int) (low, high int) {
	low = 1 << 30
	for _, l := range p.Loads {
		low, high = min(low, of(l)), max(high, of(l))
	}
	return low, high
}

// TestLeadersProperty: by reordering alone preferred leaders get as even as the replica lists allow; here every broker
// is in many lists, so that one more or less is all.
func TestLeadersProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "brokers")
		var brokers []Broker
		for i := range n {
			brokers = append(brokers, Broker{ID: id(i + 1), Live: true})
		}
		var parts []Partition
		for p := range n * rapid.IntRange(1, 5).Draw(t, "rounds") {
			a, b := id(p%n+1), id((p+1)%n+1)
			if rapid.Bool().Draw(t, "turn") {
				a, b = b, a
			}
			parts = append(parts, Partition{Topic: "t", Partition: int32(p), Replicas: []id{a, b}})
		}
		p, err := Make(brokers, parts, Goal{LeadersOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if low, high := spread(p, func(l Load) int { return l.LeadersAfter }); high-low > 1 || p.Bytes != 0 {
			t.Fatalf("leaders from %d to %d: %+v", low, high, p.Moves)
		}
	})
}

func topic(name string, lists ...[]id) []Partition {
	var out []Partition
	for p, l := range lists {
		out = append(out, Partition{Topic: name, Partition: int32(p), Replicas: l, Size: 100})
	}
	return out
}

func live(racks ...string) []Broker {
	out := make([]Broker, len(racks))
	for i, r := range racks {
		out[i] = Broker{ID: id(i + 1), Rack: r, Live: true}
	}
	return out
}

func TestMake(t *testing.T) {
	three := live("", "", "")
	spreadOut := topic("t", []id{1, 2}, []id{2, 3}, []id{3, 1})
	for _, c := range []struct {
		name    string
		brokers []Broker
		parts   []Partition
		goal    Goal
		want    string // the moves, or the error
	}{
		{"balanced is empty", three, spreadOut, Goal{Balance: true, Leaders: true, Racks: true}, ""},
		{"drain moves only what must", live("", "", "", ""), topic("t", []id{1, 2}, []id{2, 3}, []id{4, 1}), Goal{Drain: []id{3}}, "t:1 [2 3]>[2 4]"},
		{"drain by rack", live("a", "a", "b", "b"), topic("t", []id{1, 3}), Goal{Drain: []id{3}}, "t:0 [1 3]>[1 4]"},
		{"grow", three, topic("t", []id{1}, []id{2}), Goal{ReplicationFactor: 2}, "t:0 [1]>[1 3]; t:1 [2]>[2 1]"},
		{"shrink keeps the head", three, topic("t", []id{3, 1, 2}), Goal{ReplicationFactor: 1}, "t:0 [3 1 2]>[3]"},
		{"shrink drops the dead one first", []Broker{{ID: 1, Live: true}, {ID: 2}}, topic("t", []id{2, 1}), Goal{ReplicationFactor: 1}, "t:0 [2 1]>[1]"},
		{"shrink keeps racks apart", live("a", "a", "b"), topic("t", []id{1, 2, 3}), Goal{ReplicationFactor: 2}, "t:0 [1 2 3]>[1 3]"},
		{"fix racks", live("a", "a", "b"), topic("t", []id{1, 2}), Goal{Racks: true}, "t:0 [1 2]>[1 3]"},
		{"ignored racks", live("a", "a", "b"), topic("t", []id{1, 2}), Goal{Racks: true, IgnoreRacks: true}, ""},
		{"reorder", three, topic("t", []id{1, 2}, []id{1, 3}, []id{1, 2}), Goal{LeadersOnly: true}, "t:0 [1 2]>[2 1]; t:1 [1 3]>[3 1]"},
		{"onto a new broker", three, topic("t", []id{1, 2}, []id{2, 1}, []id{1, 2}), Goal{To: []id{1, 2, 3}, Balance: true, Leaders: true}, "t:0 [1 2]>[3 1]; t:1 [2 1]>[2 3]"},
		{"too few brokers", three, spreadOut, Goal{ReplicationFactor: 4}, "t:0 is to have 4 replicas, but only 3 brokers may hold them: 1,2,3"},
		{"unknown target", three, spreadOut, Goal{To: []id{1, 9}}, "broker 9 is not live; live are 1,2,3"},
		{"unknown drain", three, spreadOut, Goal{Drain: []id{9}}, "broker 9 does not exist; live are 1,2,3"},
		{"nobody left", three, spreadOut, Goal{Drain: []id{1, 2, 3}}, "no broker is left that may hold replicas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Make(c.brokers, c.parts, c.goal)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				for i, m := range p.Moves {
					if i > 0 {
						got += "; "
					}
					got += fmt.Sprintf("%s:%d %v>%v", m.Topic, m.Partition, m.From, m.To)
				}
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestMakeLarge: a plan of 40,000 partitions is made while one waits for it: it costs about as much processor time as eight
// plans of an eighth, not eight times as much. Disturbances only add: the least of a few runs counts.
func TestMakeLarge(t *testing.T) {
	const n = 12
	var brokers []Broker
	for i := range n {
		brokers = append(brokers, Broker{ID: id(i + 1), Live: true, Rack: fmt.Sprint(i % 3)})
	}
	var parts []Partition
	for p := range 40_000 {
		l := []id{id(p%9 + 1), id((p+1)%9 + 1), id((p+2)%9 + 1)}
		parts = append(parts, Partition{Topic: fmt.Sprint("t", p/100), Partition: int32(p % 100), Replicas: l, Size: int64(p % 7)})
	}
	planned := func(times int, parts []Partition) time.Duration {
		var p *Plan
		var err error
		before := cputime.Now(t)
		for range times {
			if p, err = Make(brokers, parts, Goal{Balance: true, Leaders: true, Racks: true}); err != nil {
				t.Fatal(err)
			}
		}
		took := cputime.Now(t) - before
		low, high := spread(p, func(l Load) int { return l.ReplicasAfter })
		ll, lh := spread(p, func(l Load) int { return l.LeadersAfter })
		if high-low > 1 || lh-ll > 1 || len(p.Moves) == 0 {
			t.Fatalf("replicas %d to %d, leaders %d to %d, %d moves", low, high, ll, lh, len(p.Moves))
		}
		return took
	}
	few, many := planned(8, parts[:5000]), planned(1, parts)
	for n := 0; n < 5 && many > 4*few; n++ {
		few, many = min(few, planned(8, parts[:5000])), min(many, planned(1, parts))
	}
	if t.Logf("5,000 partitions eight times: %s, 40,000: %s", few, many); many > 4*few {
		t.Errorf("40,000 partitions cost %.1f times as much as 5,000 eight times", float64(many)/float64(few))
	}
}
