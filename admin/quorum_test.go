package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
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
				if s.Controller.ID >= 0 || s.Brokers[0].Controller {
					t.Errorf("a controller is named that nobody knows: %+v", s.Controller)
				}
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

// silentControllers are brokers in KRaft mode whose controllers do not answer: what is passed on to them waits, and with it all that
// comes after it on the same connection.
func silentControllers(t *testing.T) *fakeCluster {
	f := newFakeCluster(t, 1, 1)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	wait := func(kmsg.Request) kmsg.Response { <-over; return nil }
	f.answer[kmsg.DescribeQuorum], f.answer[kmsg.CreateTopics], f.answer[kmsg.ListPartitionReassignments] = wait, wait, wait
	f.answer[kmsg.DescribeConfigs] = func(kmsg.Request) kmsg.Response { return kmsg.NewPtrDescribeConfigsResponse() }
	return f
}

// TestSilentControllers: when most controllers of KRaft mode are down, no broker is called the controller, or silent; that none can be
// elected and nothing changed is a finding, and what was asked for in vain says whose answer is missing.
func TestSilentControllers(t *testing.T) {
	f := silentControllers(t)
	c := openFake(t, Config{Timeout: 4 * time.Second}, f.fakeBroker)
	s, err := c.Snapshot(t.Context(), SnapshotOptions{Controller: true, Probe: true, MinISR: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Controller; got.ID >= 0 || !got.Silent || s.Brokers[0].Controller {
		t.Errorf("controller %+v, broker %+v", got, s.Brokers[0])
	}
	for _, b := range s.Brokers {
		if b.Err != "" {
			t.Errorf("broker %d answers, and is said not to: %s", b.ID, b.Err)
		}
	}
	if len(s.Problems) != 1 || s.Problems[0].Object != "controller" || !strings.Contains(s.Problems[0].Message, "the controllers do not") {
		t.Errorf("problems %+v", s.Problems)
	}
	if !hasFinding(check.Health(check.Input{Snapshot: s}), check.NoController) {
		t.Error("no finding")
	}
	_, _, err = c.CreateTopic(t.Context(), plan.NewTopic{Name: "new", Partitions: 1, ReplicationFactor: 1}, false)
	wantCause(t, err, "the controllers, to whom broker 1 passes it on, did not answer", "whether the change was made is not known", Unreachable)
	ctx, cancel := c.within(t.Context())
	defer cancel()
	_, err = c.reassignments(ctx)
	wantCause(t, err, "the controllers, to whom broker 1 passes it on, did not answer", "controller.quorum.voters do not run", Unreachable)
	if strings.Contains(HintOf(err), "change was made") {
		t.Errorf("a question has changed nothing: %s", HintOf(err))
	}
}

// TestKRaftHasNoZooKeeper: checks that need ZooKeeper are not skipped with the advice to give its address.
func TestKRaftHasNoZooKeeper(t *testing.T) {
	f := newFakeCluster(t, 1, 1)
	f.answer[kmsg.DescribeQuorum] = quorumAnswer(2, 7, 0)
	facts, _, err := openFake(t, Config{}, f.fakeBroker).Facts(t.Context(), FactsOptions{Needs: []check.Source{check.FromBrokers}})
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []check.Source{check.FromZooKeeper, check.FromEnsemble} {
		if why := facts.Missing[source]; why != hasNoZooKeeper {
			t.Errorf("%v: %q", source, why)
		}
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
