package check_test

import (
	"fmt"
	"testing"
	"time"

	"kctl/admin/check"
	"kctl/admin/cputime"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// broken is a cluster in which nothing is right: broker 3 is dead, every partition has it as leader in somebody's view, is
// behind, under-replicated and on a disk where it does not belong; configurations, znodes and groups are left behind.
func broken(topics int) *check.Facts {
	f := facts()
	f.Snapshot.Brokers[2].Live = false
	f.Snapshot.Topics, f.Tree.Topics, f.Tree.States, f.Positions = nil, nil, nil, nil
	f.Missing[check.FromEnsemble] = "not asked"
	for n := range topics {
		name := fmt.Sprintf("topic-%05d", n)
		t := model.Topic{Name: name, ID: cluster.TopicID{byte(n), byte(n >> 8), 1}, Source: model.SourceProtocol}
		inTree := t
		for i := range int32(10) {
			p := healthyAt()
			p.Topic, p.Partition, p.Leader, p.ISR, p.MinISR = name, i, 2, ids{2, 3}, 3
			t.Partitions = append(t.Partitions, p)
			p.Leader, p.LeaderEpoch = 3, 7
			inTree.Partitions = append(inTree.Partitions, p)
			st := state()
			st.Topic, st.Partition, st.Leader, st.LeaderEpoch, st.ISR, st.ControllerEpoch = name, i, 3, 7, ids{3, 9}, 8
			f.Tree.States = append(f.Tree.States, st)
			for _, id := range (ids{2, 1, 3}) {
				pos := position(id, 100)
				if id == 1 && i < 8 {
					continue
				}
				pos.Topic, pos.Partition, pos.Leader, pos.InSync, pos.LogEndOffset = name, i, id == 2, id != 1, 100+int64(id)
				f.Positions, f.Later = append(f.Positions, pos), append(f.Later, pos)
			}
			f.Transitions = append(f.Transitions, model.Transition{Topic: name, Partition: i, State: model.TransitionStuck, Reason: "leader 3 is not registered"})
			for d := range f.Dirs {
				if d == 0 && i < 8 {
					continue // broker 1 has lost most of its replicas
				}
				f.Dirs[d].Replicas = append(f.Dirs[d].Replicas, check.DirReplica{TP: tp(name, i), Size: 10, Future: d == 1}, check.DirReplica{TP: tp("gone-"+name, i), Size: 10})
			}
		}
		f.Snapshot.Topics, f.Tree.Topics = append(f.Snapshot.Topics, t), append(f.Tree.Topics, inTree)
		f.TopicConfigs[name] = check.Config{
			"min.insync.replicas": {Text: "3", Own: true}, "retention.ms": {Text: "1", Own: true}, "cleanup.policy": {Text: "nonsense", Own: true},
			"leader.replication.throttled.replicas": {Text: "0:1,1:2", Own: true},
		}
		f.Tree.TopicNodes[name] = node("/brokers/topics/"+name, "", time.Hour)
		f.Tree.Deleting = append(f.Tree.Deleting, node("/admin/delete_topics/"+name, "", time.Hour))
		f.Tree.TopicConfigs = append(f.Tree.TopicConfigs, node("/config/topics/gone-"+name, `{"version":1,"config":{}}`, time.Hour))
		f.Tree.ISRChanges = append(f.Tree.ISRChanges, node(fmt.Sprintf("/isr_change_notification/isr_change_%010d", n), "{}", time.Hour))
		f.Tree.ConfigChanges = append(f.Tree.ConfigChanges, node(fmt.Sprintf("/config/changes/config_change_%010d", n), "{}", time.Hour))
		f.Groups = append(f.Groups, check.Group{Name: "group-" + name, State: "Empty", Topics: []string{"gone-" + name, name}})
	}
	for i := range f.Views {
		f.Views[i].Topics = f.Snapshot.Topics
	}
	f.Views[1].Topics = f.Tree.Topics
	return f
}

// TestDiagnosisIsLinear: eight times the partitions, all of them broken, cost about eight times as much (somewhat more: the
// few hardly need the garbage collector), not sixty-four; and what is allocated for each stays the same.
func TestDiagnosisIsLinear(t *testing.T) {
	const few, many = 150, 1200
	f := map[int]*check.Facts{few: broken(few), many: broken(many)}
	least := map[int]time.Duration{}
	findings := map[int]int{}
	for round := 0; round < 2 || round < 6 && least[many] > 24*least[few]; round++ { // disturbances only add: the least counts
		for n, facts := range f {
			before := cputime.Now(t)
			d := check.Diagnose(facts, nil)
			took := cputime.Now(t) - before
			if least[n] == 0 || took < least[n] {
				least[n] = took
			}
			findings[n] = len(d.Findings)
		}
	}
	t.Logf("%d partitions, %d findings: %s; %d partitions, %d findings: %s", few*10, findings[few], least[few], many*10, findings[many], least[many])
	if findings[many] < many*10*5 {
		t.Errorf("%d findings: the cluster is not as broken as it should be", findings[many])
	}
	if least[many] > 24*least[few] {
		t.Errorf("eight times the partitions take %.1f times as long", float64(least[many])/float64(least[few]))
	}
	allocs := func(n int) float64 {
		return testing.AllocsPerRun(1, func() { check.Diagnose(f[n], nil) }) / float64(findings[n])
	}
	if a, b := allocs(few), allocs(many); b > 1.5*a || b > 40 {
		t.Errorf("%.1f allocations for each finding, %.1f where there are eight times as many", a, b)
	}
}

// TestEachCheckIsLinear: the same of every check by itself, so that one which grows with the square is found however little it is of
// the whole. A comparison of each of 12,000 partitions with each other takes more than small; what is below it is no such thing.
func TestEachCheckIsLinear(t *testing.T) {
	const few, many, small = 150, 1200, 30 * time.Millisecond
	least := func(find func() int) time.Duration {
		best := cputime.Spent(t, func() { find() })
		for round := 0; round < 4 && best > small/8; round++ { // disturbances only add: the least counts
			best = min(best, cputime.Spent(t, func() { find() }))
		}
		return best
	}
	base, ran := check.Finders(broken(few)), 0
	for id, find := range check.Finders(broken(many)) {
		ran++
		if took := least(find); took > small && took > 24*least(base[id]) {
			t.Errorf("%s: %d partitions take %s, %d take %s", id, few*10, least(base[id]), many*10, took)
		}
	}
	if ran < 60 {
		t.Errorf("only %d checks ran", ran)
	}
}
