package api

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/config"
	"kctl/broker/groupshell"
	"kctl/broker/metadata"
	"kctl/broker/replicashell"
	"kctl/broker/topicadmin"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// fakes answer every request with an empty answer; tests replace what they look at.
type fakes struct {
	passive atomic.Bool // not the controller
	produce func(acks int16, parts []replicashell.ProducePartition) []replicashell.ProduceResult

	mu      sync.Mutex // guards created
	created map[string]map[int32][]cluster.BrokerID
}

func empty[R kmsg.Response](req kmsg.Request) R { return req.ResponseKind().(R) }

func (f *fakes) Produce(_ context.Context, acks int16, _ time.Duration, parts []replicashell.ProducePartition, done func([]replicashell.ProduceResult)) {
	if f.produce != nil {
		done(f.produce(acks, parts))
		return
	}
	out := make([]replicashell.ProduceResult, len(parts))
	for i, p := range parts {
		out[i] = replicashell.ProduceResult{TP: p.TP}
	}
	done(out)
}

func (f *fakes) Fetch(_ context.Context, _ replicashell.FetchParams, parts, _ []replicashell.FetchPartition) replicashell.FetchAnswer {
	a := replicashell.FetchAnswer{}
	for _, p := range parts {
		a.Results = append(a.Results, replicashell.FetchResult{TP: p.TP, TopicID: p.TopicID, Err: 3})
	}
	return a
}

func (f *fakes) ListOffsets(_ context.Context, r *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	return empty[*kmsg.ListOffsetsResponse](r)
}
func (f *fakes) OffsetForLeaderEpoch(_ context.Context, r *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse {
	return empty[*kmsg.OffsetForLeaderEpochResponse](r)
}
func (f *fakes) DeleteRecords(_ context.Context, r *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse {
	return empty[*kmsg.DeleteRecordsResponse](r)
}
func (f *fakes) HandleLeaderAndISR(_ context.Context, r *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	return empty[*kmsg.LeaderAndISRResponse](r)
}
func (f *fakes) HandleStopReplica(_ context.Context, r *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	return empty[*kmsg.StopReplicaResponse](r)
}
func (f *fakes) DescribeLogDirs(_ context.Context, r *kmsg.DescribeLogDirsRequest) *kmsg.DescribeLogDirsResponse {
	return empty[*kmsg.DescribeLogDirsResponse](r)
}
func (f *fakes) AlterReplicaLogDirs(_ context.Context, r *kmsg.AlterReplicaLogDirsRequest) *kmsg.AlterReplicaLogDirsResponse {
	return empty[*kmsg.AlterReplicaLogDirsResponse](r)
}
func (f *fakes) BrokersChanged() {}
func (f *fakes) IsActive() bool  { return !f.passive.Load() }
func (f *fakes) HandleAlterPartition(_ context.Context, r *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	return empty[*kmsg.AlterPartitionResponse](r)
}
func (f *fakes) HandleControlledShutdown(_ context.Context, r *kmsg.ControlledShutdownRequest) *kmsg.ControlledShutdownResponse {
	return empty[*kmsg.ControlledShutdownResponse](r)
}
func (f *fakes) HandleElectLeaders(_ context.Context, r *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	return empty[*kmsg.ElectLeadersResponse](r)
}
func (f *fakes) HandleAlterPartitionAssignments(_ context.Context, r *kmsg.AlterPartitionAssignmentsRequest) *kmsg.AlterPartitionAssignmentsResponse {
	return empty[*kmsg.AlterPartitionAssignmentsResponse](r)
}
func (f *fakes) HandleListPartitionReassignments(_ context.Context, r *kmsg.ListPartitionReassignmentsRequest) *kmsg.ListPartitionReassignmentsResponse {
	return empty[*kmsg.ListPartitionReassignmentsResponse](r)
}
func (f *fakes) FindCoordinator(_ context.Context, _ groupshell.ClientInfo, r *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	return empty[*kmsg.FindCoordinatorResponse](r)
}
func (f *fakes) JoinGroup(_ context.Context, _ groupshell.ClientInfo, r *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse {
	return empty[*kmsg.JoinGroupResponse](r)
}
func (f *fakes) SyncGroup(_ context.Context, r *kmsg.SyncGroupRequest) *kmsg.SyncGroupResponse {
	return empty[*kmsg.SyncGroupResponse](r)
}
func (f *fakes) Heartbeat(_ context.Context, r *kmsg.HeartbeatRequest) *kmsg.HeartbeatResponse {
	return empty[*kmsg.HeartbeatResponse](r)
}
func (f *fakes) LeaveGroup(_ context.Context, r *kmsg.LeaveGroupRequest) *kmsg.LeaveGroupResponse {
	return empty[*kmsg.LeaveGroupResponse](r)
}
func (f *fakes) OffsetCommit(_ context.Context, r *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	return empty[*kmsg.OffsetCommitResponse](r)
}
func (f *fakes) OffsetFetch(_ context.Context, r *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	return empty[*kmsg.OffsetFetchResponse](r)
}
func (f *fakes) OffsetDelete(_ context.Context, r *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	return empty[*kmsg.OffsetDeleteResponse](r)
}
func (f *fakes) DescribeGroups(_ context.Context, r *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse {
	return empty[*kmsg.DescribeGroupsResponse](r)
}
func (f *fakes) ListGroups(_ context.Context, r *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse {
	return empty[*kmsg.ListGroupsResponse](r)
}
func (f *fakes) DeleteGroups(_ context.Context, r *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse {
	return empty[*kmsg.DeleteGroupsResponse](r)
}
func (f *fakes) CheckNew(_ context.Context, name string, _ []string) error {
	return topicadmin.ValidateName(name)
}
func (f *fakes) Create(_ context.Context, name string, assignment map[int32][]cluster.BrokerID, _ map[string]string) (cluster.TopicID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.created != nil {
		f.created[name] = assignment
	}
	return cluster.TopicID{7}, nil
}

// creations returns the topics made so far.
func (f *fakes) creations() map[string]map[int32][]cluster.BrokerID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.created)
}
func (f *fakes) Delete(context.Context, string) error { return nil }
func (f *fakes) Gone(context.Context, string) error   { return nil }
func (f *fakes) AddPartitions(context.Context, string, topicadmin.Growth) error {
	return nil
}
func (f *fakes) Block(context.Context, cluster.BrokerID) (int64, int32, error) {
	return 4000, 1000, nil
}
func (f *fakes) Next(context.Context) (int64, error) { return 4000, nil }

// noZooKeeper is a client of an empty tree that refuses every write.
type noZooKeeper struct{}

func (noZooKeeper) Do(_ context.Context, _ uint64, reqs ...zkop.Request) []zkop.Response {
	out := make([]zkop.Response, len(reqs))
	for i := range out {
		out[i].Err = zkop.ErrNoNode
		if reqs[i].Kind == zkop.Create {
			out[i].Err = zkop.ErrNoAuth
		}
	}
	return out
}
func (noZooKeeper) Session() zkutil.Session                   { return zkutil.Session{} }
func (noZooKeeper) Subscribe() (<-chan zkutil.Notice, func()) { return nil, func() {} }
func (noZooKeeper) Close() error                              { return nil }

// newService returns a service over fakes, whose cache holds broker 1 and topic t with id 1 and two partitions.
func newService(t testing.TB, f *fakes, set ...string) *Service {
	t.Helper()
	props := map[string]string{"zookeeper.connect": "zk:1", "listeners": "PLAINTEXT://127.0.0.1:1", "broker.id": "1"}
	for _, s := range set {
		p, err := config.ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		props[p.Key] = p.Value
	}
	static, _, err := config.Load(props)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	cache := metadata.NewCache()
	if err := cache.Apply(clusterUpdate()); err != nil {
		t.Fatal(err)
	}
	return New(Deps{
		BrokerID: 1, BrokerEpoch: func() cluster.BrokerEpoch { return 5 }, ClusterID: "cluster", Static: static,
		Dynamic: config.NewDynamic(static, 1, noZooKeeper{}, log), Metadata: cache,
		Data: f, Replication: f, Controller: f, Members: f, Offsets: f, Groups: f, Topics: f, ProducerIDs: f,
		NewReplica: func(cluster.TopicPartition) bool { return true }, Logger: log,
	})
}

func clusterUpdate() *kmsg.UpdateMetadataRequest {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.ControllerEpoch = 8, 1, 1
	for _, id := range []int32{1, 2} {
		b := kmsg.NewUpdateMetadataRequestLiveBroker()
		b.ID = id
		e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
		e.Host, e.Port, e.ListenerName = "host", 9090+id, "PLAINTEXT"
		b.Endpoints = append(b.Endpoints, e)
		req.LiveBrokers = append(req.LiveBrokers, b)
	}
	st := kmsg.NewUpdateMetadataRequestTopicState()
	st.Topic, st.TopicID = "t", [16]byte{1}
	for i := range int32(2) {
		p := kmsg.NewUpdateMetadataRequestTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = i, 1+i, 3, []int32{1 + i}, []int32{1 + i}
		st.PartitionStates = append(st.PartitionStates, p)
	}
	req.TopicStates = append(req.TopicStates, st)
	return req
}
