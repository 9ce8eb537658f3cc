package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// fakeCluster is one fake broker, id 1, that leads topics of two replicas. Every imbalanced one is led by 1
// and prefers 2, which has the same address.
type fakeCluster struct {
	*fakeBroker
	topics, partitions int
	imbalanced         func(topic, partition int) bool
	asked              [][]int32 // partitions of each ElectLeaders request
	code               int16     // answer to each election
}

func newFakeCluster(t *testing.T, topics, partitions int) *fakeCluster {
	f := &fakeCluster{topics: topics, partitions: partitions, imbalanced: func(int, int) bool { return false }}
	f.fakeBroker = startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
		kmsg.Metadata: f.metadata, kmsg.ElectLeaders: f.elect, kmsg.ListOffsets: f.offsets,
	})
	return f
}

func (f *fakeCluster) metadata(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrMetadataResponse()
	id := "fake"
	r.ClusterID, r.ControllerID, r.Brokers = &id, 1, append(r.Brokers, f.node(1), f.node(2))
	if m := req.(*kmsg.MetadataRequest); m.Topics != nil && len(m.Topics) == 0 {
		return r
	}
	for i := range f.topics {
		t := kmsg.NewMetadataResponseTopic()
		name := fmt.Sprintf("topic-%05d", i)
		t.Topic = &name
		for j := range f.partitions {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition, p.Leader, p.Replicas, p.ISR = int32(j), 1, []int32{1, 2}, []int32{1, 2}
			if f.imbalanced(i, j) {
				p.Replicas = []int32{2, 1}
			}
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

func (f *fakeCluster) elect(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrElectLeadersResponse()
	var nums []int32
	for _, t := range req.(*kmsg.ElectLeadersRequest).Topics {
		rt := kmsg.NewElectLeadersResponseTopic()
		rt.Topic = t.Topic
		for _, n := range t.Partitions {
			nums = append(nums, n)
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode = n, f.code
			rt.Partitions = append(rt.Partitions, p)
		}
		r.Topics = append(r.Topics, rt)
	}
	f.mu.Lock()
	f.asked = append(f.asked, nums)
	f.mu.Unlock()
	return r
}

func (f *fakeCluster) offsets(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrListOffsetsResponse()
	for _, t := range req.(*kmsg.ListOffsetsRequest).Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition = p.Partition
			rt.Partitions = append(rt.Partitions, rp)
		}
		r.Topics = append(r.Topics, rt)
	}
	return r
}

// TestElectionRequests: twenty thousand partitions that need nothing cost one Metadata request and no election at
// all, which is what keeps them far below ten seconds (measured: CHANGELOG); those that do need one are asked
// for in batches, each confirmed with one request per broker.
func TestElectionRequests(t *testing.T) {
	f := newFakeCluster(t, 4000, 5)
	c := openFake(t, Config{}, f.fakeBroker)
	start := time.Now()
	planned, _, via, err := c.PlanElections(t.Context(), nil, ElectOptions{})
	if err != nil || via != ElectViaProtocol || len(planned) != 20_000 || len(plan.Moves(planned)) != 0 {
		t.Fatalf("%d planned, %d moves, via %s: %v", len(planned), len(plan.Moves(planned)), via, err)
	}
	got, err := c.Elect(t.Context(), plan.Moves(planned), via, ElectOptions{Wait: time.Second})
	if err != nil || len(got) != 0 {
		t.Fatalf("%v %v", got, err)
	}
	t.Logf("20000 partitions with nothing to do: %s", time.Since(start))
	if f.count(kmsg.Metadata) != 1 || f.count(kmsg.ElectLeaders) != 0 || f.count(kmsg.ListOffsets) != 0 {
		t.Errorf("%d Metadata, %d ElectLeaders, %d ListOffsets", f.count(kmsg.Metadata), f.count(kmsg.ElectLeaders), f.count(kmsg.ListOffsets))
	}

	f.imbalanced = func(topic, _ int) bool { return topic < 500 }
	if planned, _, via, err = c.PlanElections(t.Context(), nil, ElectOptions{}); err != nil || len(plan.Moves(planned)) != 2500 {
		t.Fatalf("%d moves: %v", len(plan.Moves(planned)), err)
	}
	var progress []int
	got, err = c.Elect(t.Context(), plan.Moves(planned), via, ElectOptions{
		Batch: 1000, Wait: time.Minute, Done: func(confirmed, asked int) { progress = append(progress, confirmed, asked) },
	})
	if err != nil || len(got) != 2500 || slices.ContainsFunc(got, func(r ElectionResult) bool { return !r.Confirmed }) {
		t.Fatalf("%d results: %v", len(got), err)
	}
	if fmt.Sprint(progress) != "[1000 1000 2000 2000 2500 2500]" || f.count(kmsg.ElectLeaders) != 3 || f.count(kmsg.ListOffsets) != 3 {
		t.Errorf("progress %v, %d ElectLeaders, %d ListOffsets", progress, f.count(kmsg.ElectLeaders), f.count(kmsg.ListOffsets))
	}
}

// TestElectionAnswers: each code of the controller is told apart, and a lost answer of a later batch does not
// lose the results of the earlier ones.
func TestElectionAnswers(t *testing.T) {
	f := newFakeCluster(t, 1, 3)
	f.imbalanced = func(int, int) bool { return true }
	c := openFake(t, Config{}, f.fakeBroker)
	for _, tt := range []struct {
		code          int16
		done, already bool
		err           string
	}{
		{0, true, false, ""},
		{kerr.ElectionNotNeeded.Code, true, true, ""},
		{kerr.PreferredLeaderNotAvailable.Code, false, false, "PREFERRED_LEADER_NOT_AVAILABLE"},
	} {
		f.code = tt.code
		planned, _, via, err := c.PlanElections(t.Context(), nil, ElectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Elect(t.Context(), planned, via, ElectOptions{})
		if err != nil || len(got) != 3 || got[1].Done != tt.done || got[1].Already != tt.already || (got[1].Err == "") != (tt.err == "") {
			t.Errorf("code %d: %+v %v", tt.code, got, err)
		}
	}
	f.code = kerr.ClusterAuthorizationFailed.Code
	denied, _, via, err := c.PlanElections(t.Context(), nil, ElectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Elect(t.Context(), denied, via, ElectOptions{}); KindOf(err) != Unauthorized || !strings.Contains(HintOf(err), "--operation Alter --cluster") {
		t.Errorf("refused for every partition: %v", err)
	}
	f.code = 0
	answer := f.answer[kmsg.ElectLeaders]
	n := 0
	f.answer[kmsg.ElectLeaders] = func(r kmsg.Request) kmsg.Response {
		if n++; n > 1 {
			return nil // the connection breaks
		}
		return answer(r)
	}
	planned, _, via, err := c.PlanElections(t.Context(), nil, ElectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Elect(t.Context(), planned, via, ElectOptions{Batch: 1})
	if err != nil || len(got) != 3 || !got[0].Done || got[1].Done || got[1].Err == "" || got[2].Err == "" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestElectionTooOld: what the brokers cannot do names the version that can, before anything is asked for.
// Version 0 of ElectLeaders has no election type: an unclean one would silently become a preferred one.
func TestElectionTooOld(t *testing.T) {
	f := newFakeCluster(t, 1, 1)
	f.highest[kmsg.ElectLeaders] = 0
	c := openFake(t, Config{}, f.fakeBroker)
	if _, _, via, err := c.PlanElections(t.Context(), nil, ElectOptions{}); err != nil || via != ElectViaProtocol {
		t.Errorf("preferred at version 0: %s %v", via, err)
	}
	_, _, _, err := c.PlanElections(t.Context(), nil, ElectOptions{Unclean: true})
	if err == nil || !strings.Contains(err.Error(), "2.4") || KindOf(err) != Failed {
		t.Errorf("unclean at version 0: %v", err)
	}
	old := startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.Metadata: f.metadata})
	c = openFake(t, Config{}, old)
	_, _, _, err = c.PlanElections(t.Context(), nil, ElectOptions{})
	if err == nil || !strings.Contains(err.Error(), "2.2") || !strings.Contains(HintOf(err), "-z") {
		t.Errorf("no ElectLeaders: %v hint %q", err, HintOf(err))
	}
	_, err = c.PlanLeader(t.Context(), cluster.TopicPartition{Topic: "topic-00000"}, 2, nil)
	if err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("elect leader: %v", err)
	}
}

// moving is a fake cluster that carries out what elect leader asks for, and can break at any request.
type moving struct {
	*fakeCluster
	replicas []int32
	leader   int32
	writes   []string
	breakAt  int  // the write that gets no answer, counted from 1; 0: none
	lost     bool // the broken write was carried out all the same
}

func newMoving(t *testing.T) *moving {
	m := &moving{replicas: []int32{1, 2}, leader: 1}
	f := &fakeCluster{topics: 1, partitions: 1, imbalanced: func(int, int) bool { return false }}
	m.fakeCluster = f
	f.fakeBroker = startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
		kmsg.Metadata: m.metadata, kmsg.ElectLeaders: m.elect, kmsg.ListOffsets: f.offsets,
		kmsg.AlterPartitionAssignments: m.reorder, kmsg.ListPartitionReassignments: func(kmsg.Request) kmsg.Response { return kmsg.NewPtrListPartitionReassignmentsResponse() },
	})
	return m
}

func (m *moving) metadata(req kmsg.Request) kmsg.Response {
	r := m.fakeCluster.metadata(req).(*kmsg.MetadataResponse)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range r.Topics {
		p := &r.Topics[i].Partitions[0]
		p.Replicas, p.Leader = slices.Clone(m.replicas), m.leader
	}
	return r
}

// state reads what the cluster has come to.
func (m *moving) state() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("replicas %v leader %d", m.replicas, m.leader)
}

func (m *moving) written() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.writes, " ")
}

// broken counts a write: answer says whether it is answered, done whether it is carried out.
func (m *moving) broken(what string) (answer, done bool) {
	m.writes = append(m.writes, what)
	if len(m.writes) != m.breakAt {
		return true, true
	}
	return false, m.lost
}

func (m *moving) reorder(req kmsg.Request) kmsg.Response {
	m.mu.Lock()
	defer m.mu.Unlock()
	order := req.(*kmsg.AlterPartitionAssignmentsRequest).Topics[0].Partitions[0].Replicas
	answer, done := m.broken(fmt.Sprintf("order %v", order))
	if done {
		m.replicas = slices.Clone(order)
	}
	if !answer {
		return nil
	}
	return kmsg.NewPtrAlterPartitionAssignmentsResponse()
}

func (m *moving) elect(req kmsg.Request) kmsg.Response {
	m.mu.Lock()
	answer, done := m.broken("elect")
	if done {
		m.leader = m.replicas[0]
	}
	m.mu.Unlock()
	if !answer {
		return nil
	}
	return m.fakeCluster.elect(req)
}

// TestElectLeaderSteps: the replica list is in its order after every way the election can end, and the same
// plan made anew takes up what was left.
func TestElectLeaderSteps(t *testing.T) {
	tp := cluster.TopicPartition{Topic: "topic-00000"}
	for _, tt := range []struct {
		breakAt int
		lost    bool
		ok      bool
		leader  int32
		writes  string
	}{
		{0, false, true, 2, "order [2 1] elect order [1 2]"},
		{1, false, false, 1, "order [2 1]"},
		{1, true, false, 1, "order [2 1] order [1 2]"},
		{2, false, false, 1, "order [2 1] elect order [1 2]"},
		{2, true, false, 2, "order [2 1] elect order [1 2]"},
		{3, false, false, 2, "order [2 1] elect order [1 2] order [1 2]"},
		{3, true, false, 2, "order [2 1] elect order [1 2]"},
	} {
		t.Run(fmt.Sprintf("break %d lost %v", tt.breakAt, tt.lost), func(t *testing.T) {
			m := newMoving(t)
			m.breakAt, m.lost = tt.breakAt, tt.lost
			c := openFake(t, Config{}, m.fakeBroker)
			lc, err := c.PlanLeader(t.Context(), tp, 2, nil)
			if err != nil || lc.Direct || fmt.Sprint(lc.Steps) != "[reorder elect restore]" {
				t.Fatalf("%+v %v", lc, err)
			}
			err = c.ElectLeader(t.Context(), lc, time.Minute, nil)
			if want := fmt.Sprintf("replicas [1 2] leader %d", tt.leader); (err == nil) != tt.ok || m.state() != want || m.written() != tt.writes {
				t.Errorf("%v: %s after %s", err, m.state(), m.written())
			}
			if err != nil && !strings.Contains(err.Error(), "order") && !strings.Contains(err.Error(), "not changed") {
				t.Errorf("the error does not say what became of the replica list: %v", err)
			}
			m.mu.Lock()
			m.breakAt = 0
			m.mu.Unlock()
			if lc, err = c.PlanLeader(t.Context(), tp, 2, nil); err != nil {
				t.Fatal(err)
			}
			if err := c.ElectLeader(t.Context(), lc, time.Minute, nil); err != nil || m.state() != "replicas [1 2] leader 2" {
				t.Errorf("again: %v: %s", err, m.state())
			}
		})
	}
}

// TestElectLeaderWithoutTime: an election whose time ends between two steps says which step took it, and not that brokers, which
// have answered all the time, do not answer.
func TestElectLeaderWithoutTime(t *testing.T) {
	m := newMoving(t)
	c := openFake(t, Config{}, m.fakeBroker)
	lc, err := c.PlanLeader(t.Context(), cluster.TopicPartition{Topic: "topic-00000"}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []plan.LeaderStep{plan.LeaderReorder, plan.LeaderElect} {
		base, end := context.WithCancel(t.Context())
		err := c.leaderSteps(timedOut{base}, lc, func(step plan.LeaderStep) {
			if step == at {
				end()
			}
		})
		end()
		want := fmt.Sprintf("the time ended in the step %q: no time is left to ask the brokers again", at)
		if err == nil || !strings.Contains(err.Error(), want) || KindOf(err) != Unreachable {
			t.Errorf("%s: %v", at, err)
		}
		m.mu.Lock()
		m.replicas, m.leader = []int32{1, 2}, 1
		m.mu.Unlock()
	}
}

// timedOut is a context whose cancellation is the end of its time.
type timedOut struct{ context.Context }

func (c timedOut) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestElectLeaderLeft: when the list cannot be put back, the error carries the order that is owed.
func TestElectLeaderLeft(t *testing.T) {
	m := newMoving(t)
	c := openFake(t, Config{}, m.fakeBroker)
	lc, err := c.PlanLeader(t.Context(), cluster.TopicPartition{Topic: "topic-00000"}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.answer[kmsg.ElectLeaders] = func(kmsg.Request) kmsg.Response {
		m.mu.Lock()
		m.answer[kmsg.AlterPartitionAssignments] = func(kmsg.Request) kmsg.Response { return nil }
		m.mu.Unlock()
		return nil
	}
	err = c.ElectLeader(t.Context(), lc, time.Minute, nil)
	left, ok := errors.AsType[*OrderLeft](err)
	if !ok || fmt.Sprint(left.Choice.Goal.Order) != "[1 2]" || !strings.Contains(err.Error(), "could not be put back to 1,2") {
		t.Errorf("%T %v", err, err)
	}
}

// TestElectLeaderInterrupted: Ctrl-C at any step leaves the replica list in its order, and is said.
func TestElectLeaderInterrupted(t *testing.T) {
	for _, at := range []plan.LeaderStep{plan.LeaderReorder, plan.LeaderElect, plan.LeaderRestore} {
		t.Run(string(at), func(t *testing.T) {
			m := newMoving(t)
			c := openFake(t, Config{}, m.fakeBroker)
			lc, err := c.PlanLeader(t.Context(), cluster.TopicPartition{Topic: "topic-00000"}, 2, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err = c.ElectLeader(ctx, lc, time.Minute, func(step plan.LeaderStep) {
				if step == at {
					cancel()
				}
			})
			if err == nil || !strings.Contains(err.Error(), "interrupted") || !strings.HasPrefix(m.state(), "replicas [1 2] ") {
				t.Errorf("%v: %s after %s", err, m.state(), m.written())
			}
		})
	}
}
