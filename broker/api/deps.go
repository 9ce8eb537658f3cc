package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/config"
	"kctl/broker/groupshell"
	"kctl/broker/metadata"
	"kctl/broker/replicashell"
	"kctl/broker/topicadmin"
	"kctl/zkutil/cluster"
)

// Data is the replica manager as clients and followers use it.
type Data interface {
	Produce(ctx context.Context, acks int16, timeout time.Duration, parts []replicashell.ProducePartition, done func([]replicashell.ProduceResult))
	Fetch(ctx context.Context, params replicashell.FetchParams, parts, forgotten []replicashell.FetchPartition) replicashell.FetchAnswer
	ListOffsets(ctx context.Context, req *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse
	OffsetForLeaderEpoch(ctx context.Context, req *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse
}

// RecordDeleter is a replica manager that can move log starts up; without it DeleteRecords is not announced.
type RecordDeleter interface {
	DeleteRecords(ctx context.Context, req *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse
}

// Replication is the replica manager as the controller and tools use it.
type Replication interface {
	HandleLeaderAndISR(ctx context.Context, req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse
	HandleStopReplica(ctx context.Context, req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse
	DescribeLogDirs(ctx context.Context, req *kmsg.DescribeLogDirsRequest) *kmsg.DescribeLogDirsResponse
	BrokersChanged()
}

// Controller is the controller of this broker, active or not.
type Controller interface {
	IsActive() bool
	HandleAlterPartition(ctx context.Context, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse
	HandleControlledShutdown(ctx context.Context, req *kmsg.ControlledShutdownRequest) *kmsg.ControlledShutdownResponse
	HandleElectLeaders(ctx context.Context, req *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse
	Reassigner
}

// Reassigner is the controller as admins move partitions with it.
type Reassigner interface {
	HandleAlterPartitionAssignments(ctx context.Context, req *kmsg.AlterPartitionAssignmentsRequest) *kmsg.AlterPartitionAssignmentsResponse
	HandleListPartitionReassignments(ctx context.Context, req *kmsg.ListPartitionReassignmentsRequest) *kmsg.ListPartitionReassignmentsResponse
}

// GroupMembers is the group coordinator as members of groups use it.
type GroupMembers interface {
	FindCoordinator(ctx context.Context, client groupshell.ClientInfo, req *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse
	JoinGroup(ctx context.Context, client groupshell.ClientInfo, req *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse
	SyncGroup(ctx context.Context, req *kmsg.SyncGroupRequest) *kmsg.SyncGroupResponse
	Heartbeat(ctx context.Context, req *kmsg.HeartbeatRequest) *kmsg.HeartbeatResponse
	LeaveGroup(ctx context.Context, req *kmsg.LeaveGroupRequest) *kmsg.LeaveGroupResponse
}

// GroupOffsets is the group coordinator's store of offsets.
type GroupOffsets interface {
	OffsetCommit(ctx context.Context, req *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse
	OffsetFetch(ctx context.Context, req *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse
	OffsetDelete(ctx context.Context, req *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse
}

// GroupAdmin is the group coordinator as tools use it.
type GroupAdmin interface {
	DescribeGroups(ctx context.Context, req *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse
	ListGroups(ctx context.Context, req *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse
	DeleteGroups(ctx context.Context, req *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse
}

// Topics writes topics into ZooKeeper; see topicadmin.Admin.
type Topics interface {
	CheckNew(ctx context.Context, name string, existing []string) error
	Create(ctx context.Context, name string, assignment map[int32][]cluster.BrokerID, configs map[string]string) (cluster.TopicID, error)
	Delete(ctx context.Context, name string) error
	Gone(ctx context.Context, name string) error
	AddPartitions(ctx context.Context, name string, g topicadmin.Growth) error
}

// ProducerIDs hands out producer ids.
type ProducerIDs interface {
	Next(ctx context.Context) (int64, error)
	Block(ctx context.Context, broker cluster.BrokerID) (first int64, length int32, err error)
}

// Deps are the parts of a broker that requests reach. All are required except Registerer.
type Deps struct {
	BrokerID    cluster.BrokerID
	BrokerEpoch func() cluster.BrokerEpoch
	ClusterID   string
	Static      *config.Broker
	Dynamic     *config.Dynamic
	Metadata    *metadata.Cache

	Data        Data
	Replication Replication
	Controller  Controller
	Members     GroupMembers
	Offsets     GroupOffsets
	Groups      GroupAdmin
	Topics      Topics
	ProducerIDs ProducerIDs

	// NewReplica reports whether this broker has no log of the partition yet: then the topic's configuration
	// is read before LeaderAndISR is applied.
	NewReplica func(tp cluster.TopicPartition) bool

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}
