package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func TestParseTargets(t *testing.T) {
	tests := []struct {
		args []string
		want string // %v of the result, or the error's part after "!"
	}{
		{nil, "[]"},
		{[]string{"a"}, "[{a []}]"},
		{[]string{"a:0,2", "b"}, "[{a [0 2]} {b []}]"},
		{[]string{"a:1", "a:0,1"}, "[{a [1 0]}]"},
		{[]string{"a:1", "a"}, "[{a []}]"},
		{[]string{"a:"}, "!not a number"},
		{[]string{"a:-1"}, "!not a number"},
		{[]string{"a:x"}, "!not a number"},
		{[]string{""}, "!empty"},
		{[]string{"a b:0"}, "!not legal"},
	}
	for _, tt := range tests {
		got, err := plan.ParseTargets(tt.args)
		s := fmt.Sprint(got)
		if err != nil {
			s = "!" + err.Error()
		}
		if s != tt.want && (err == nil || !strings.Contains(s, strings.TrimPrefix(tt.want, "!"))) {
			t.Errorf("%q: got %s, want %s", tt.args, s, tt.want)
		}
	}
}

func TestTopicName(t *testing.T) {
	for _, ok := range []string{"a", "A.b_c-9", "...", strings.Repeat("x", 249)} {
		if err := plan.TopicName(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a*b", "a b", "ü", "a/b", strings.Repeat("x", 250)} {
		if plan.TopicName(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestCollision(t *testing.T) {
	if other, ok := plan.Collision("x_y", []string{"z", "x.y"}); !ok || other != "x.y" {
		t.Errorf("x_y beside x.y: %q %v", other, ok)
	}
	if _, ok := plan.Collision("x.y", []string{"x.y", "xy"}); ok {
		t.Error("a topic collides with itself")
	}
}

func TestNearest(t *testing.T) {
	known := []string{"orders", "order-items", "payments", "list", "delete"}
	for typed, want := range map[string]string{
		"oders": "orders", "ordres": "orders", "paymnets": "payments", "lsit": "list", "ORDERS": "orders",
		"zzz": "", "o": "", "completely-else": "",
	} {
		if got, _ := plan.Nearest(typed, known); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

func TestParseAssignment(t *testing.T) {
	got, err := plan.ParseAssignment("3:1:2,1:2:3")
	want := [][]cluster.BrokerID{{3, 1, 2}, {1, 2, 3}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v %v: the order must be kept", got, err)
	}
	for _, bad := range []string{"", "1:2,1", "1:1", "1:x", "-1", "1,,2"} {
		if _, err := plan.ParseAssignment(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestNewTopicValidate(t *testing.T) {
	for _, bad := range []plan.NewTopic{
		{Name: "a", Partitions: 0, ReplicationFactor: 1}, {Name: "a", Partitions: -2, ReplicationFactor: 1},
		{Name: "a", Partitions: 1, ReplicationFactor: 0}, {Name: "a", Partitions: plan.PartitionsMax + 1, ReplicationFactor: 1},
		{Name: "..", Partitions: 1, ReplicationFactor: 1},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	ok := plan.NewTopic{Name: "a", Partitions: -1, ReplicationFactor: -1}
	if err := ok.Validate(); err != nil {
		t.Errorf("the brokers' defaults: %v", err)
	}
}

func TestParseConfigs(t *testing.T) {
	got, err := plan.ParseConfigs([]string{"a=b=c", "d="})
	if err != nil || got["a"] != "b=c" || got["d"] != "" || len(got) != 2 {
		t.Errorf("got %v %v", got, err)
	}
	for _, bad := range [][]string{{"a"}, {"=b"}, {"a=1", "a=2"}} {
		if _, err := plan.ParseConfigs(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestPreferred(t *testing.T) {
	part := func(n int32, leader cluster.BrokerID, replicas, isr []cluster.BrokerID) model.Partition {
		return model.Partition{Topic: "t", Partition: n, Leader: leader, Replicas: replicas, ISR: isr}
	}
	ids := func(n ...cluster.BrokerID) []cluster.BrokerID { return n }
	s := &model.Snapshot{Topics: []model.Topic{{Name: "t", Partitions: []model.Partition{
		part(0, 2, ids(1, 2), ids(2, 1)), part(1, 1, ids(1, 2), ids(1, 2)), part(2, 2, ids(3, 2), ids(2, 3)),
		part(3, 2, ids(1, 2), ids(2)), part(4, -1, ids(1, 2), ids(1)), part(5, 2, nil, nil),
	}}}}
	live := map[cluster.BrokerID]bool{1: true, 2: true}
	got, missing := plan.Preferred(s, live, nil)
	want := []plan.ElectionAction{plan.Move, plan.NotNeeded, plan.Impossible, plan.Impossible, plan.Move, plan.Impossible}
	for i, e := range got {
		if e.Action != want[i] || (e.Reason == "") != (e.Action == plan.Move) {
			t.Errorf("partition %d: %s (%s), want %s", i, e.Action, e.Reason, want[i])
		}
	}
	if len(missing) != 0 || len(plan.Moves(got)) != 2 {
		t.Errorf("missing %v, moves %v", missing, plan.Moves(got))
	}
	_, missing = plan.Preferred(s, live, []plan.Target{{Topic: "t", Partitions: []int32{0, 9}}, {Topic: "u"}})
	if fmt.Sprint(missing) != "[{t [9]} {u []}]" {
		t.Errorf("missing %v", missing)
	}
}
