//go:build peers && secure

package admin

import (
	"context"
	"os"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	probeGroup = "kctl-permission-group"
	probeNone  = "kctl-permission-none" // a topic and a group that do not exist
	onCluster  = " on the cluster"
	onTopic    = " on the topic"
	onGroup    = " on the group"
	onTxn      = " on the transactional id"
)

// probes are the requests of the table, made so that they change nothing once they are allowed.
func (p *permissionPeer) probes() []permissionProbe {
	id := "kctl-permission-txn"
	out := []permissionProbe{{"Produce", kmsg.Produce, []string{"Write" + onTopic}, func(ctx context.Context) (kmsg.Response, error) {
		return nil, p.user.ProduceSync(ctx, &kgo.Record{Value: []byte("x")}).FirstErr()
	}}}
	add := func(name string, req kmsg.Request, want ...string) {
		out = append(out, permissionProbe{name, kmsg.Key(req.Key()), want, func(ctx context.Context) (kmsg.Response, error) {
			return p.user.SeedBrokers()[0].Request(ctx, req)
		}})
	}
	add("Fetch", p.fetch(), "Read"+onTopic)
	add("ListOffsets", p.listOffsets(), "Describe"+onTopic)
	add("Metadata", p.metadata(), "Describe"+onTopic)
	add("OffsetCommit", p.offsetCommit(), "Read"+onGroup, "Read"+onTopic)
	add("OffsetFetch", p.offsetFetch(), "Describe"+onGroup, "Describe"+onTopic)
	find := func(kind int8, key string) *kmsg.FindCoordinatorRequest {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.CoordinatorType, r.CoordinatorKey, r.CoordinatorKeys = kind, key, []string{key}
		return r
	}
	add("FindCoordinator of a group", find(0, probeGroup), "Describe"+onGroup)
	add("FindCoordinator of a transaction", find(1, id), "Describe"+onTxn)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis = probeNone, "consumer", 10_000
	add("JoinGroup", join, "Read"+onGroup)
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Groups = []string{probeGroup}
	add("DescribeGroups", groups, "Describe"+onGroup)
	add("ListGroups", kmsg.NewPtrListGroupsRequest())
	gone := kmsg.NewPtrDeleteGroupsRequest()
	gone.Groups = []string{probeNone}
	add("DeleteGroups", gone, "Delete"+onGroup)
	add("OffsetDelete", p.offsetDelete(), "Delete"+onGroup, "Read"+onTopic)
	initID := kmsg.NewPtrInitProducerIDRequest()
	add("InitProducerID", initID, "IdempotentWrite"+onCluster)
	transactional := kmsg.NewPtrInitProducerIDRequest()
	transactional.TransactionalID, transactional.TransactionTimeoutMillis = &id, 60_000
	add("InitProducerID of a transaction", transactional, "Write"+onTxn)
	add("WriteTxnMarkers", p.markers(), "ClusterAction"+onCluster)
	add("ListTransactions", kmsg.NewPtrListTransactionsRequest())
	transactions := kmsg.NewPtrDescribeTransactionsRequest()
	transactions.TransactionalIDs = []string{id}
	add("DescribeTransactions", transactions, "Describe"+onTxn)
	producers := kmsg.NewPtrDescribeProducersRequest()
	pt := kmsg.NewDescribeProducersRequestTopic()
	pt.Topic, pt.Partitions = p.topic, []int32{0}
	producers.Topics = append(producers.Topics, pt)
	add("DescribeProducers", producers, "Read"+onTopic)
	p.changes(add)
	if os.Getenv("KCTL_PEER_KIND") == "kraft" {
		p.kraft(add)
	}
	return out
}

// kraft are requests that clusters with ZooKeeper do not know.
func (p *permissionPeer) kraft(add func(string, kmsg.Request, ...string)) {
	quorum := kmsg.NewPtrDescribeQuorumRequest()
	qt := kmsg.NewDescribeQuorumRequestTopic()
	qt.Topic, qt.Partitions = "__cluster_metadata", append(qt.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	quorum.Topics = append(quorum.Topics, qt)
	add("DescribeQuorum", quorum, "Describe"+onCluster)
	described := kmsg.NewPtrConsumerGroupDescribeRequest()
	described.Groups = []string{probeGroup}
	if r, err := p.super.SeedBrokers()[0].Request(p.ctx, described); err == nil && r.(*kmsg.ConsumerGroupDescribeResponse).Groups[0].ErrorCode != kerr.UnsupportedVersion.Code {
		add("ConsumerGroupDescribe", described, "Describe"+onGroup) // 3.9 has no such groups unless it is told to
	}
}

// changes are the requests of an administrator.
func (p *permissionPeer) changes(add func(string, kmsg.Request, ...string)) {
	create := kmsg.NewPtrCreateTopicsRequest()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = probeNone, 1, 1
	create.Topics, create.ValidateOnly, create.TimeoutMillis = append(create.Topics, ct), true, 10_000
	add("CreateTopics", create, "Create"+onTopic)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	dt, none := kmsg.NewDeleteTopicsRequestTopic(), probeNone
	dt.Topic = &none
	remove.TopicNames, remove.Topics, remove.TimeoutMillis = []string{none}, append(remove.Topics, dt), 10_000
	add("DeleteTopics", remove, "Delete"+onTopic)
	more := kmsg.NewPtrCreatePartitionsRequest()
	mt := kmsg.NewCreatePartitionsRequestTopic()
	mt.Topic, mt.Count = p.topic, 2
	more.Topics, more.ValidateOnly, more.TimeoutMillis = append(more.Topics, mt), true, 10_000
	add("CreatePartitions", more, "Alter"+onTopic)

	rules := kmsg.NewPtrDescribeACLsRequest()
	rules.ResourceType, rules.ResourcePatternType, rules.Operation, rules.PermissionType = kmsg.ACLResourceTypeUser, kmsg.ACLResourcePatternTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	add("DescribeACLs", rules, "Describe"+onCluster)
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.ResourcePatternType = kmsg.ACLResourceTypeTopic, probeNone, kmsg.ACLResourcePatternTypeLiteral
	creation.Principal, creation.Host, creation.Operation, creation.PermissionType = "User:kctl-permission-other", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
	rule := kmsg.NewPtrCreateACLsRequest()
	rule.Creations = append(rule.Creations, creation)
	add("CreateACLs", rule, "Alter"+onCluster)
	filter := kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName, filter.ResourcePatternType = kmsg.ACLResourceTypeTopic, kmsg.StringPtr("kctl-permission-no-rule"), kmsg.ACLResourcePatternTypeLiteral
	filter.Operation, filter.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	unrule := kmsg.NewPtrDeleteACLsRequest()
	unrule.Filters = append(unrule.Filters, filter)
	add("DeleteACLs", unrule, "Alter"+onCluster)
	p.configChanges(add)

	move := kmsg.NewPtrAlterReplicaLogDirsRequest()
	dir := kmsg.NewAlterReplicaLogDirsRequestDir()
	lt := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
	lt.Topic, lt.Partitions = p.topic, []int32{0}
	dir.Dir, dir.Topics = "/kctl/no/such/directory", append(dir.Topics, lt)
	move.Dirs = append(move.Dirs, dir)
	add("AlterReplicaLogDirs", move, "Alter"+onCluster)
	add("DescribeLogDirs", kmsg.NewPtrDescribeLogDirsRequest(), "Describe"+onCluster)
	elect := kmsg.NewPtrElectLeadersRequest()
	et := kmsg.NewElectLeadersRequestTopic()
	et.Topic, et.Partitions = p.topic, []int32{0}
	elect.Topics, elect.TimeoutMillis = append(elect.Topics, et), 10_000
	add("ElectLeaders", elect, "Alter"+onCluster)
	assign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	at := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	ap := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition() // without replicas: a cancellation, of nothing
	at.Topic, at.Partitions = p.topic, append(at.Partitions, ap)
	assign.Topics, assign.TimeoutMillis = append(assign.Topics, at), 10_000
	add("AlterPartitionAssignments", assign, "Alter"+onCluster)
	moves := kmsg.NewPtrListPartitionReassignmentsRequest()
	moves.TimeoutMillis = 10_000
	add("ListPartitionReassignments", moves, "Describe"+onCluster)
}

func (p *permissionPeer) configChanges(add func(string, kmsg.Request, ...string)) {
	for _, r := range []struct {
		what string
		kind kmsg.ConfigResourceType
		name string
		on   string
	}{{"topic", kmsg.ConfigResourceTypeTopic, p.topic, onTopic}, {"broker", kmsg.ConfigResourceTypeBroker, "1", onCluster}} {
		read := kmsg.NewPtrDescribeConfigsRequest()
		rr := kmsg.NewDescribeConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = r.kind, r.name
		read.Resources = append(read.Resources, rr)
		add("DescribeConfigs of a "+r.what, read, "DescribeConfigs"+r.on)
		alter := kmsg.NewPtrAlterConfigsRequest()
		ar := kmsg.NewAlterConfigsRequestResource()
		ar.ResourceType, ar.ResourceName = r.kind, r.name
		alter.Resources, alter.ValidateOnly = append(alter.Resources, ar), true
		add("AlterConfigs of a "+r.what, alter, "AlterConfigs"+r.on)
		step := kmsg.NewPtrIncrementalAlterConfigsRequest()
		ir := kmsg.NewIncrementalAlterConfigsRequestResource()
		ir.ResourceType, ir.ResourceName = r.kind, r.name
		step.Resources, step.ValidateOnly = append(step.Resources, ir), true
		add("IncrementalAlterConfigs of a "+r.what, step, "AlterConfigs"+r.on)
	}
	add("DescribeClientQuotas", kmsg.NewPtrDescribeClientQuotasRequest(), "DescribeConfigs"+onCluster)
	quotas := kmsg.NewPtrAlterClientQuotasRequest()
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	entity := kmsg.NewAlterClientQuotasRequestEntryEntity()
	entity.Type, entity.Name = "user", kmsg.StringPtr("kctl-permission-other")
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Value = "producer_byte_rate", 1000
	entry.Entity, entry.Ops = append(entry.Entity, entity), append(entry.Ops, op)
	quotas.Entries, quotas.ValidateOnly = append(quotas.Entries, entry), true
	add("AlterClientQuotas", quotas, "AlterConfigs"+onCluster)
	users := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	user := kmsg.NewDescribeUserSCRAMCredentialsRequestUser()
	user.Name = "kctl-permission-other"
	users.Users = append(users.Users, user)
	add("DescribeUserSCRAMCredentials", users, "Describe"+onCluster)
	forget := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	deletion := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
	deletion.Name, deletion.Mechanism = "kctl-permission-other", 1
	forget.Deletions = append(forget.Deletions, deletion)
	add("AlterUserSCRAMCredentials", forget, "Alter"+onCluster)
}

func (p *permissionPeer) fetch() kmsg.Request {
	r := kmsg.NewPtrFetchRequest()
	ft := kmsg.NewFetchRequestTopic()
	part := kmsg.NewFetchRequestTopicPartition()
	part.PartitionMaxBytes = 1000
	ft.Topic, ft.TopicID, ft.Partitions = p.topic, p.id, append(ft.Partitions, part)
	r.ReplicaID, r.SessionEpoch, r.MaxBytes, r.Topics = -1, -1, 1000, append(r.Topics, ft)
	return r
}

func (p *permissionPeer) listOffsets() kmsg.Request {
	r := kmsg.NewPtrListOffsetsRequest()
	lt := kmsg.NewListOffsetsRequestTopic()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp = -1
	lt.Topic, lt.Partitions = p.topic, append(lt.Partitions, part)
	r.ReplicaID, r.Topics = -1, append(r.Topics, lt)
	return r
}

func (p *permissionPeer) metadata() kmsg.Request {
	r := kmsg.NewPtrMetadataRequest()
	mt := kmsg.NewMetadataRequestTopic()
	mt.Topic = &p.topic
	r.Topics = append(r.Topics, mt)
	return r
}

func (p *permissionPeer) offsetCommit() kmsg.Request {
	r := kmsg.NewPtrOffsetCommitRequest()
	ot := kmsg.NewOffsetCommitRequestTopic()
	ot.Topic, ot.TopicID, ot.Partitions = p.topic, p.id, append(ot.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	r.Group, r.Generation, r.Topics = probeGroup, -1, append(r.Topics, ot)
	return r
}

func (p *permissionPeer) offsetFetch() kmsg.Request {
	r := kmsg.NewPtrOffsetFetchRequest()
	ot := kmsg.NewOffsetFetchRequestTopic()
	ot.Topic, ot.Partitions = p.topic, []int32{0}
	g := kmsg.NewOffsetFetchRequestGroup()
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.TopicID, gt.Partitions = p.topic, p.id, []int32{0}
	g.Group, g.Topics = probeGroup, append(g.Topics, gt)
	r.Group, r.Topics, r.Groups = probeGroup, append(r.Topics, ot), append(r.Groups, g)
	return r
}

func (p *permissionPeer) offsetDelete() kmsg.Request {
	r := kmsg.NewPtrOffsetDeleteRequest()
	ot := kmsg.NewOffsetDeleteRequestTopic()
	ot.Topic, ot.Partitions = p.topic, append(ot.Partitions, kmsg.NewOffsetDeleteRequestTopicPartition())
	r.Group, r.Topics = probeGroup, append(r.Topics, ot)
	return r
}

// markers are for a topic that does not exist.
func (p *permissionPeer) markers() kmsg.Request {
	r := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	mt := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	mt.Topic, mt.Partitions = probeNone, []int32{0}
	m.ProducerID, m.Topics = 4_000_000, append(m.Topics, mt)
	r.Markers = append(r.Markers, m)
	return r
}
