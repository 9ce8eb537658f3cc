package admin

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
)

func quorumAnswer(leader, epoch int32, code int16) func(kmsg.Request) kmsg.Response {
	return func(kmsg.Request) kmsg.Response {
		r := kmsg.NewPtrDescribeQuorumResponse()
		r.ErrorCode = code
		t := kmsg.NewDescribeQuorumResponseTopic()
		p := kmsg.NewDescribeQuorumResponseTopicPartition()
		p.LeaderID, p.LeaderEpoch = leader, epoch
		t.Topic, t.Partitions = metadataTopic, append(t.Partitions, p)
		r.Topics = append(r.Topics, t)
		n := kmsg.NewDescribeQuorumResponseNode()
		l := kmsg.NewDescribeQuorumResponseNodeListener()
		l.Host, l.Port = "controller-host", 9093
		n.NodeID, n.Listeners = leader, append(n.Listeners, l)
		r.Nodes = append(r.Nodes, n)
		return r
	}
}

// TestControllerOfKRaft: a broker of KRaft mode names itself or another as controller in Metadata, to which it would pass
// requests on. Who is it is told by the quorum, and it need not be a broker.
func TestControllerOfKRaft(t *testing.T) {
	for _, tt := range []struct {
		name     string
		leader   int32
		code     int16
		problems int
		finding  bool
		host     string
	}{
		{"a broker", 2, 0, 0, false, "controller-host"},
		{"not a broker", 3000, 0, 0, false, "controller-host"},
		{"a quorum without leader", -1, 0, 0, true, ""},
		{"not permitted", 2, kerr.ClusterAuthorizationFailed.Code, 1, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeCluster(t, 1, 1) // Metadata names broker 1
			f.answer[kmsg.DescribeQuorum] = quorumAnswer(tt.leader, 7, tt.code)
			c := openFake(t, Config{Timeout: 5 * time.Second}, f.fakeBroker)
			s, err := c.Snapshot(t.Context(), SnapshotOptions{Controller: true})
			if err != nil || len(s.Problems) != tt.problems {
				t.Fatalf("%v, problems %v", err, s.Problems)
			}
			found := check.Health(check.Input{Snapshot: s})
			if got := hasFinding(found, check.NoController); got != tt.finding {
				t.Errorf("finding of no controller: %v, want %v: %+v", got, tt.finding, found)
			}
			if tt.problems > 0 {
				return
			}
			if got := s.Controller; int32(got.ID) != tt.leader || got.Epoch != 7 || !got.Quorum || got.Host != tt.host {
				t.Errorf("%+v", got)
			}
			for _, b := range s.Brokers {
				if b.Controller != (int32(b.ID) == tt.leader) {
					t.Errorf("broker %d: controller %v", b.ID, b.Controller)
				}
			}
		})
	}
}

func hasFinding(found []model.Finding, id string) bool {
	for _, f := range found {
		if f.ID == id {
			return true
		}
	}
	return false
}
