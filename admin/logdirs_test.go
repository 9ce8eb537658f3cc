package admin

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func describedDir(path string, code int16, parts ...kmsg.DescribeLogDirsResponseDirTopicPartition) kmsg.DescribeLogDirsResponseDir {
	d := kmsg.NewDescribeLogDirsResponseDir()
	d.Dir, d.ErrorCode = path, code
	t := kmsg.NewDescribeLogDirsResponseDirTopic()
	t.Topic, t.Partitions = "t", parts
	d.Topics = append(d.Topics, t)
	return d
}

func described(n int32, size, lag int64, future bool) kmsg.DescribeLogDirsResponseDirTopicPartition {
	return kmsg.DescribeLogDirsResponseDirTopicPartition{Partition: n, Size: size, OffsetLag: lag, IsFuture: future}
}

// TestLogDirsFrom: an answer becomes sorted directories, each future replica with the size of the one in use.
func TestLogDirsFrom(t *testing.T) {
	r := &kmsg.DescribeLogDirsResponse{Dirs: []kmsg.DescribeLogDirsResponseDir{
		describedDir("/b", 0, described(3, 4, 0, false), described(0, 50, 9, true)), describedDir("/a", 0, described(0, 200, 0, false)), describedDir("/c", 56)}}
	dirs, err := logDirsFrom(1, r, nil)
	if err != nil || len(dirs) != 3 || dirs[0].Path != "/a" || dirs[2].Err == "" || dirs[2].Online() {
		t.Fatalf("%+v %v", dirs, err)
	}
	if f := dirs[1].Replicas[0]; !f.Future || f.Current != 200 || f.Progress() != 25 {
		t.Errorf("%+v", f)
	}
	if _, err := logDirsFrom(1, &kmsg.DescribeLogDirsResponse{}, nil); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("no directories at all: %v", err)
	}
	if _, err := logDirsFrom(1, &kmsg.DescribeLogDirsResponse{ErrorCode: 31}, nil); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("refused: %v", err)
	}
}

// TestSettleDirMoves: each move is judged by where its replica is now.
func TestSettleDirMoves(t *testing.T) {
	results := make([]DirMoveResult, 6)
	for i := range results {
		results[i] = DirMoveResult{Accepted: true, DirMove: plan.DirMove{Topic: "t", Partition: int32(i), From: "/a", To: "/b", Action: plan.DirCopy}}
	}
	results[4].Action = plan.DirPlace
	results[5].Accepted = false
	dirs := []model.LogDir{
		{Path: "/a", Replicas: []model.DirReplica{{Topic: "t", Partition: 1, Size: 100}, {Topic: "t", Partition: 2, Size: 10}}},
		{Path: "/b", Replicas: []model.DirReplica{{Topic: "t", Partition: 0, Size: 40}, {Topic: "t", Partition: 1, Size: 30, Future: true}}},
		{Path: "/c", Replicas: []model.DirReplica{{Topic: "t", Partition: 2, Size: 1, Future: true}}},
	}
	p := settleDirMoves(results, dirs)
	if p != (DirProgress{Done: 3, Moves: 4, Copied: 70, Bytes: 150}) {
		t.Errorf("%+v", p)
	}
	for i, want := range []string{"", "", "the replica is moved to /c instead", "the broker has no such replica any more", "", ""} {
		if results[i].Err != want || results[i].Done != (i == 0) {
			t.Errorf("%d: done %v, %q", i, results[i].Done, results[i].Err)
		}
	}
	dirs[1].Err = "disk"
	if p := settleDirMoves(results, dirs); p.Done != p.Moves || results[1].Err != "/b: disk" {
		t.Errorf("%+v %q", p, results[1].Err)
	}
}

// TestMoveUnderWayIsAwaited: a replica that an earlier order moves to the same place is nothing to send, and still waited for.
func TestMoveUnderWayIsAwaited(t *testing.T) {
	dirs := []model.LogDir{
		{Path: "/a", Replicas: []model.DirReplica{{Topic: "t", Partition: 0, Size: 100}, {Topic: "t", Partition: 1, Size: 5}}},
		{Path: "/b", Replicas: []model.DirReplica{{Topic: "t", Partition: 0, Size: 30, Future: true}, {Topic: "t", Partition: 2, Size: 5}}},
	}
	moves, err := plan.DirMoves(dirs, 1, []cluster.TopicPartition{{Topic: "t"}, {Topic: "t", Partition: 2}}, "/b")
	if err != nil {
		t.Fatal(err)
	}
	results, err := (&Client{}).MoveDirs(t.Context(), moves) // nothing is sent: there is no broker
	if err != nil || !waitsFor(&results[0]) || waitsFor(&results[1]) {
		t.Fatalf("%+v %v", results, err)
	}
	if p := settleDirMoves(results, dirs); p != (DirProgress{Moves: 1, Copied: 30, Bytes: 100}) || results[0].Done {
		t.Errorf("%+v %+v", p, results[0])
	}
	dirs[1].Replicas[0].Future, dirs[0].Replicas = false, nil
	if p := settleDirMoves(results, dirs); p.Done != 1 || !results[0].Done {
		t.Errorf("%+v %+v", p, results[0])
	}
}
