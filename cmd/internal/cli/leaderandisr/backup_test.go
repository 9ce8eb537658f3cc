package leaderandisr

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/zkutil/cluster"
)

func TestBackupRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	s := &model.Snapshot{ClusterID: "c1", Topics: []model.Topic{{Name: "t", ID: cluster.TopicID{1}}}}
	var st admin.LeaderAndISRStep
	st.Facts.State = model.StateNode{Topic: "t", Partition: 3, ZKVersion: 4, Replicas: []cluster.BrokerID{1, 2}, Raw: []byte(`{"x":1}`)}
	st.Facts.State.LeaderAndISR = cluster.LeaderAndISR{Leader: 1, LeaderEpoch: 7, ISR: []cluster.BrokerID{1, 2}}
	if err := writeBackup(path, s, []admin.LeaderAndISRStep{st}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := newFile(path); exit.CodeOf(err) != exit.Usage {
		t.Errorf("an existing file: %v", err)
	}
	if err := writeBackup(path, s, []admin.LeaderAndISRStep{st}, time.Now()); err == nil {
		t.Error("a backup was overwritten")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id, items, err := parseBackup(data)
	if err != nil || id != "c1" || len(items) != 1 {
		t.Fatalf("%q %+v %v", id, items, err)
	}
	if it := items[0]; it.tp.Partition != 3 || it.topicID != s.Topics[0].ID.String() || it.state.LeaderEpoch != 7 || len(it.state.ISR) != 2 {
		t.Errorf("%+v", it)
	}
	var doc struct {
		Items []struct {
			Znode string `json:"znode"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &doc); err != nil || doc.Items[0].Znode != `{"x":1}` {
		t.Errorf("%+v %v", doc, err)
	}
}

func TestParseBackupRefuses(t *testing.T) {
	head := `{"kind":"LeaderAndISRList","items":[`
	for in, want := range map[string]string{
		``:            "unexpected end",
		`{}`:          `kind is ""`,
		`[]`:          "cannot unmarshal",
		head + `]}`:   "no partitions",
		head + `{}]}`: "needs topic, partition",
		head + `{"topic":"a/b","partition":0,"leader":1,"isr":[1]}]}`:                                                       "item 0",
		head + `{"topic":"t","partition":0,"leader":1,"isr":[]}]}`:                                                          "not valid",
		head + `{"topic":"t","partition":0,"leader":-5,"isr":[1]}]}`:                                                        "not valid",
		head + `{"topic":"t","partition":-1,"leader":1,"isr":[1]}]}`:                                                        "not valid",
		head + `{"topic":"t","partition":0,"leader":1,"isr":[-1]}]}`:                                                        "not valid",
		head + `{"topic":"t","partition":0,"leader":1,"isr":[1]},{"topic":"t","partition":0,"leader":1,"isr":[1]}]}`:        "stands twice",
		`{"kind":"LeaderAndISRBackup","items":[{"topic":"t","partition":0,"leader":1,"isr":[1],"leaderEpoch":9999999999}]}`: "cannot unmarshal",
	} {
		if _, _, err := parseBackup([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

func TestRestoreStepRefuses(t *testing.T) {
	it := saved{tp: cluster.TopicPartition{Topic: "t"}, topicID: "old", state: cluster.LeaderAndISR{Leader: 1, ISR: []cluster.BrokerID{1}}}
	if st := restoreStep(it, nil, "", false, admin.RouteController); st.Err == nil || st.Name() != "t:0" {
		t.Errorf("%+v", st)
	}
	f := &plan.LeaderAndISRFacts{State: model.StateNode{Topic: "t"}}
	if st := restoreStep(it, f, "new", false, admin.RouteController); st.Err == nil || !strings.Contains(st.Err.Error(), "earlier topic") {
		t.Errorf("%+v", st)
	}
}

// FuzzParseBackup: a file is refused or understood, never more than it says.
func FuzzParseBackup(f *testing.F) {
	f.Add([]byte(`{"kind":"LeaderAndISRList","items":[{"topic":"t","partition":0,"leader":1,"isr":[1]}]}`))
	f.Add([]byte(`{"kind":"LeaderAndISR","topic":"t","partition":0,"leader":-1,"isr":[1,2]}`))
	f.Add([]byte(`{"kind":"LeaderAndISRBackup","clusterId":"x","items":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, items, err := parseBackup(data)
		if err != nil {
			return
		}
		for _, it := range items {
			if it.tp.Topic == "" || it.tp.Partition < 0 || len(it.state.ISR) == 0 || it.state.Leader < -1 {
				t.Errorf("%+v", it)
			}
		}
	})
}
