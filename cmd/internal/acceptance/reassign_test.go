package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/admin/plan/reassign"
	"kctl/broker/brokertest"
	"kctl/zkutil/cluster"
)

var errKilled = errors.New("killed")

// disk is where a run's state survives a crash: the last state that was saved completely.
type disk struct {
	state  []byte
	saves  int
	dieAt  int  // at this save; 0: never
	before bool // before the state is durable, else right after
}

func (d *disk) save(r *reassign.Run) error {
	d.saves++
	data, err := json.Marshal(r)
	if d.saves == d.dieAt && d.before {
		return errKilled
	}
	d.state = data
	if d.saves == d.dieAt {
		return errKilled
	}
	return err
}

// TestReassignDiesAtEachStep: a run that dies before or after any of its saves is resumed from the state that is left,
// and ends with the replicas as wanted, without a throttle of its own, and with the entries of another owner untouched.
func TestReassignDiesAtEachStep(t *testing.T) {
	c := brokertest.Start(t, 3)
	a, err := admin.Open(t.Context(), admin.Config{Bootstrap: c.Addrs(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const topic = "dies"
	lists := [][]cluster.BrokerID{{1, 2}, {2, 1}, {1, 2}}
	if _, _, err := a.CreateTopic(t.Context(), plan.NewTopic{Name: topic, Assignment: lists}, false); err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(c.Client())
	foreign := "9:9"
	if _, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: reassign.LeaderReplicas, Value: &foreign}}, topic); err != nil {
		t.Fatal(err)
	}
	targets := [][][]cluster.BrokerID{{{3, 1}, {2, 3}, {1, 3}}, lists}
	for n := 1; ; n++ {
		var least int
		for _, before := range []bool{true, false} {
			target := targets[0]
			targets[0], targets[1] = targets[1], targets[0]
			d := &disk{dieAt: n, before: before}
			runOnce(t, a, d, topic, target)
			least = d.saves
			checkThrottles(t, adm, topic, foreign)
		}
		if least < n {
			return // the run ended before it could die
		}
	}
}

// runOnce starts a run that dies as d says, and resumes it until it ends.
func runOnce(t *testing.T, a *admin.Client, d *disk, topic string, target [][]cluster.BrokerID) {
	t.Helper()
	view, _, copies, _, err := a.ReassignSnapshot(t.Context(), admin.ViaAPI, []string{topic})
	if err != nil {
		t.Fatal(err)
	}
	var entries []reassign.Entry
	for p, l := range target {
		entries = append(entries, reassign.Entry{Topic: topic, Partition: int32(p), Replicas: l})
	}
	checked := reassign.Check(entries, *view, reassign.Options{})
	if len(checked.Refused) > 0 || len(checked.Steps) != 3 {
		t.Fatalf("%+v", checked)
	}
	run := reassign.NewRun(checked.Steps, copies.Dir)
	run.Via, run.BatchParts, run.Throttle = admin.ViaAPI, 2, 50<<20
	first, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	d.state = first
	for attempt := 0; ; attempt++ {
		err := a.ExecuteReassign(t.Context(), run, admin.ReassignOptions{Save: d.save, Interval: 20 * time.Millisecond})
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) || attempt > 1 {
			t.Fatalf("dies at %d, attempt %d: %v", d.dieAt, attempt, err)
		}
		run = &reassign.Run{} // what a new process knows
		if err := json.Unmarshal(d.state, run); err != nil {
			t.Fatal(err)
		}
		run.Reset()
	}
	view, _, err = a.ReassignView(t.Context(), admin.ViaAPI, []string{topic})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if seen := view.Parts[entries[i].TP()]; reassign.Judge(&entries[i], seen, true) != reassign.Done {
			t.Fatalf("dies at %d: %v is %+v, want %v", d.dieAt, entries[i].TP(), seen, entries[i].Replicas)
		}
	}
	if run.Outcome != reassign.Finished || len(run.Marks) > 0 {
		t.Fatalf("dies at %d: outcome %q, marks %+v", d.dieAt, run.Outcome, run.Marks)
	}
}

// checkThrottles finds the other owner's entry alone in the topic's lists, and no rate.
func checkThrottles(t *testing.T, adm *kadm.Client, topic, foreign string) {
	t.Helper()
	tc, err := adm.DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	bc, err := adm.DescribeBrokerConfigs(t.Context(), 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range slices.Concat(tc, bc) {
		for _, cfg := range r.Configs {
			dynamic := cfg.Source.String() == "DYNAMIC_TOPIC_CONFIG" || cfg.Source.String() == "DYNAMIC_BROKER_CONFIG"
			if dynamic && cfg.Value != nil {
				got = append(got, fmt.Sprintf("%s %s=%s", r.Name, cfg.Key, *cfg.Value))
			}
		}
	}
	if want := []string{topic + " " + reassign.LeaderReplicas + "=" + foreign}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

// TestReassignThrottles looks at the settings while a run waits: the lists are added to, a foreign rate stays.
func TestReassignThrottles(t *testing.T) {
	c := brokertest.Start(t, 3)
	a, err := admin.Open(t.Context(), admin.Config{Bootstrap: c.Addrs(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, _, err := a.CreateTopic(t.Context(), plan.NewTopic{Name: "thr", Assignment: [][]cluster.BrokerID{{1, 2}}}, false); err != nil {
		t.Fatal(err)
	}
	run := reassign.NewRun([]reassign.Step{{Entry: reassign.Entry{Topic: "thr", Replicas: []cluster.BrokerID{3, 1}}, From: []cluster.BrokerID{1, 2}}},
		admin.Copies{}.Dir)
	run.Via, run.Throttle = admin.ViaAPI, 1<<20
	adm := kadm.NewClient(c.Client())
	rate := "77"
	if _, err := adm.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: reassign.LeaderRate, Value: &rate}}, 2); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	var seen string
	err = a.ExecuteReassign(t.Context(), run, admin.ReassignOptions{
		Interval: 20 * time.Millisecond, Warn: func(w string) { warnings = append(warnings, w) },
		Save: func(r *reassign.Run) error {
			if r.Steps[0].Sent && seen == "" {
				tc, err := adm.DescribeTopicConfigs(t.Context(), "thr")
				if err != nil {
					return err
				}
				for _, cfg := range tc[0].Configs {
					if cfg.Key == reassign.LeaderReplicas || cfg.Key == reassign.FollowerReplicas {
						seen += *cfg.Value + " "
					}
				}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != "0:3 0:1,0:2 " {
		t.Errorf("while it ran the lists were %q", seen)
	}
	if want := []string{"broker 2 has " + reassign.LeaderRate + "=77, which is not ours and stays"}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
	bc, err := adm.DescribeBrokerConfigs(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(bc[0].Configs, func(cfg kadm.Config) bool { return cfg.Key == reassign.LeaderRate })
	if i < 0 || *bc[0].Configs[i].Value != rate {
		t.Errorf("the foreign rate is gone: %+v", bc[0].Configs)
	}
}
