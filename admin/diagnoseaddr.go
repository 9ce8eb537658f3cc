package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// advertisedError is a failure to connect to where a broker says that it is: mostly not the broker's fault, but
// that of its advertised.listeners, which name an address that is right for others only.
type advertisedError struct {
	addr string
	err  error
}

func (e *advertisedError) Error() string {
	return fmt.Sprintf("its advertised address %s: %s", e.addr, short(e.err))
}

func (e *advertisedError) Unwrap() error { return e.err }

// explainAddress names the advertised address when no connection to it could be made. An address that the user
// gave needs no explanation.
func (c *Client) explainAddress(id cluster.BrokerID, addr string, err error) error {
	op, dial := errors.AsType[*net.OpError](err)
	if err == nil || !dial || op.Op != "dial" || slices.Contains(c.cfg.Bootstrap, addr) {
		return err
	}
	return &Error{
		Kind: Unreachable, Msg: brokerName(id) + " cannot be reached", Err: &advertisedError{addr, err},
		Hint: fmt.Sprintf("when the broker runs, its advertised.listeners must name an address that this machine can reach; %s is not", addr),
	}
}

// since is the version of Apache Kafka that brought a request.
var since = map[kmsg.Key]string{
	kmsg.DescribeGroups: "0.9", kmsg.ListGroups: "0.9", kmsg.CreateTopics: "0.10.1", kmsg.DeleteTopics: "0.10.1", kmsg.DeleteRecords: "0.11",
	kmsg.OffsetForLeaderEpoch: "0.11", kmsg.DescribeACLs: "0.11", kmsg.CreateACLs: "0.11", kmsg.DeleteACLs: "0.11",
	kmsg.DescribeConfigs: "0.11", kmsg.AlterConfigs: "0.11", kmsg.AlterReplicaLogDirs: "1.0", kmsg.DescribeLogDirs: "1.0",
	kmsg.CreatePartitions: "1.0", kmsg.DeleteGroups: "1.1", kmsg.ElectLeaders: "2.2", kmsg.IncrementalAlterConfigs: "2.3",
	kmsg.AlterPartitionAssignments: "2.4", kmsg.ListPartitionReassignments: "2.4", kmsg.OffsetDelete: "2.4", kmsg.DescribeClientQuotas: "2.6",
	kmsg.AlterClientQuotas: "2.6", kmsg.DescribeUserSCRAMCredentials: "2.7", kmsg.AlterUserSCRAMCredentials: "2.7", kmsg.DescribeCluster: "2.8",
	kmsg.DescribeProducers: "2.8", kmsg.DescribeTransactions: "3.0", kmsg.ListTransactions: "3.0", kmsg.DescribeTopicPartitions: "3.8",
}

// explainVersion turns the client library's refusal to send a request, because the broker does not know it, into
// one that names the version of Kafka that does.
func (c *Client) explainVersion(ctx context.Context, addr string, req kmsg.Request, err error) error {
	key := kmsg.Key(req.Key())
	_, isCode := errors.AsType[*kerr.Error](err)
	if err == nil || key == kmsg.ApiVersions || classify(err) == Unreachable || certificateRefused(err) || isCode && !errors.Is(err, kerr.UnsupportedVersion) {
		return err
	}
	version := since[key]
	if version == "" {
		return err
	}
	resp, verr := c.askAddr(ctx, addr, apiVersionsRequest())
	if verr != nil {
		return err
	}
	known := resp.(*kmsg.ApiVersionsResponse).ApiKeys
	if slices.ContainsFunc(known, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == int16(key) }) && !isCode {
		return err
	}
	return tooOld(key.Name(), version, "")
}
