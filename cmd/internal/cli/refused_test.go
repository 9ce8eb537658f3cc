package cli_test

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/kafkatest"
	"kctl/cmd/internal/cli/exit"
)

// guarded is a broker, which says that it is both 1 and 2, whose authorizer refuses the requests in deny and lets everything else pass. It
// holds topics t and orders, group g with one offset, and transactional id x.
type guarded struct {
	addr string
	deny map[kmsg.Key]bool

	mu    sync.Mutex
	asked map[kmsg.Key]int
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &guarded{addr: ln.Addr().String()}
	kafkatest.EachConn(t, ln, func(conn net.Conn) { kafkatest.Serve(conn, b.serve) })
	return b
}

// only makes the broker refuse these requests from now on, and counts anew.
func (b *guarded) only(keys ...kmsg.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deny, b.asked = map[kmsg.Key]bool{}, map[kmsg.Key]int{}
	for _, k := range keys {
		b.deny[k] = true
	}
}

// refusals counts the refused requests.
func (b *guarded) refusals() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.deny {
		n += b.asked[key]
	}
	return n
}

func (b *guarded) serve(req kmsg.Request) (kmsg.Response, kafkatest.Then) {
	if resp := b.handle(kmsg.Key(req.Key()), req); resp != nil {
		return resp, kafkatest.Answer
	}
	return nil, kafkatest.Ignore // as a broker that fails over a request
}

func (b *guarded) handle(key kmsg.Key, req kmsg.Request) kmsg.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[key]++
	code := func(e *kerr.Error) int16 {
		if b.deny[key] {
			return e.Code
		}
		return 0
	}
	cluster, topic, group, txn := code(kerr.ClusterAuthorizationFailed), code(kerr.TopicAuthorizationFailed), code(kerr.GroupAuthorizationFailed), code(kerr.TransactionalIDAuthorizationFailed)
	switch r := req.(type) {
	case *kmsg.ApiVersionsRequest:
		resp := everyAPI()
		resp.SetVersion(r.GetVersion())
		return resp
	case *kmsg.MetadataRequest:
		return b.metadata(r)
	case *kmsg.FindCoordinatorRequest:
		resp := kmsg.NewPtrFindCoordinatorResponse()
		for _, k := range r.CoordinatorKeys {
			co := kmsg.NewFindCoordinatorResponseCoordinator()
			co.Key, co.NodeID, co.ErrorCode = k, 1, max(group, txn)
			if r.CoordinatorType == 0 && group != 0 {
				co.ErrorCode = group
			}
			co.Host, co.Port = b.host()
			resp.Coordinators = append(resp.Coordinators, co)
		}
		return resp
	case *kmsg.DescribeConfigsRequest, *kmsg.IncrementalAlterConfigsRequest, *kmsg.DescribeClientQuotasRequest, *kmsg.AlterClientQuotasRequest,
		*kmsg.DescribeUserSCRAMCredentialsRequest, *kmsg.AlterUserSCRAMCredentialsRequest, *kmsg.DescribeACLsRequest, *kmsg.CreateACLsRequest, *kmsg.DeleteACLsRequest:
		return accessAnswer(r, cluster, topic)
	case *kmsg.ListGroupsRequest, *kmsg.DescribeGroupsRequest, *kmsg.ConsumerGroupDescribeRequest, *kmsg.OffsetFetchRequest, *kmsg.DeleteGroupsRequest, *kmsg.OffsetDeleteRequest, *kmsg.OffsetCommitRequest:
		return groupAnswer(r, cluster, group)
	case *kmsg.ListTransactionsRequest, *kmsg.DescribeTransactionsRequest, *kmsg.DescribeProducersRequest, *kmsg.WriteTxnMarkersRequest, *kmsg.InitProducerIDRequest:
		return transactionAnswer(r, cluster, topic, txn)
	}
	return logAnswer(req, cluster, topic)
}

func everyAPI() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	for key := range int16(80) {
		if r := kmsg.RequestForKey(key); r != nil {
			a := kmsg.NewApiVersionsResponseApiKey()
			a.ApiKey, a.MaxVersion = key, r.MaxVersion()
			resp.ApiKeys = append(resp.ApiKeys, a)
		}
	}
	return resp
}

func (b *guarded) host() (string, int32) {
	host, port, _ := net.SplitHostPort(b.addr)
	n, _ := strconv.Atoi(port)
	return host, int32(n)
}

func (b *guarded) metadata(req *kmsg.MetadataRequest) kmsg.Response {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ClusterID, resp.ControllerID = kmsg.StringPtr("guarded"), 1
	for id := range int32(2) {
		mb := kmsg.NewMetadataResponseBroker()
		mb.NodeID = id + 1
		mb.Host, mb.Port = b.host()
		resp.Brokers = append(resp.Brokers, mb)
	}
	for name, partitions := range map[string]int32{"t": 1, "orders": 4} {
		if req.Topics != nil && !slices.ContainsFunc(req.Topics, func(t kmsg.MetadataRequestTopic) bool { return *t.Topic == name }) {
			continue
		}
		t := kmsg.NewMetadataResponseTopic()
		if t.Topic = kmsg.StringPtr(name); b.deny[kmsg.Metadata] {
			t.ErrorCode, partitions = kerr.TopicAuthorizationFailed.Code, 0
		}
		for n := range partitions {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = n, 1, 3, []int32{2, 1}, []int32{1, 2}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func accessAnswer(req kmsg.Request, cluster, topic int16) kmsg.Response {
	of := func(t kmsg.ConfigResourceType) int16 {
		if t == kmsg.ConfigResourceTypeTopic {
			return topic
		}
		return cluster
	}
	switch r := req.(type) {
	case *kmsg.DescribeConfigsRequest:
		resp := kmsg.NewPtrDescribeConfigsResponse()
		for _, res := range r.Resources {
			rr := kmsg.NewDescribeConfigsResponseResource()
			rr.ResourceType, rr.ResourceName, rr.ErrorCode = res.ResourceType, res.ResourceName, of(res.ResourceType)
			if rr.ErrorCode == 0 {
				c := kmsg.NewDescribeConfigsResponseResourceConfig()
				c.Name, c.Value, c.Source = "retention.ms", kmsg.StringPtr("5"), kmsg.ConfigSourceDynamicTopicConfig
				rr.Configs = append(rr.Configs, c)
			}
			resp.Resources = append(resp.Resources, rr)
		}
		return resp
	case *kmsg.IncrementalAlterConfigsRequest:
		resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
		for _, res := range r.Resources {
			rr := kmsg.NewIncrementalAlterConfigsResponseResource()
			rr.ResourceType, rr.ResourceName, rr.ErrorCode = res.ResourceType, res.ResourceName, of(res.ResourceType)
			resp.Resources = append(resp.Resources, rr)
		}
		return resp
	case *kmsg.DescribeClientQuotasRequest:
		resp := kmsg.NewPtrDescribeClientQuotasResponse()
		resp.ErrorCode = cluster
		return resp
	case *kmsg.AlterClientQuotasRequest:
		resp := kmsg.NewPtrAlterClientQuotasResponse()
		e := kmsg.NewAlterClientQuotasResponseEntry()
		e.ErrorCode = cluster
		resp.Entries = append(resp.Entries, e)
		return resp
	case *kmsg.DescribeUserSCRAMCredentialsRequest:
		if r.Users == nil && cluster != 0 {
			return nil // Apache Kafka fails over the null when it makes the refusal
		}
		resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
		resp.ErrorCode = cluster
		u := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		c := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
		c.Mechanism, c.Iterations = 1, 4096
		if u.User, u.CredentialInfos = "a", append(u.CredentialInfos, c); cluster == 0 {
			resp.Results = append(resp.Results, u)
		}
		return resp
	case *kmsg.AlterUserSCRAMCredentialsRequest:
		resp := kmsg.NewPtrAlterUserSCRAMCredentialsResponse()
		u := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		u.User, u.ErrorCode = "a", cluster
		resp.Results = append(resp.Results, u)
		return resp
	case *kmsg.DescribeACLsRequest:
		resp := kmsg.NewPtrDescribeACLsResponse()
		resp.ErrorCode = cluster
		res := kmsg.NewDescribeACLsResponseResource()
		res.ResourceType, res.ResourceName, res.ResourcePatternType = kmsg.ACLResourceTypeTopic, "t", kmsg.ACLResourcePatternTypeLiteral
		a := kmsg.NewDescribeACLsResponseResourceACL()
		a.Principal, a.Host, a.Operation, a.PermissionType = "User:a", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
		if res.ACLs = append(res.ACLs, a); cluster == 0 {
			resp.Resources = append(resp.Resources, res)
		}
		return resp
	case *kmsg.CreateACLsRequest:
		resp := kmsg.NewPtrCreateACLsResponse()
		for range r.Creations {
			res := kmsg.NewCreateACLsResponseResult()
			res.ErrorCode = cluster
			resp.Results = append(resp.Results, res)
		}
		return resp
	case *kmsg.DeleteACLsRequest:
		resp := kmsg.NewPtrDeleteACLsResponse()
		for range r.Filters {
			res := kmsg.NewDeleteACLsResponseResult()
			res.ErrorCode = cluster
			resp.Results = append(resp.Results, res)
		}
		return resp
	}
	return nil
}

func groupAnswer(req kmsg.Request, cluster, group int16) kmsg.Response {
	switch r := req.(type) {
	case *kmsg.ListGroupsRequest:
		resp := kmsg.NewPtrListGroupsResponse()
		resp.ErrorCode = cluster
		return resp
	case *kmsg.ConsumerGroupDescribeRequest:
		resp := kmsg.NewPtrConsumerGroupDescribeResponse()
		for _, id := range r.Groups {
			g := kmsg.NewConsumerGroupDescribeResponseGroup()
			if g.Group, g.ErrorCode = id, kerr.GroupIDNotFound.Code; group != 0 {
				g.ErrorCode = group
			}
			resp.Groups = append(resp.Groups, g)
		}
		return resp
	case *kmsg.DescribeGroupsRequest:
		resp := kmsg.NewPtrDescribeGroupsResponse()
		for _, id := range r.Groups {
			g := kmsg.NewDescribeGroupsResponseGroup()
			g.Group, g.State, g.ProtocolType, g.ErrorCode = id, "Empty", "consumer", group
			resp.Groups = append(resp.Groups, g)
		}
		return resp
	case *kmsg.OffsetFetchRequest:
		resp := kmsg.NewPtrOffsetFetchResponse()
		for _, rg := range r.Groups {
			g := kmsg.NewOffsetFetchResponseGroup()
			g.Group, g.ErrorCode = rg.Group, group
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Offset = 5
			if t.Topic, t.Partitions = "t", append(t.Partitions, p); group == 0 {
				g.Topics = append(g.Topics, t)
			}
			resp.Groups = append(resp.Groups, g)
		}
		return resp
	case *kmsg.DeleteGroupsRequest:
		resp := kmsg.NewPtrDeleteGroupsResponse()
		for _, id := range r.Groups {
			g := kmsg.NewDeleteGroupsResponseGroup()
			g.Group, g.ErrorCode = id, group
			resp.Groups = append(resp.Groups, g)
		}
		return resp
	case *kmsg.OffsetDeleteRequest:
		resp := kmsg.NewPtrOffsetDeleteResponse()
		resp.ErrorCode = group
		return resp
	case *kmsg.OffsetCommitRequest:
		resp := kmsg.NewPtrOffsetCommitResponse()
		for _, rt := range r.Topics {
			t := kmsg.NewOffsetCommitResponseTopic()
			t.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				p := kmsg.NewOffsetCommitResponseTopicPartition()
				p.Partition, p.ErrorCode = rp.Partition, group
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	}
	return nil
}

func transactionAnswer(req kmsg.Request, cluster, topic, txn int16) kmsg.Response {
	switch r := req.(type) {
	case *kmsg.ListTransactionsRequest:
		return kmsg.NewPtrListTransactionsResponse() // those that may not be described are left out
	case *kmsg.DescribeTransactionsRequest:
		resp := kmsg.NewPtrDescribeTransactionsResponse()
		for _, id := range r.TransactionalIDs {
			s := kmsg.NewDescribeTransactionsResponseTransactionState()
			s.TransactionalID, s.ErrorCode, s.State, s.ProducerID = id, txn, "Ongoing", 7
			resp.TransactionStates = append(resp.TransactionStates, s)
		}
		return resp
	case *kmsg.DescribeProducersRequest:
		resp := kmsg.NewPtrDescribeProducersResponse()
		for _, rt := range r.Topics {
			t := kmsg.NewDescribeProducersResponseTopic()
			t.Topic = rt.Topic
			for _, n := range rt.Partitions {
				p := kmsg.NewDescribeProducersResponseTopicPartition()
				p.Partition, p.ErrorCode = n, topic
				a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				a.ProducerID, a.CurrentTxnStartOffset = 7, 1
				if rt.Topic == "orders" {
					a.ProducerID, a.CurrentTxnStartOffset = 4001, 1234
				}
				if topic == 0 {
					p.ActiveProducers = append(p.ActiveProducers, a)
				}
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	case *kmsg.WriteTxnMarkersRequest:
		resp := kmsg.NewPtrWriteTxnMarkersResponse()
		for _, rm := range r.Markers {
			m := kmsg.NewWriteTxnMarkersResponseMarker()
			t := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			p := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
			p.ErrorCode = cluster
			t.Topic, t.Partitions = "t", append(t.Partitions, p)
			m.ProducerID, m.Topics = rm.ProducerID, append(m.Topics, t)
			resp.Markers = append(resp.Markers, m)
		}
		return resp
	case *kmsg.InitProducerIDRequest:
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ErrorCode = txn
		return resp
	}
	return nil
}

func logAnswer(req kmsg.Request, cluster, topic int16) kmsg.Response {
	switch r := req.(type) {
	case *kmsg.DescribeLogDirsRequest:
		resp := kmsg.NewPtrDescribeLogDirsResponse()
		resp.ErrorCode = cluster
		for _, path := range []string{"/a", "/b"} {
			d := kmsg.NewDescribeLogDirsResponseDir()
			if d.Dir = path; path == "/a" {
				t := kmsg.NewDescribeLogDirsResponseDirTopic()
				t.Topic, t.Partitions = "t", append(t.Partitions, kmsg.NewDescribeLogDirsResponseDirTopicPartition())
				d.Topics = append(d.Topics, t)
			}
			if cluster == 0 {
				resp.Dirs = append(resp.Dirs, d)
			}
		}
		return resp
	case *kmsg.AlterReplicaLogDirsRequest:
		resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
		t := kmsg.NewAlterReplicaLogDirsResponseTopic()
		p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
		p.ErrorCode = cluster
		t.Topic, t.Partitions = "t", append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.ListPartitionReassignmentsRequest:
		resp := kmsg.NewPtrListPartitionReassignmentsResponse()
		resp.ErrorCode = cluster
		return resp
	case *kmsg.AlterPartitionAssignmentsRequest:
		resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
		resp.ErrorCode = cluster
		return resp
	case *kmsg.DescribeQuorumRequest:
		resp := kmsg.NewPtrDescribeQuorumResponse()
		resp.ErrorCode = cluster
		return resp
	case *kmsg.ElectLeadersRequest:
		resp := kmsg.NewPtrElectLeadersResponse()
		resp.ErrorCode = cluster
		return resp
	case *kmsg.CreateTopicsRequest:
		resp := kmsg.NewPtrCreateTopicsResponse()
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic, t.ErrorCode = r.Topics[0].Topic, topic
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.DeleteTopicsRequest:
		resp := kmsg.NewPtrDeleteTopicsResponse()
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.ErrorCode = kmsg.StringPtr("t"), topic
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.CreatePartitionsRequest:
		resp := kmsg.NewPtrCreatePartitionsResponse()
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode = "t", topic
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.ListOffsetsRequest:
		resp := kmsg.NewPtrListOffsetsResponse()
		for _, rt := range r.Topics {
			t := kmsg.NewListOffsetsResponseTopic()
			t.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.Offset, p.LeaderEpoch, p.ErrorCode = rp.Partition, 9, 3, topic
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	}
	return nil
}

// TestRefusals: what the authorizer refuses is exit 4 at once, not after the timeout and not asked again, and the operation and
// the resource that are missing are named, with the command that gives the permission.
func TestRefusals(t *testing.T) {
	b := startGuarded(t)
	for _, tt := range []struct {
		args string
		deny kmsg.Key
		want string // the permission
	}{
		{"users list", kmsg.DescribeUserSCRAMCredentials, "Describe on the cluster"},
		{"users describe a", kmsg.DescribeUserSCRAMCredentials, "Describe on the cluster"},
		{"users set a --password-env PW --yes", kmsg.AlterUserSCRAMCredentials, "Alter on the cluster"},
		{"users delete a --yes", kmsg.AlterUserSCRAMCredentials, "Alter on the cluster"},
		{"acls list", kmsg.DescribeACLs, "Describe on the cluster"},
		{"acls create --allow-principal User:b --operation Read --topic t --yes", kmsg.CreateACLs, "Alter on the cluster"},
		{"acls delete --topic t --yes", kmsg.DeleteACLs, "Alter on the cluster"},
		{"quotas list", kmsg.DescribeClientQuotas, "DescribeConfigs on the cluster"},
		{"quotas describe --user a", kmsg.DescribeClientQuotas, "DescribeConfigs on the cluster"},
		{"quotas set --user a producer_byte_rate=1 --yes", kmsg.AlterClientQuotas, "AlterConfigs on the cluster"},
		{"configs get topic/t", kmsg.DescribeConfigs, "DescribeConfigs on the topic"},
		{"configs get broker/1", kmsg.DescribeConfigs, "DescribeConfigs on the cluster"},
		{"configs set topic/t retention.ms=7 --yes", kmsg.IncrementalAlterConfigs, "AlterConfigs on the topic"},
		{"configs set broker/1 retention.ms=7 --yes", kmsg.IncrementalAlterConfigs, "AlterConfigs on the cluster"},
		{"groups list", kmsg.ListGroups, "Describe on the cluster"},
		{"groups describe g", kmsg.DescribeGroups, "Describe on the group"},
		{"groups describe g", kmsg.FindCoordinator, "Describe on the group"},
		{"groups describe g", kmsg.OffsetFetch, "Describe on the group"},
		{"lag groups g", kmsg.OffsetFetch, "Describe on the group"},
		{"groups delete g --yes", kmsg.DeleteGroups, "Delete on the group"},
		{"groups delete-offsets g --all-topics --yes", kmsg.OffsetDelete, "Delete on the group"},
		{"groups reset-offsets g --all-topics --to-latest --execute --yes", kmsg.OffsetCommit, "Read on the group"},
		{"groups reset-offsets g --all-topics --to-latest --execute", kmsg.DescribeGroups, "Describe on the group"},
		{"groups reset-offsets g --all-topics --to-latest", kmsg.FindCoordinator, "Describe on the group"},
		{"controller describe", kmsg.DescribeQuorum, "Describe on the cluster"},
		{"transactions describe x", kmsg.DescribeTransactions, "Describe on the transactional id"},
		{"transactions describe x", kmsg.FindCoordinator, "Describe on the transactional id"},
		{"transactions find-hanging", kmsg.DescribeProducers, "Read on the topic"},
		{"transactions abort x --yes", kmsg.InitProducerID, "Write on the transactional id"},
		{"transactions abort --topic t:0 --producer-id 7 --yes", kmsg.WriteTxnMarkers, "ClusterAction on the cluster"},
		{"log-dirs describe", kmsg.DescribeLogDirs, "Describe on the cluster"},
		{"log-dirs describe --replicas", kmsg.DescribeLogDirs, "Describe on the cluster"},
		{"log-dirs move t:0 --broker 1 --to /b --yes", kmsg.AlterReplicaLogDirs, "Alter on the cluster"},
		{"reassign status", kmsg.ListPartitionReassignments, "Describe on the cluster"},
		{"reassign cancel t:0 --yes", kmsg.ListPartitionReassignments, "Describe on the cluster"},
		{"elect preferred --all --yes", kmsg.ElectLeaders, "Alter on the cluster"},
		{"topics create n --partitions 1 --replication-factor 1", kmsg.CreateTopics, "Create on the topic"},
		{"topics delete t --yes", kmsg.DeleteTopics, "Delete on the topic"},
		{"topics alter t --partitions 2 --replica-assignment 1:2 --yes", kmsg.CreatePartitions, "Alter on the topic"},
		{"topics describe t", kmsg.Metadata, "Describe on the topic"},
		{"partitions list t", kmsg.Metadata, "Describe on the topic"},
	} {
		name := tt.args + ", " + tt.deny.Name()
		k := newKctl(t)
		k.env["KCTL_BOOTSTRAP_SERVER"], k.env["PW"], k.env["KCTL_TIMEOUT"] = b.addr, "secret", "10m"
		b.only(tt.deny)
		began := time.Now()
		k.run(strings.Fields(tt.args)...)
		took := time.Since(began)
		if k.code != int(exit.Unauthorized) || !strings.Contains(k.err.String(), tt.want) || !strings.Contains(k.err.String(), "kctl acls create") {
			t.Errorf("%s: exit %d, want 4 and %q\n%s%s", name, k.code, tt.want, k.out, k.err)
		}
		if n := b.refusals(); n == 0 || n > 2 || took > 2*time.Minute { // half of the timeout is five
			t.Errorf("%s: asked %d times in %s", name, n, took)
		}
	}
}
