package cli_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/kafkatest"
	"kctl/cmd/internal/cli/exit"
)

// aclBroker is a broker with one rule, which hangs up over requests that it is told to lose.
func aclBroker(t *testing.T, lost ...kmsg.Key) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	n, _ := strconv.Atoi(port)
	answer := func(req kmsg.Request) (kmsg.Response, kafkatest.Then) {
		for _, key := range lost {
			if req.Key() == key.Int16() {
				return nil, kafkatest.HangUp
			}
		}
		switch req := req.(type) {
		case *kmsg.ApiVersionsRequest:
			r := kmsg.NewPtrApiVersionsResponse()
			for _, key := range []kmsg.Key{kmsg.Produce, kmsg.Metadata, kmsg.ApiVersions, kmsg.DescribeACLs, kmsg.CreateACLs, kmsg.DeleteACLs} {
				k := kmsg.NewApiVersionsResponseApiKey()
				k.ApiKey, k.MaxVersion = key.Int16(), kmsg.RequestForKey(key.Int16()).MaxVersion()
				r.ApiKeys = append(r.ApiKeys, k)
			}
			if r.Version = min(req.Version, 3); req.Version > 3 {
				r.ErrorCode, r.Version = 35, 0
			}
			return r, kafkatest.Answer
		case *kmsg.MetadataRequest:
			r, id := kmsg.NewPtrMetadataResponse(), "acls"
			b := kmsg.NewMetadataResponseBroker()
			b.NodeID, b.Host, b.Port = 1, host, int32(n)
			r.ClusterID, r.ControllerID, r.Brokers = &id, 1, append(r.Brokers, b)
			return r, kafkatest.Answer
		case *kmsg.DescribeACLsRequest:
			r := kmsg.NewPtrDescribeACLsResponse()
			res, a := kmsg.NewDescribeACLsResponseResource(), kmsg.NewDescribeACLsResponseResourceACL()
			res.ResourceType, res.ResourceName, res.ResourcePatternType = kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLResourcePatternTypeLiteral
			a.Principal, a.Host, a.Operation, a.PermissionType = "User:alice", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
			res.ACLs = append(res.ACLs, a)
			r.Resources = append(r.Resources, res)
			return r, kafkatest.Answer
		}
		return nil, kafkatest.HangUp
	}
	kafkatest.EachConn(t, ln, func(conn net.Conn) { kafkatest.Serve(conn, answer) })
	return ln.Addr().String()
}

// TestLostACLs: a change of rules whose answer is lost is not called done, and stands in the journal with what takes it back,
// since it may have been made.
func TestLostACLs(t *testing.T) {
	k := newKctl(t)
	addr := aclBroker(t, kmsg.CreateACLs, kmsg.DeleteACLs)
	k.run("acls", "create", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "orders", "--yes", "-b", addr, "--timeout", "5s").
		want(exit.Unreachable, "", "whether the change was made is not known")
	k.run("acls", "delete", "--principal", "User:alice", "--yes", "-b", addr, "--timeout", "5s").
		want(exit.Unreachable, "", "whether the change was made is not known")
	k.run("history", "--no-headers").want(exit.OK, "acls create", "")
	if lines := strings.Split(strings.TrimSpace(k.out.String()), "\n"); len(lines) != 2 || strings.Count(k.out.String(), "did not answer") != 2 {
		t.Errorf("the journal:\n%s", k.out)
	}
	k.run("history", "show", "2").want(exit.OK, "acls create --topic orders", "")
}
