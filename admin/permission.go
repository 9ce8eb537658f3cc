package admin

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
)

// permission is what a request needs on the resource that a refusal names (Apache Kafka's table "Operations and Resources on
// Protocols", compared with what brokers and controllers of 3.9 and 4.1 really authorize: see its test). A refusal carries only
// the kind of the resource. Where one of several operations is enough it is the one that every version takes.
type permission struct {
	cluster, topic, group, transactional string
}

// permissions are of what an operator's tool sends: what only brokers are asked for, such as the ClusterAction of a follower
// that fetches, is not advised to a user.
var permissions = map[kmsg.Key]permission{
	kmsg.Produce:                      {topic: "Write", transactional: "Write", cluster: "IdempotentWrite"},
	kmsg.Fetch:                        {topic: "Read"},
	kmsg.ListOffsets:                  {topic: "Describe"},
	kmsg.Metadata:                     {topic: "Describe"},
	kmsg.OffsetCommit:                 {topic: "Read", group: "Read"},
	kmsg.OffsetFetch:                  {topic: "Describe", group: "Describe"},
	kmsg.JoinGroup:                    {group: "Read"},
	kmsg.FindCoordinator:              {group: "Describe", transactional: "Describe"},
	kmsg.DescribeGroups:               {group: "Describe"},
	kmsg.ConsumerGroupDescribe:        {group: "Describe", topic: "Describe"},
	kmsg.ShareGroupDescribe:           {group: "Describe", topic: "Describe"},
	kmsg.StreamsGroupDescribe:         {group: "Describe", topic: "Describe"},
	kmsg.ListGroups:                   {cluster: "Describe"},
	kmsg.DeleteGroups:                 {group: "Delete"},
	kmsg.OffsetDelete:                 {group: "Delete", topic: "Read"},
	kmsg.CreateTopics:                 {cluster: "Create", topic: "Create"},
	kmsg.DeleteTopics:                 {topic: "Delete"},
	kmsg.CreatePartitions:             {topic: "Alter"},
	kmsg.InitProducerID:               {transactional: "Write", cluster: "IdempotentWrite"},
	kmsg.WriteTxnMarkers:              {cluster: "ClusterAction"},
	kmsg.ListTransactions:             {transactional: "Describe"},
	kmsg.DescribeTransactions:         {transactional: "Describe"},
	kmsg.DescribeProducers:            {topic: "Read"},
	kmsg.DescribeACLs:                 {cluster: "Describe"},
	kmsg.CreateACLs:                   {cluster: "Alter"},
	kmsg.DeleteACLs:                   {cluster: "Alter"},
	kmsg.DescribeConfigs:              {cluster: "DescribeConfigs", topic: "DescribeConfigs", group: "DescribeConfigs"},
	kmsg.AlterConfigs:                 {cluster: "AlterConfigs", topic: "AlterConfigs", group: "AlterConfigs"},
	kmsg.IncrementalAlterConfigs:      {cluster: "AlterConfigs", topic: "AlterConfigs", group: "AlterConfigs"},
	kmsg.AlterReplicaLogDirs:          {cluster: "Alter"},
	kmsg.DescribeLogDirs:              {cluster: "Describe"},
	kmsg.ElectLeaders:                 {cluster: "Alter"},
	kmsg.AlterPartitionAssignments:    {cluster: "Alter"},
	kmsg.ListPartitionReassignments:   {cluster: "Describe"},
	kmsg.DescribeQuorum:               {cluster: "Describe"},
	kmsg.DescribeClientQuotas:         {cluster: "DescribeConfigs"},
	kmsg.AlterClientQuotas:            {cluster: "AlterConfigs"},
	kmsg.DescribeUserSCRAMCredentials: {cluster: "Describe"},
	kmsg.AlterUserSCRAMCredentials:    {cluster: "Alter"},
}

// resourceFlags name a resource to kctl acls create.
var resourceFlags = map[string]string{
	"the cluster": "--cluster", "the topic": "--topic NAME", "the group": "--group NAME", "the transactional id": "--transactional-id NAME",
}

// denial is a refusal by the authorizer with the permission that is missing.
type denial struct {
	err       error
	operation string // as kctl acls create --operation takes it
	resource  string // in words, a key of resourceFlags
}

func (d *denial) Error() string { return d.err.Error() + " (it takes " + d.what() + ")" }

func (d *denial) Unwrap() error { return d.err }

func (d *denial) what() string { return d.operation + " on " + d.resource }

// hint says who can help and how.
func (d *denial) hint() string {
	return fmt.Sprintf("an administrator gives the permission with kctl acls create --allow-principal User:NAME --operation %s %s", d.operation, resourceFlags[d.resource])
}

// needs adds to a refusal by the authorizer which permission the request needs; other errors stay as they are.
func needs(key kmsg.Key, err error) error {
	p := permissions[key]
	for _, r := range []struct {
		is                  *kerr.Error
		operation, resource string
	}{
		{kerr.ClusterAuthorizationFailed, p.cluster, "the cluster"},
		{kerr.TopicAuthorizationFailed, p.topic, "the topic"},
		{kerr.GroupAuthorizationFailed, p.group, "the group"},
		{kerr.TransactionalIDAuthorizationFailed, p.transactional, "the transactional id"},
	} {
		if r.operation != "" && errors.Is(err, r.is) {
			return &denial{err, r.operation, r.resource}
		}
	}
	return err
}

var refusedText = regexp.MustCompile(`^[A-Z_]+_AUTHORIZATION_FAILED\b.*\(it takes (\w+) on ([a-z ]+)\)$`)

// Denied reports whether every problem is a refusal by the authorizer, and who can help against the first of them. Problems
// are texts by the time they are gathered; this reads back what denial writes.
func Denied(problems []model.Problem) (hint string, ok bool) {
	for i, p := range problems {
		m := refusedText.FindStringSubmatch(p.Message)
		if m == nil {
			return "", false
		}
		if i == 0 {
			hint = (&denial{operation: m[1], resource: m[2]}).hint()
		}
	}
	return hint, len(problems) > 0
}
