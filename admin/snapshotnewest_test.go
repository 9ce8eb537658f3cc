package admin

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// TestNewestDecides: a plan is not made of what a broker says that is behind: it names the leader and the replicas before the last
// reassignment, and a rollback to these would move the data back.
func TestNewestDecides(t *testing.T) {
	var brokers [2]*fakeBroker
	says := func(epoch int32, replicas ...int32) func(kmsg.Request) kmsg.Response {
		return func(kmsg.Request) kmsg.Response {
			r := kmsg.NewPtrMetadataResponse()
			id, name := "fake", "t"
			r.ClusterID, r.ControllerID, r.Brokers = &id, 1, append(r.Brokers, brokers[0].node(1), brokers[1].node(2))
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic = &name
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = replicas[0], epoch, replicas, replicas
			topic.Partitions = append(topic.Partitions, p)
			r.Topics = append(r.Topics, topic)
			return r
		}
	}
	none := func(kmsg.Request) kmsg.Response { return kmsg.NewPtrListPartitionReassignmentsResponse() }
	for i, epoch := range []int32{4, 7} { // broker 1, which is asked first, has just started
		replicas := [][]int32{{3, 4}, {1, 2}}[i]
		brokers[i] = startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
			kmsg.Metadata: says(epoch, replicas...), kmsg.ListPartitionReassignments: none,
		})
	}
	c := openFake(t, Config{}, brokers[0])
	view, _, _, _, err := c.ReassignSnapshot(t.Context(), ViaAPI, []string{"t"})
	if err != nil {
		t.Fatal(err)
	}
	if got := view.PartOf(cluster.TopicPartition{Topic: "t"}); fmt.Sprint(got.Replicas) != "[1 2]" {
		t.Errorf("reassign plans from %v", got.Replicas)
	}
	p, _, err := c.onePartition(t.Context(), cluster.TopicPartition{Topic: "t"})
	if err != nil || p.Leader != 1 || p.LeaderEpoch != 7 || fmt.Sprint(p.Replicas) != "[1 2]" {
		t.Errorf("elect leader plans from %+v, %v", p, err)
	}
}

// TestTakeNewer: only what is older goes, of the same topic.
func TestTakeNewer(t *testing.T) {
	part := func(topic string, n int32, leader cluster.BrokerID, epoch cluster.LeaderEpoch) model.Partition {
		return model.Partition{Topic: topic, Partition: n, Leader: leader, LeaderEpoch: epoch}
	}
	base := []model.Topic{
		{Name: "a", Partitions: []model.Partition{part("a", 0, 1, 3), part("a", 1, 1, 3), part("a", 2, 1, -1)}},
		{Name: "namesake", ID: cluster.TopicID{1}, Partitions: []model.Partition{part("namesake", 0, 1, 3)}},
		{Name: "only-here", Partitions: []model.Partition{part("only-here", 0, 1, 3)}},
	}
	takeNewer(base, []model.Topic{
		{Name: "a", Partitions: []model.Partition{part("a", 1, 2, 4), part("a", 0, 2, 2), part("a", 2, 2, -1), part("a", 3, 2, 9)}},
		{Name: "and-more", Partitions: []model.Partition{part("and-more", 0, 2, 9)}},
		{Name: "namesake", ID: cluster.TopicID{2}, Partitions: []model.Partition{part("namesake", 0, 2, 9)}},
		{Name: "z", Partitions: []model.Partition{part("z", 0, 2, 9)}},
	})
	var got []string
	for i := range base {
		for j := range base[i].Partitions {
			p := &base[i].Partitions[j]
			got = append(got, fmt.Sprintf("%s-%d:%d@%d", p.Topic, p.Partition, p.Leader, p.LeaderEpoch))
		}
	}
	if want := "[a-0:1@3 a-1:2@4 a-2:1@-1 namesake-0:1@3 only-here-0:1@3]"; fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}
