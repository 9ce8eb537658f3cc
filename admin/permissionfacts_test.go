package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/plan"
)

// permissionFacts is what Apache Kafka asks for, request by request. docs is the row or rows of "Operations and Resources on
// Protocols" (section 7.4, Authorization and ACLs, of the documentation of 3.9); code is where a broker in ZooKeeper mode (K, KafkaApis)
// or a controller in KRaft mode (C, ControllerApis, behind a broker that forwards) authorizes it, where that says more than the
// documentation or something else. An allowing rule for Read, Write, Delete or Alter holds for Describe too, and one for
// AlterConfigs for DescribeConfigs (AclAuthorizer and StandardAuthorizer).
var permissionFacts = []struct {
	key        kmsg.Key
	want       permission
	docs, code string
}{
	{kmsg.Produce, permission{topic: "Write", transactional: "Write", cluster: "IdempotentWrite"}, "Write TransactionalId, IdempotentWrite Cluster, Write Topic",
		"K.handleProduceRequest: no check of the cluster since 2.8 (KIP-679); older brokers answer CLUSTER_AUTHORIZATION_FAILED"},
	{kmsg.Fetch, permission{topic: "Read"}, "ClusterAction Cluster, Read Topic", "K.handleFetchRequest: ClusterAction is for followers, whose refusal names the topic; C.handleFetch is for members of the quorum"},
	{kmsg.ListOffsets, permission{topic: "Describe"}, "Describe Topic", "K.handleListOffsetRequest"},
	{kmsg.Metadata, permission{topic: "Describe"}, "Describe Topic, Create Cluster, Create Topic", "K.handleTopicMetadataRequest: Create is for auto-creation, which kctl never asks for"},
	{kmsg.OffsetCommit, permission{topic: "Read", group: "Read"}, "Read Group, Read Topic", "K.handleOffsetCommitRequest: the group first"},
	{kmsg.OffsetFetch, permission{topic: "Describe", group: "Describe"}, "Describe Group, Describe Topic", "K.handleOffsetFetchRequestFromCoordinator: with all topics asked for, those without Describe are left out"},
	{kmsg.FindCoordinator, permission{group: "Describe", transactional: "Describe"}, "Describe Group, Describe TransactionalId", "K.getCoordinator: that of a share partition takes ClusterAction, only brokers ask for it"},
	{kmsg.JoinGroup, permission{group: "Read"}, "Read Group", "K.handleJoinGroupRequest; SyncGroup, Heartbeat and LeaveGroup take the same"},
	{kmsg.DescribeGroups, permission{group: "Describe"}, "Describe Group", "K.handleDescribeGroupsRequest"},
	{kmsg.ConsumerGroupDescribe, permission{group: "Describe", topic: "Describe"}, "Read Group", "K.handleConsumerGroupDescribe: Describe, not Read; from 4.0 on also Describe on every topic of the group's assignments"},
	{kmsg.ShareGroupDescribe, permission{group: "Describe", topic: "Describe"}, "Describe Group", "K.handleShareGroupDescribe: from 4.0 on also the topics of its assignments"},
	{kmsg.StreamsGroupDescribe, permission{group: "Describe", topic: "Describe"}, "", "not in 3.9; 4.1 K.handleStreamsGroupDescribe: also every topic of its topology"},
	{kmsg.ListGroups, permission{cluster: "Describe"}, "Describe Cluster, Describe Group", "K.handleListGroupsRequest: never a refusal since 2.1, groups without Describe are left out"},
	{kmsg.DeleteGroups, permission{group: "Delete"}, "Delete Group", "K.handleDeleteGroupsRequest"},
	{kmsg.OffsetDelete, permission{group: "Delete", topic: "Read"}, "Delete Group, Read Topic", "K.handleOffsetDeleteRequest"},
	{kmsg.CreateTopics, permission{cluster: "Create", topic: "Create"}, "Create Cluster, Create Topic", "K and C: without Create on the cluster it is asked for on each topic, and the refusal names the topic"},
	{kmsg.DeleteTopics, permission{topic: "Delete"}, "Delete Topic", "K.handleDeleteTopicsRequest, C.handleDeleteTopics: Describe too for topics named by id, which Delete gives; C takes Delete on the cluster as well"},
	{kmsg.CreatePartitions, permission{topic: "Alter"}, "Alter Topic", "K.handleCreatePartitionsRequest, C.getAlterAuthorizedTopics"},
	{kmsg.InitProducerID, permission{transactional: "Write", cluster: "IdempotentWrite"}, "Write TransactionalId, IdempotentWrite Cluster", "K.handleInitProducerIdRequest: without a transactional id, Write on any topic is enough since 2.8 (KIP-679)"},
	{kmsg.WriteTxnMarkers, permission{cluster: "ClusterAction"}, "Alter Cluster, ClusterAction Cluster", "K.handleWriteTxnMarkersRequest: Alter is enough since 3.8 (KIP-1037), before only ClusterAction is"},
	{kmsg.ListTransactions, permission{transactional: "Describe"}, "Describe TransactionalId", "K.handleListTransactionsRequest: never a refusal, ids without Describe are left out"},
	{kmsg.DescribeTransactions, permission{transactional: "Describe"}, "Describe TransactionalId", "K.handleDescribeTransactionsRequest: topics without Describe are left out"},
	{kmsg.DescribeProducers, permission{topic: "Read"}, "Read Topic", "K.handleDescribeProducersRequest"},
	{kmsg.DescribeACLs, permission{cluster: "Describe"}, "Describe Cluster", "AclApis.handleDescribeAcls"},
	{kmsg.CreateACLs, permission{cluster: "Alter"}, "Alter Cluster", "AclApis.handleCreateAcls"},
	{kmsg.DeleteACLs, permission{cluster: "Alter"}, "Alter Cluster", "AclApis.handleDeleteAcls"},
	{kmsg.DescribeConfigs, permission{cluster: "DescribeConfigs", topic: "DescribeConfigs", group: "DescribeConfigs"}, "DescribeConfigs Cluster, DescribeConfigs Topic",
		"ConfigHelper.handleDescribeConfigsRequest: the cluster for brokers, their loggers and client metrics; groups from 4.0 on"},
	{kmsg.AlterConfigs, permission{cluster: "AlterConfigs", topic: "AlterConfigs", group: "AlterConfigs"}, "AlterConfigs Cluster, AlterConfigs Topic", "K.handleAlterConfigsRequest, C.authorizeAlterResource: groups from 4.0 on"},
	{kmsg.IncrementalAlterConfigs, permission{cluster: "AlterConfigs", topic: "AlterConfigs", group: "AlterConfigs"}, "AlterConfigs Cluster, AlterConfigs Topic", "likewise"},
	{kmsg.AlterReplicaLogDirs, permission{cluster: "Alter"}, "Alter Cluster", "K.handleAlterReplicaLogDirsRequest"},
	{kmsg.DescribeLogDirs, permission{cluster: "Describe"}, "Describe Cluster", "K.handleDescribeLogDirsRequest: an empty answer, with an error from version 3 on"},
	{kmsg.ElectLeaders, permission{cluster: "Alter"}, "ClusterAction Cluster", "K.handleElectLeaders and C.handleElectLeaders: Alter, the documentation is wrong"},
	{kmsg.AlterPartitionAssignments, permission{cluster: "Alter"}, "Alter Cluster", "K and C.handleAlterPartitionReassignments"},
	{kmsg.ListPartitionReassignments, permission{cluster: "Describe"}, "Describe Cluster", "K and C.handleListPartitionReassignments"},
	{kmsg.DescribeQuorum, permission{cluster: "Describe"}, "Describe Cluster", "C.handleDescribeQuorum; unknown in ZooKeeper mode"},
	{kmsg.DescribeClientQuotas, permission{cluster: "DescribeConfigs"}, "DescribeConfigs Cluster", "K.handleDescribeClientQuotasRequest"},
	{kmsg.AlterClientQuotas, permission{cluster: "AlterConfigs"}, "AlterConfigs Cluster", "K and C.handleAlterClientQuotas"},
	{kmsg.DescribeUserSCRAMCredentials, permission{cluster: "Describe"}, "Describe Cluster", "K.handleDescribeUserScramCredentialsRequest"},
	{kmsg.AlterUserSCRAMCredentials, permission{cluster: "Alter"}, "Alter Cluster", "K and C.handleAlterUserScramCredentials"},
}

// TestPermissionFacts: the table says what Kafka asks for, of nothing else, and each hint is a command that kctl accepts.
func TestPermissionFacts(t *testing.T) {
	facts := map[kmsg.Key]bool{}
	for _, f := range permissionFacts {
		name := kmsg.NameForKey(int16(f.key))
		if facts[f.key] {
			t.Errorf("%s is there twice", name)
		}
		facts[f.key] = true
		if got := permissions[f.key]; got != f.want {
			t.Errorf("%s: %+v, Kafka asks for %+v (documented: %s; %s)", name, got, f.want, f.docs, f.code)
		}
		for operation, resource := range asked(f.want) {
			if !slices.Contains(plan.ACLOperations(resource), operation) {
				t.Errorf("%s: no rule gives %s on %s", name, operation, resource)
			}
			row := operation + " " + resource
			if !strings.Contains(", "+f.docs+",", ", "+row+",") && f.code == "" {
				t.Errorf("%s: %s is neither documented nor explained", name, row)
			}
		}
	}
	for key := range permissions {
		if !facts[key] {
			t.Errorf("%s: no facts", kmsg.NameForKey(int16(key)))
		}
	}
}

// asked yields the operations with the type of the resource in Kafka's words.
func asked(p permission) func(yield func(operation, resource string) bool) {
	return func(yield func(string, string) bool) {
		for _, a := range [][2]string{{p.cluster, "Cluster"}, {p.topic, "Topic"}, {p.group, "Group"}, {p.transactional, "TransactionalId"}} {
			if a[0] != "" && !yield(a[0], a[1]) {
				return
			}
		}
	}
}

// TestRefusalOfRecords: what producing and consuming are refused says what is missing too, though the library sends their requests.
func TestRefusalOfRecords(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{produceErr(kerr.TopicAuthorizationFailed, "t", nil), "--operation Write --topic NAME"},
		{produceErr(fmt.Errorf("unable to initialize a producer id: %w", kerr.ClusterAuthorizationFailed), "t", nil), "--operation IdempotentWrite --cluster"},
		{consumeErr(kerr.TopicAuthorizationFailed, "topic t"), "--operation Read --topic NAME"},
		{consumeErr(&kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}, "topic t in group g"), "--operation Read --group NAME"},
	} {
		if KindOf(tc.err) != Unauthorized || !strings.Contains(HintOf(tc.err), tc.want) {
			t.Errorf("%v: %s, wanted %s", tc.err, HintOf(tc.err), tc.want)
		}
	}
	if err := consumeErr(errors.New("x"), "topic t"); err.Error() != "consume topic t: x" {
		t.Error(err)
	}
}
