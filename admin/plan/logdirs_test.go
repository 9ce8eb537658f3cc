package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func twoDirs() []model.LogDir {
	return []model.LogDir{
		{Broker: 1, Path: "/a", Total: 1000, Usable: 100, Replicas: []model.DirReplica{{Topic: "t", Partition: 0, Size: 60}, {Topic: "t", Partition: 1, Size: 60}, {Topic: "t", Partition: 3, Size: 5}}},
		{Broker: 1, Path: "/b", Total: 1000, Usable: 100, Replicas: []model.DirReplica{{Topic: "t", Partition: 2, Size: 7}, {Topic: "t", Partition: 3, Size: 1, Future: true, Current: 5}}},
	}
}

func TestDirMoves(t *testing.T) {
	tp := func(n int32) cluster.TopicPartition { return cluster.TopicPartition{Topic: "t", Partition: n} }
	moves, err := plan.DirMoves(twoDirs(), 1, []cluster.TopicPartition{tp(0), tp(1), tp(2), tp(3), tp(4)}, "/b/")
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.DirMove{
		{Topic: "t", Partition: 0, Broker: 1, From: "/a", To: "/b", Size: 60, Action: plan.DirCopy},
		{Topic: "t", Partition: 1, Broker: 1, From: "/a", To: "/b", Size: 60, Action: plan.DirRefused, Reason: "60 bytes do not fit: 40 are usable on the volume of /b"},
		{Topic: "t", Partition: 2, Broker: 1, From: "/b", To: "/b", Size: 7, Action: plan.DirNotNeeded, Reason: "it is there already"},
		{Topic: "t", Partition: 3, Broker: 1, From: "/a", Moving: "/b", To: "/b", Size: 5, Action: plan.DirNotNeeded, Reason: "it is being moved there already"},
		{Topic: "t", Partition: 4, Broker: 1, To: "/b", Action: plan.DirPlace, Reason: "broker 1 has no such replica: it will be made there"},
	}
	if d := cmp.Diff(want, moves); d != "" {
		t.Error(d)
	}
	back, err := plan.DirMoves(twoDirs(), 1, []cluster.TopicPartition{tp(3)}, "/a")
	if err != nil || back[0].Action != plan.DirCancel || !back[0].Action.Writes() {
		t.Errorf("%+v %v", back, err)
	}
}

// TestDirMovesWithoutVolume: a broker before 3.3 does not tell its volumes, and nothing is refused for space.
func TestDirMovesWithoutVolume(t *testing.T) {
	dirs := twoDirs()
	dirs[1].Usable, dirs[1].Total = -1, -1
	moves, err := plan.DirMoves(dirs, 1, []cluster.TopicPartition{{Topic: "t"}, {Topic: "t", Partition: 1}}, "/b")
	if err != nil || moves[0].Action != plan.DirCopy || moves[1].Action != plan.DirCopy {
		t.Errorf("%+v %v", moves, err)
	}
}

func TestDirMovesRefused(t *testing.T) {
	for _, tt := range []struct {
		to, want string
		off      int
	}{
		{"/c", "no log directory /c: it has /a, /b", -1},
		{"/b", "directory /b of broker 1 is offline: disk", 1},
		{"/b", "/a of broker 1 is offline (disk)", 0},
	} {
		dirs := twoDirs()
		if tt.off >= 0 {
			dirs[tt.off].Err = "disk"
		}
		if _, err := plan.DirMoves(dirs, 1, nil, tt.to); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.to, err)
		}
	}
}

// TestExpectDir: a replica counts as being where the move under way leads.
func TestExpectDir(t *testing.T) {
	for _, tt := range []struct {
		partition int32
		dir, want string
	}{
		{0, "/a", ""}, {0, "/a/", ""}, {3, "/b", ""},
		{0, "/b", "t:0 on broker 1 is in /a, expected was /b"},
		{3, "/a", "t:3 on broker 1 is on its way to /b, expected was /a"},
		{9, "/a", "broker 1 has no replica of t:9, expected was one in /a"},
	} {
		moves, err := plan.DirMoves(twoDirs(), 1, []cluster.TopicPartition{{Topic: "t", Partition: tt.partition}}, "/a")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := plan.ExpectDir(moves, tt.dir); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("partition %d, %s: %q, want %q", tt.partition, tt.dir, got, tt.want)
		}
	}
}
