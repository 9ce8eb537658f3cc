package groupshell

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/group"
	"kctl/zkutil/cluster"
)

// rig is a running Manager that leads all partitions of an offsets topic in memory. It lives in a synctest
// bubble, so time moves only when everything waits.
type rig struct {
	t       *testing.T
	m       *Manager
	log     *memLog
	cluster *fakeCluster
	ctx     context.Context
	stop    func()
}

const rigPartitions = 2

func newRig(t *testing.T, log *memLog) *rig {
	r := startRig(t, log)
	for p := range int32(rigPartitions) {
		r.m.OnLeadership(p, true, 1)
	}
	synctest.Wait()
	return r
}

func startRig(t *testing.T, log *memLog) *rig {
	ctx, cancel := context.WithCancel(t.Context())
	fc := newFakeCluster(rigPartitions)
	cfg := DefaultConfig()
	cfg.OffsetsLoadBufferBytes = 300
	m := New(Options{Config: cfg, Log: log, Metadata: fc, Topics: fc, Registerer: prometheus.NewRegistry()})
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stopped := false
	r := &rig{t: t, m: m, log: log, cluster: fc, ctx: ctx}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// advance moves the bubble's clock and waits until everyone has done what was due.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var client = ClientInfo{ClientID: "c", Host: "/10.0.0.1", Listener: "PLAINTEXT"}

func joinRequest(groupID, memberID string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 3, groupID, memberID, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 60_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("m")}}
	return req
}

func (r *rig) syncRequest(j *kmsg.JoinGroupResponse, groupID string, assign ...string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 3, groupID, j.MemberID, j.Generation
	for i, m := range j.Members {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: []byte(assign[i])})
	}
	return req
}

func commitRequest(groupID string, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group = 9, groupID
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.LeaderEpoch = offset, 5
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return req
}

func fetchRequest(groupID string, stable bool) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable = 9, stable
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: groupID, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{0}}}}}
	return req
}

func (r *rig) fetch(groupID string, stable bool) (int64, group.Code) {
	g := r.m.OffsetFetch(r.ctx, fetchRequest(groupID, stable)).Groups[0]
	if g.ErrorCode != 0 {
		return -1, group.Code(g.ErrorCode)
	}
	p := g.Topics[0].Partitions[0]
	return p.Offset, group.Code(p.ErrorCode)
}

// await runs f in a goroutine; the returned function gives its result and fails when there is none yet.
func await[T any](t *testing.T, f func() T) func() T {
	ch := make(chan T, 1)
	go func() { ch <- f() }()
	return func() T {
		t.Helper()
		select {
		case v := <-ch:
			return v
		default:
			t.Fatal("no answer yet")
			panic("unreachable")
		}
	}
}

func (r *rig) equal(what string, got, want any) {
	r.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// twoMembers brings a group with two members to Stable and returns their JoinGroup answers, leader first.
func (r *rig) twoMembers(groupID string) (leader, follower *kmsg.JoinGroupResponse) {
	r.t.Helper()
	a := await(r.t, func() *kmsg.JoinGroupResponse { return r.m.JoinGroup(r.ctx, client, joinRequest(groupID, "")) })
	synctest.Wait()
	b := await(r.t, func() *kmsg.JoinGroupResponse { return r.m.JoinGroup(r.ctx, client, joinRequest(groupID, "")) })
	advance(6 * time.Second) // fake time: the initial delay and its one extension
	leader, follower = a(), b()
	r.equal("join", []any{leader.ErrorCode, follower.ErrorCode, leader.LeaderID, len(leader.Members), len(follower.Members)}, []any{0, 0, leader.MemberID, 2, 0})
	s2 := await(r.t, func() *kmsg.SyncGroupResponse { return r.m.SyncGroup(r.ctx, r.syncRequest(follower, groupID)) })
	synctest.Wait()
	s1 := r.m.SyncGroup(r.ctx, r.syncRequest(leader, groupID, "p0", "p1"))
	synctest.Wait()
	r.equal("assignments", fmt.Sprintf("%s %s", s1.MemberAssignment, s2().MemberAssignment), "p0 p1")
	return leader, follower
}

func heartbeatRequest(groupID string, j *kmsg.JoinGroupResponse) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, groupID, j.MemberID, j.Generation
	return req
}

func TestGroupLifeAndTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		leader, follower := r.twoMembers("g")
		r.equal("heartbeat", r.m.Heartbeat(r.ctx, heartbeatRequest("g", follower)).ErrorCode, 0)

		commit := commitRequest("g", 42)
		commit.MemberID, commit.Generation = leader.MemberID, leader.Generation
		r.equal("commit", r.m.OffsetCommit(r.ctx, commit).Topics[0].Partitions[0].ErrorCode, 0)

		// The next broker reads the same log and goes on where this one stopped.
		r.stop()
		r2 := newRig(t, log)
		off, code := r2.fetch("g", true)
		r2.equal("offset after takeover", []any{off, code}, []any{42, group.None})
		r2.equal("heartbeat after takeover", r2.m.Heartbeat(r2.ctx, heartbeatRequest("g", follower)).ErrorCode, 0)
		d := r2.m.DescribeGroups(r2.ctx, &kmsg.DescribeGroupsRequest{Version: 5, Groups: []string{"g"}}).Groups[0]
		r2.equal("describe", fmt.Sprintf("%s %s %s %d %s %s", d.State, d.ProtocolType, d.Protocol, len(d.Members), d.Members[0].ClientHost, d.Members[1].MemberAssignment),
			"Stable consumer range 2 /10.0.0.1 p1")

		leave := &kmsg.LeaveGroupRequest{Version: 5, Group: "g", Members: []kmsg.LeaveGroupRequestMember{{MemberID: leader.MemberID}, {MemberID: follower.MemberID}}}
		lr := r2.m.LeaveGroup(r2.ctx, leave)
		r2.equal("leave", []any{lr.ErrorCode, lr.Members[0].ErrorCode, lr.Members[1].ErrorCode}, []any{0, 0, 0})
		dr := r2.m.DeleteGroups(r2.ctx, &kmsg.DeleteGroupsRequest{Version: 2, Groups: []string{"g", "none"}})
		r2.equal("delete", []any{dr.Groups[0].ErrorCode, dr.Groups[1].ErrorCode}, []any{0, int16(group.GroupIDNotFound)})
		r2.equal("log", log.records(t, r2.m.PartitionFor("g")), []string{
			"group g gen=1 members=2", "offset g t-0 42", "group g gen=2 members=0", "offset g t-0 tombstone", "group g tombstone"})
	})
}

func TestSessionTimeoutByTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemLog())
		leader, follower := r.twoMembers("g")
		advance(8 * time.Second)
		r.equal("heartbeat", r.m.Heartbeat(r.ctx, heartbeatRequest("g", leader)).ErrorCode, 0)
		advance(3 * time.Second)
		r.equal("heartbeat of the silent", group.Code(r.m.Heartbeat(r.ctx, heartbeatRequest("g", follower)).ErrorCode), group.UnknownMemberID)
		r.equal("heartbeat of the other", group.Code(r.m.Heartbeat(r.ctx, heartbeatRequest("g", leader)).ErrorCode), group.RebalanceInProgress)
	})
}

func TestNotCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRig(t, newMemLog())
		r.equal("join", group.Code(r.m.JoinGroup(r.ctx, client, joinRequest("g", "x")).ErrorCode), group.NotCoordinator)
		_, code := r.fetch("g", false)
		r.equal("fetch", code, group.NotCoordinator)
		r.equal("list", len(r.m.ListGroups(r.ctx, &kmsg.ListGroupsRequest{Version: 5}).Groups), 0)
		old := fetchRequest("g", false)
		v1 := &kmsg.OffsetFetchRequest{Version: 1, Group: "g", Topics: []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}}
		a := r.m.OffsetFetch(r.ctx, v1)
		r.equal("v1 puts the error on partitions", group.Code(a.Topics[0].Partitions[0].ErrorCode), group.NotCoordinator)
		r.equal("v9 puts it on the group", group.Code(r.m.OffsetFetch(r.ctx, old).Groups[0].ErrorCode), group.NotCoordinator)
	})
}

func TestLoadInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		for i := range 20 {
			r.m.OffsetCommit(r.ctx, commitRequest("g", int64(i)))
		}
		p := r.m.PartitionFor("g")
		r.m.OnLeadership(p, false, 2)
		log.readGate = make(chan struct{}, 100)
		r.m.OnLeadership(p, true, 3)
		synctest.Wait()

		_, code := r.fetch("g", false)
		r.equal("fetch while loading", code, group.CoordinatorLoadInProgress)
		hb := heartbeatRequest("g", &kmsg.JoinGroupResponse{MemberID: "m"})
		r.equal("heartbeat while loading", r.m.Heartbeat(r.ctx, hb).ErrorCode, 0)
		s := &kmsg.SyncGroupRequest{Version: 3, Group: "g", MemberID: "m"}
		r.equal("sync while loading", group.Code(r.m.SyncGroup(r.ctx, s).ErrorCode), group.RebalanceInProgress)
		r.equal("list while loading", group.Code(r.m.ListGroups(r.ctx, &kmsg.ListGroupsRequest{}).ErrorCode), group.CoordinatorLoadInProgress)

		for range 100 { // several buffers are needed; one read each
			log.readGate <- struct{}{}
		}
		synctest.Wait()
		off, code := r.fetch("g", false)
		r.equal("fetch after loading", []any{off, code}, []any{19, group.None})
		if used := 100 - len(log.readGate); used < 5 {
			t.Fatalf("loaded in %d reads; the buffer was not respected", used)
		}
	})
}

func TestLoadFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		r.m.OffsetCommit(r.ctx, commitRequest("g", 7))
		p := r.m.PartitionFor("g")
		r.m.OnLeadership(p, false, 2)
		log.set(func() { log.readErr = errDisk })
		r.m.OnLeadership(p, true, 3)
		synctest.Wait()
		_, code := r.fetch("g", false)
		r.equal("after a failed read", code, group.CoordinatorLoadInProgress)
		log.set(func() { log.readErr = nil })
		advance(loadRetry)
		off, code := r.fetch("g", false)
		r.equal("after the retry", []any{off, code}, []any{7, group.None})
	})
}

func TestLeadershipLostAnswersEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		log.set(func() { log.hold = true })
		join := await(t, func() int16 { return r.m.JoinGroup(r.ctx, client, joinRequest("g", "")).ErrorCode })
		commit := await(t, func() int16 {
			return r.m.OffsetCommit(r.ctx, commitRequest("h", 1)).Topics[0].Partitions[0].ErrorCode
		})
		synctest.Wait()
		for p := range int32(rigPartitions) {
			r.m.OnLeadership(p, true, 0) // older than what was seen: ignored
			r.m.OnLeadership(p, false, 2)
		}
		synctest.Wait()
		r.equal("answers", []group.Code{group.Code(join()), group.Code(commit())}, []group.Code{group.NotCoordinator, group.NotCoordinator})
		log.release() // a confirmation of the old leadership must not hurt
		r.m.OnLeadership(0, true, 3)
		r.m.OnLeadership(1, true, 3)
		synctest.Wait()
		off, _ := r.fetch("h", false)
		r.equal("what was written is read back", off, 1)
	})
}

func TestLeaderInNewEpochKeepsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		join := await(t, func() int16 { return r.m.JoinGroup(r.ctx, client, joinRequest("g", "")).ErrorCode })
		synctest.Wait()
		r.m.OnLeadership(r.m.PartitionFor("g"), true, 2)
		advance(4 * time.Second)
		r.equal("the waiting join is answered", join(), 0)
	})
}

func TestCommitWaitsAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		log.set(func() { log.hold = true })
		var commits []func() *kmsg.OffsetCommitResponse
		for i := range 3 {
			commits = append(commits, await(t, func() *kmsg.OffsetCommitResponse { return r.m.OffsetCommit(r.ctx, commitRequest("g", int64(i))) }))
			synctest.Wait()
		}
		r.equal("held", log.heldCount(), 3)
		off, code := r.fetch("g", true)
		r.equal("stable fetch", []any{off, code}, []any{-1, group.UnstableOffsetCommit})
		off, code = r.fetch("g", false)
		r.equal("plain fetch", []any{off, code}, []any{-1, group.None})
		log.release(2, 0, 1)
		synctest.Wait()
		for _, c := range commits {
			r.equal("commit", c().Topics[0].Partitions[0].ErrorCode, 0)
		}
		off, code = r.fetch("g", true)
		r.equal("after", []any{off, code}, []any{2, group.None})
	})
}

func TestCommitsShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		log.entered, log.gate = make(chan struct{}, 10), make(chan struct{}, 10)
		var commits []func() *kmsg.OffsetCommitResponse
		for i := range 50 {
			commits = append(commits, await(t, func() *kmsg.OffsetCommitResponse { return r.m.OffsetCommit(r.ctx, commitRequest("g", int64(i))) }))
		}
		synctest.Wait()
		r.equal("one append under way", len(log.entered), 1)
		log.gate <- struct{}{}
		log.gate <- struct{}{}
		synctest.Wait()
		for _, c := range commits {
			r.equal("commit", c().Topics[0].Partitions[0].ErrorCode, 0)
		}
		r.equal("appends", log.appends, 2)
		r.equal("records", len(log.records(t, r.m.PartitionFor("g"))), 50)
	})
}

func TestCommitRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		req := commitRequest("g", 1)
		for i, topic := range []string{"t", "nowhere"} {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition = int32(3 - 3*i)
			req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
		}
		resp := r.m.OffsetCommit(r.ctx, req)
		r.equal("codes", []any{resp.Topics[0].Partitions[0].ErrorCode, resp.Topics[1].Partitions[0].ErrorCode, resp.Topics[2].Partitions[0].ErrorCode}, []any{0, 3, 3})
		log.set(func() { log.fail = group.NotLeaderOrFollower })
		r.equal("append refused", group.Code(r.m.OffsetCommit(r.ctx, commitRequest("g", 2)).Topics[0].Partitions[0].ErrorCode), group.NotCoordinator)
		off, code := r.fetch("g", true)
		r.equal("old offset stays", []any{off, code}, []any{1, group.None})
	})
}

// TestDeletionsShareABatch: many groups are deleted with a few appends.
func TestDeletionsShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		req := &kmsg.DeleteGroupsRequest{Version: 2}
		for i := range 100 {
			id := fmt.Sprintf("g%d", i)
			r.m.OffsetCommit(r.ctx, commitRequest(id, 1))
			req.Groups = append(req.Groups, id)
		}
		req.Groups = append(req.Groups, "g0") // under way already
		before := log.appends
		resp := r.m.DeleteGroups(r.ctx, req)
		for i, g := range resp.Groups[:100] {
			r.equal("delete", []any{g.Group, g.ErrorCode}, []any{req.Groups[i], 0})
		}
		r.equal("again", group.Code(resp.Groups[100].ErrorCode), group.GroupIDNotFound)
		r.equal("appends", log.appends-before, rigPartitions)
		groups, offsets := r.m.counts()
		r.equal("left", []int{groups, offsets}, []int{0, 0})
	})
}

// TestTextsThatNoRecordCanHold are refused: the length fields of the records have 16 bits.
func TestTextsThatNoRecordCanHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		long := strings.Repeat("x", 40_000)
		bad := func(what string, want group.Code, change func(*kmsg.JoinGroupRequest, *ClientInfo)) {
			req, c := joinRequest("g", ""), client
			req.Version = 9
			change(req, &c)
			r.equal(what, group.Code(r.m.JoinGroup(r.ctx, c, req).ErrorCode), want)
		}
		bad("group", group.InvalidGroupID, func(j *kmsg.JoinGroupRequest, _ *ClientInfo) { j.Group = long })
		bad("client", group.InvalidRequest, func(_ *kmsg.JoinGroupRequest, c *ClientInfo) { c.ClientID = long })
		bad("almost too long a client", group.InvalidRequest, func(_ *kmsg.JoinGroupRequest, c *ClientInfo) { c.ClientID = long[:32_760] })
		bad("instance", group.InvalidRequest, func(j *kmsg.JoinGroupRequest, _ *ClientInfo) { j.InstanceID = &long })
		bad("type", group.InvalidRequest, func(j *kmsg.JoinGroupRequest, _ *ClientInfo) { j.ProtocolType = long })
		bad("protocol", group.InvalidRequest, func(j *kmsg.JoinGroupRequest, _ *ClientInfo) { j.Protocols[0].Name = long })
		r.equal("commit", group.Code(r.m.OffsetCommit(r.ctx, commitRequest(long, 1)).Topics[0].Partitions[0].ErrorCode), group.InvalidGroupID)
		r.m.opts.Config.OffsetMetadataMaxBytes = 100_000
		for _, sh := range r.m.allShards() {
			sh.core.SetConfig(r.m.coreConfig())
		}
		req := commitRequest("g", 1)
		req.Topics[0].Partitions[0].Metadata = &long
		r.equal("metadata", group.Code(r.m.OffsetCommit(r.ctx, req).Topics[0].Partitions[0].ErrorCode), group.OffsetMetadataTooLarge)
		r.equal("appends", log.appends, 0)
	})
}

func TestClientGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemLog())
		ctx, cancel := context.WithCancel(r.ctx)
		join := await(t, func() int16 { return r.m.JoinGroup(ctx, client, joinRequest("g", "")).ErrorCode })
		synctest.Wait()
		cancel()
		synctest.Wait()
		r.equal("join", group.Code(join()), group.RequestTimedOut)
		advance(time.Minute) // the orphan completes its rebalance and times out
		r.equal("state", r.m.DescribeGroups(r.ctx, &kmsg.DescribeGroupsRequest{Groups: []string{"g"}}).Groups[0].State, "Empty")
	})
}

func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRig(t, log)
		r.m.OffsetCommit(r.ctx, commitRequest("g", 1))
		advance(7*24*time.Hour + 11*time.Minute)
		r.equal("log", log.records(t, r.m.PartitionFor("g")), []string{"offset g t-0 1", "offset g t-0 tombstone"})
		r.equal("groups", len(r.m.ListGroups(r.ctx, &kmsg.ListGroupsRequest{Version: 5}).Groups), 0)
	})
}

func TestTopicsDeletedAndOffsetDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemLog())
		r.m.OffsetCommit(r.ctx, commitRequest("g", 1))
		req := &kmsg.OffsetDeleteRequest{Group: "g", Topics: []kmsg.OffsetDeleteRequestTopic{
			{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 9}}},
			{Topic: "nowhere", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}},
		}}
		resp := r.m.OffsetDelete(r.ctx, req)
		r.equal("codes", []any{resp.ErrorCode, resp.Topics[0].Partitions[0].ErrorCode, resp.Topics[0].Partitions[1].ErrorCode, resp.Topics[1].Partitions[0].ErrorCode}, []any{0, 0, 3, 3})
		off, _ := r.fetch("g", false)
		r.equal("gone", off, -1)
		r.m.OffsetCommit(r.ctx, commitRequest("h", 1))
		r.m.OnTopicsDeleted(r.ctx, []string{"t"})
		off, _ = r.fetch("h", false)
		r.equal("gone with its topic", off, -1)
		req.Group = "nobody"
		r.equal("unknown group", group.Code(r.m.OffsetDelete(r.ctx, req).ErrorCode), group.GroupIDNotFound)
	})
}

func TestOldVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemLog())
		j := joinRequest("g", "")
		j.Version, j.RebalanceTimeoutMillis = 0, -1
		resp := r.m.JoinGroup(r.ctx, client, j)
		r.equal("v0 join", []any{resp.ErrorCode, *resp.Protocol, len(resp.Members)}, []any{0, "range", 1})
		s := r.syncRequest(resp, "g", "a")
		s.Version = 5
		r.equal("v5 sync must name the protocol", group.Code(r.m.SyncGroup(r.ctx, s).ErrorCode), group.InconsistentGroupProtocol)
		s.Version = 0
		r.equal("v0 sync", string(r.m.SyncGroup(r.ctx, s).MemberAssignment), "a")
		bad := r.m.JoinGroup(r.ctx, client, joinRequest("g", "stranger"))
		r.equal("error before v7 has an empty protocol", []any{group.Code(bad.ErrorCode), *bad.Protocol}, []any{group.UnknownMemberID, ""})
		r.equal("v0 leave of a stranger", group.Code(r.m.LeaveGroup(r.ctx, &kmsg.LeaveGroupRequest{Group: "g", MemberID: "x"}).ErrorCode), group.UnknownMemberID)
		r.equal("v0 leave", r.m.LeaveGroup(r.ctx, &kmsg.LeaveGroupRequest{Group: "g", MemberID: resp.MemberID}).ErrorCode, 0)
		v4 := joinRequest("g", "")
		v4.Version = 4
		first := r.m.JoinGroup(r.ctx, client, v4)
		r.equal("v4 gets an id first", group.Code(first.ErrorCode), group.MemberIDRequired)
		c := commitRequest("h", 3)
		c.Version, c.RetentionTimeMillis = 3, 60_000
		r.m.OffsetCommit(r.ctx, c)
		v2 := &kmsg.OffsetFetchRequest{Version: 2, Group: "h"}
		all := r.m.OffsetFetch(r.ctx, v2)
		r.equal("v2 fetch of everything", []any{all.Topics[0].Topic, all.Topics[0].Partitions[0].Offset, all.Topics[0].Partitions[0].LeaderEpoch}, []any{"t", 3, 5})
		advance(20 * time.Minute)
		off, _ := r.fetch("h", false)
		r.equal("its own retention is over", off, -1)
	})
}

func TestFindCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRig(t, newMemLog())
		delete(r.cluster.topics, OffsetsTopic)
		find := func(version int16, kind int8, keys ...string) *kmsg.FindCoordinatorResponse {
			req := &kmsg.FindCoordinatorRequest{Version: version, CoordinatorType: kind, CoordinatorKeys: keys, CoordinatorKey: keys[0]}
			return r.m.FindCoordinator(r.ctx, client, req)
		}
		a := find(3, 0, "g")
		r.equal("no topic yet", []any{group.Code(a.ErrorCode), *a.ErrorMessage, a.NodeID, a.Port}, []any{group.CoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE", -1, -1})
		r.equal("created", r.cluster.created, []string{"__consumer_offsets 50 3 map[cleanup.policy:compact compression.type:producer segment.bytes:104857600]"})

		r.cluster.topics[OffsetsTopic] = 50
		p := cluster.JavaStringHash("g") & 0x7fffffff % 50
		r.cluster.leaders[cluster.TopicPartition{Topic: OffsetsTopic, Partition: p}] = Node{ID: 7, Host: "h", Port: 9092}
		a = find(0, 0, "g")
		r.equal("v0", []any{a.ErrorCode, a.NodeID, a.Host, a.Port}, []any{0, 7, "PLAINTEXT.h", 9092})
		a = find(6, 0, "g", "some-other-group")
		r.equal("v6", []any{len(a.Coordinators), a.Coordinators[0].NodeID, group.Code(a.Coordinators[1].ErrorCode)}, []any{2, 7, group.CoordinatorNotAvailable})
		r.equal("transactions", group.Code(find(6, 1, "tx").Coordinators[0].ErrorCode), group.CoordinatorNotAvailable)
		r.equal("unknown type", group.Code(find(6, 9, "x").Coordinators[0].ErrorCode), group.InvalidRequest)
	})
}

// TestManyGroups: thousands of groups cost no goroutine.
func TestManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemLog())
		before := runtime.NumGoroutine()
		const n = 3000
		for i := range n {
			req := joinRequest(fmt.Sprintf("group-%d", i), "")
			req.Version = 4
			if code := group.Code(r.m.JoinGroup(r.ctx, client, req).ErrorCode); code != group.MemberIDRequired {
				t.Fatal(code)
			}
		}
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > before+2 {
			t.Fatalf("%d goroutines before, %d with %d groups", before, now, n)
		}
		groups, _ := r.m.counts()
		r.equal("groups", groups, n)
		list := r.m.ListGroups(r.ctx, &kmsg.ListGroupsRequest{Version: 5, StatesFilter: []string{"empty"}, TypesFilter: []string{"classic"}})
		r.equal("listed", len(list.Groups), n)
		if !slices.ContainsFunc(list.Groups, func(g kmsg.ListGroupsResponseGroup) bool {
			return g.Group == "group-7" && g.GroupState == "Empty" && g.GroupType == "classic"
		}) {
			t.Fatal("group-7 is not listed with state and type")
		}
		advance(11 * time.Minute) // the ids expire, then the groups
		groups, _ = r.m.counts()
		r.equal("groups after the check", groups, 0)
	})
}
