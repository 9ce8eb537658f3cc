package rows_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/zkutil/cluster"
)

// TestFieldsAreStable holds the JSON field names that scripts rely on, in their order.
func TestFieldsAreStable(t *testing.T) {
	checkFields(t, []fieldsOf{
		{rows.Topic{}, "name partitions replicationFactor underReplicated offline internal topicId deleting source"},
		{rows.Partition{}, "topic partition leader leaderEpoch replicas isr offlineReplicas addingReplicas removingReplicas preferredLeader underReplicated minIsr source"},
		{rows.LeaderAndISR{}, "topic partition leader leaderEpoch isr controllerEpoch zkVersion replicas mtime ageMs unknownFields source"},
		{rows.ReplicaLag{}, "topic partition broker role inSync logStartOffset highWatermark logEndOffset lagRecords lagMs leaderEpoch error"},
		{rows.Transition{}, "topic partition state decidedAt ageMs leader leaderEpoch controllerEpoch waitingFor reason fix"},
		{rows.Health{}, "healthy findings errors"},
		{rows.Finding{}, "id severity object evidence fix"},
		{rows.Broker{}, "id host port rack live controller leaders replicas outOfSync brokerEpoch registeredAt error source"},
		{rows.Controller{}, "id epoch host port since live source"},
		{rows.Election{}, "topic partition from to action done confirmed error result"},
	})
}

// fieldsOf names the JSON fields of a kind of row, in order.
type fieldsOf struct {
	row    any
	fields string
}

func checkFields(t *testing.T, want []fieldsOf) {
	t.Helper()
	for _, w := range want {
		ty := reflect.TypeOf(w.row)
		var got []string
		for i := range ty.NumField() {
			got = append(got, ty.Field(i).Tag.Get("json"))
		}
		if strings.Join(got, " ") != w.fields {
			t.Errorf("%s:\ngot  %s\nwant %s", ty.Name(), strings.Join(got, " "), w.fields)
		}
	}
}

// TestReplicaOrderIsKept: the first replica is the preferred leader, so nothing may sort the list.
func TestReplicaOrderIsKept(t *testing.T) {
	p := rows.OfPartition(&model.Partition{Topic: "t", Leader: 1, Replicas: []cluster.BrokerID{3, 1, 2}, ISR: []cluster.BrokerID{2, 3, 1}})
	if rows.IntList(p.Replicas) != "3,1,2" || rows.IntList(p.ISR) != "2,3,1" || p.PreferredLeader != 3 || p.Status() != "not-preferred" {
		t.Errorf("%+v", p)
	}
}

// TestNothingIsNull: empty lists are [] and no leader is -1 in JSON and none in text.
func TestNothingIsNull(t *testing.T) {
	p := rows.OfPartition(&model.Partition{Topic: "t", Leader: cluster.NoLeader})
	data, err := json.Marshal(p)
	if err != nil || strings.Contains(strings.Replace(string(data), `"minIsr":null`, "", 1), "null") || p.Leader != -1 {
		t.Errorf("%s %v", data, err)
	}
	cells := rows.PartitionKind.Cells(p, false)
	if cells[2] != "none" || cells[4] != "none" || !strings.HasPrefix(cells[6], "offline") {
		t.Errorf("%q", cells)
	}
	if got := rows.OfPartition(&model.Partition{Leader: cluster.LeaderDuringDelete}).Leader; got != -1 {
		t.Errorf("leader during delete is %d", got)
	}
}

func TestStateNodeWithoutZooKeeper(t *testing.T) {
	n := model.StateNode{Topic: "t", ZKVersion: -1, Source: model.SourceProtocol, LeaderAndISR: cluster.LeaderAndISR{Leader: 1, ControllerEpoch: -1}}
	r := rows.OfStateNode(&n, time.Now())
	if r.ZKVersion != nil || r.ControllerEpoch != nil || r.Mtime != nil || r.AgeMs != nil {
		t.Errorf("unknown figures are shown: %+v", r)
	}
	n.Source, n.ZKVersion, n.ControllerEpoch, n.Mtime = model.SourceZooKeeper, 0, 2, time.UnixMilli(1000)
	r = rows.OfStateNode(&n, time.UnixMilli(3500))
	if *r.ZKVersion != 0 || *r.ControllerEpoch != 2 || *r.AgeMs != 2500 || *r.Mtime != "1970-01-01T00:00:01.000Z" {
		t.Errorf("%+v", r)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "-", 0: "0ms", 850 * time.Millisecond: "850ms", 12340 * time.Millisecond: "12.3s", 250 * time.Second: "4m10s",
		3*time.Hour + 2*time.Minute: "3h2m", 124 * time.Hour: "5d4h",
	} {
		if got := rows.Duration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// TestSchema: the schema of a kind names exactly the fields of its rows.
func TestSchema(t *testing.T) {
	s := rows.SchemaOf("PartitionList", rows.Partition{}, true)
	item := s["properties"].(map[string]any)["items"].(map[string]any)["items"].(map[string]any)
	props := item["properties"].(map[string]any)
	if len(props) != reflect.TypeOf(rows.Partition{}).NumField() {
		t.Errorf("%d properties", len(props))
	}
	if got := props["isr"].(map[string]any)["items"].(map[string]any)["type"]; got != "integer" {
		t.Errorf("isr is a list of %v", got)
	}
	detail := rows.SchemaOf("Cluster", rows.ClusterDetail{}, false)["properties"].(map[string]any)
	if detail["clusterId"] == nil || detail["brokerList"] == nil || detail["apiVersion"] == nil {
		t.Errorf("embedded fields are missing: %v", detail)
	}
}
