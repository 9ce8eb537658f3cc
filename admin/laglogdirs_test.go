package admin

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
)

// TestLagFromLogDirs: where a broker does not tell a position, the lag of its log directories is shown and named; a copy
// that is only being made does not count.
func TestLagFromLogDirs(t *testing.T) {
	rows := []*model.ReplicaPosition{
		{Topic: "t", Partition: 0, LagRecords: -1, Err: "NOT_LEADER_OR_FOLLOWER"}, {Topic: "t", Partition: 1, LagRecords: -1, Err: "NOT_LEADER_OR_FOLLOWER"},
	}
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	resp.Dirs = []kmsg.DescribeLogDirsResponseDir{
		{ErrorCode: 56, Topics: []kmsg.DescribeLogDirsResponseDirTopic{{Topic: "t", Partitions: []kmsg.DescribeLogDirsResponseDirTopicPartition{{Partition: 1, OffsetLag: 9}}}}},
		{Topics: []kmsg.DescribeLogDirsResponseDirTopic{{Topic: "t", Partitions: []kmsg.DescribeLogDirsResponseDirTopicPartition{
			{Partition: 0, OffsetLag: 7}, {Partition: 1, OffsetLag: 3, IsFuture: true},
		}}}},
	}
	applyLogDirs(rows, resp)
	if rows[0].LagRecords != 7 || !strings.Contains(rows[0].Err, "NOT_LEADER_OR_FOLLOWER") || !strings.Contains(rows[0].Err, "log directories") {
		t.Errorf("%+v", rows[0])
	}
	if rows[1].LagRecords != -1 || rows[1].Err != "NOT_LEADER_OR_FOLLOWER" {
		t.Errorf("%+v", rows[1])
	}
}
