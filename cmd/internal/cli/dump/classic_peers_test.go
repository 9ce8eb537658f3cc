//go:build peers

package dump_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestPeerClassicRecords has clients make classic groups and transactions of all sorts on a running cluster, and compares every
// record of __consumer_offsets and __transaction_state with what Kafka's own tool reads in the same bytes. KCTL_PEER_DATA is
// a log directory, KCTL_KAFKA_JARS the folder of the jars.
//
// Where they differ by design: kctl leaves out what is null or empty, and gives partitions as TOPIC:P, so that a topic without
// partitions is not there. Kafka's tool before 4.0 does not show when a transaction began, nor partitions of one that is Empty.
func TestPeerClassicRecords(t *testing.T) {
	data, jars := os.Getenv("KCTL_PEER_DATA"), os.Getenv("KCTL_KAFKA_JARS")
	if data == "" || jars == "" {
		t.Fatal("KCTL_PEER_DATA and KCTL_KAFKA_JARS are not set")
	}
	name := "kctl-classic-" + strings.ReplaceAll(time.Now().Format("150405.000"), ".", "-")
	p := newPeerClients(t, name)
	p.consumers(t)
	p.admin(t)
	p.workers(t)
	p.transactions(t)
	for _, d := range []struct {
		topic, kctl, kafka string
		wanted             []string
	}{
		{"__consumer_offsets", "offsets", "--offsets-decoder", []string{
			"commit of " + name + "-consumers", "two members of " + name + "-consumers", "static member of " + name + "-consumers", "owned of " + name + "-consumers",
			"no members of " + name + "-consumers", "gone group " + name + "-consumers", "gone commit of " + name + "-consumers", "metadata of " + name + "-admin",
			"gone commit of " + name + "-admin", "bytes of " + name + "-workers", "commit of " + name + "-session",
		}},
		{"__transaction_state", "transactions", "--transaction-log-decoder", []string{
			"Empty " + name + "-commit", "CompleteCommit " + name + "-commit", "CompleteAbort " + name + "-abort", "Ongoing " + name + "-ongoing",
			"3 partitions of " + name + "-ongoing", "CompleteCommit " + name + "-session",
		}},
	} {
		files, got := p.read(t, filepath.Join(data, d.topic+"-*"), d.kctl, d.wanted)
		want := kafkaClassic(t, jars, d.kafka, files)
		same := 0
		for at, w := range want {
			g, ok := got[at]
			if _, says := w["startTimestamp"]; !says {
				delete(g, "startTimestamp") // Kafka's tool before 4.0
			}
			switch {
			case !ok:
				t.Errorf("%s: kctl shows no record, Kafka %s", at, canonical(t, w))
			case canonical(t, g) != canonical(t, w):
				t.Errorf("%s:\nkctl  %s\nKafka %s", at, canonical(t, g), canonical(t, w))
			default:
				same++
			}
		}
		for at, g := range got {
			if _, ok := want[at]; !ok {
				t.Errorf("%s: Kafka's tool shows no record, kctl %s", at, canonical(t, g))
			}
		}
		if t.Logf("%s: %d records of %d files are the same", d.topic, same, len(files)); same == 0 {
			t.Errorf("%s: nothing was compared", d.topic)
		}
	}
}

// peerClients are those of one run, with a topic of four partitions.
type peerClients struct {
	name string
	opts []kgo.Opt
	cl   *kgo.Client
	adm  *kadm.Client
	ctx  context.Context
}

func newPeerClients(t *testing.T, name string) *peerClients {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	t.Cleanup(cancel)
	p := &peerClients{name: name, ctx: ctx, opts: []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Getenv("KCTL_PEER_BOOTSTRAP"), ",")...), kgo.DefaultProduceTopic(name), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}}
	p.cl = p.client(t)
	p.adm = kadm.NewClient(p.cl)
	if r, err := p.adm.CreateTopic(ctx, 4, 1, nil, name); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	t.Cleanup(func() {
		if _, err := p.adm.DeleteTopic(ctx, name); err != nil {
			t.Error(err)
		}
	})
	p.produce(t, p.cl, 0, 1, 2, 3)
	return p
}

func (p *peerClients) client(t *testing.T, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(slices.Clone(p.opts), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func (p *peerClients) produce(t *testing.T, cl *kgo.Client, partitions ...int32) {
	t.Helper()
	for _, n := range partitions {
		if err := cl.ProduceSync(p.ctx, &kgo.Record{Partition: n, Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// consumers makes a group with a static and a dynamic member, has them commit, leave, and the group deleted.
func (p *peerClients) consumers(t *testing.T) {
	t.Helper()
	group := p.name + "-consumers"
	options := []kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(p.name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Rack("r1"), kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.RangeBalancer())}
	static := p.client(t, append(options, kgo.InstanceID("static-1"), kgo.ClientID("first"), kgo.SessionTimeout(20*time.Second))...)
	if err := static.PollFetches(p.ctx).Err(); err != nil {
		t.Fatal(err)
	}
	dynamic := p.client(t, append(options, kgo.ClientID("second"))...)
	p.until(t, "two members with partitions", func() bool {
		g, err := p.adm.DescribeGroups(p.ctx, group)
		if err != nil {
			t.Fatal(err)
		}
		with := 0
		for _, m := range g[group].Members {
			if a, ok := m.Assigned.AsConsumer(); ok && len(a.Topics) > 0 {
				with++
			}
		}
		return g[group].State == "Stable" && with == 2
	})
	for i, cl := range []*kgo.Client{static, dynamic} {
		// Not what was polled: the partitions with records may have gone to the other member since.
		offsets := map[string]map[int32]kgo.EpochOffset{p.name: {int32(i): {Epoch: 0, Offset: 1}}}
		cl.CommitOffsetsSync(p.ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			if err == nil {
				err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
			}
			if err != nil {
				t.Errorf("commit of member %d: %v", i, err)
			}
		})
		cl.Close() // a static member stays behind
	}
	if _, err := p.adm.LeaveGroup(p.ctx, kadm.LeaveGroup(group).InstanceIDs("static-1").Reason("the test is over")); err != nil {
		t.Fatal(err)
	}
	p.until(t, "an empty group that is deleted", func() bool {
		r, err := p.adm.DeleteGroup(p.ctx, group)
		return err == nil && r.Err == nil
	})
}

// admin commits for a group without members, with metadata, and deletes one offset.
func (p *peerClients) admin(t *testing.T) {
	t.Helper()
	group := p.name + "-admin"
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: p.name, Partition: 0, At: 1, LeaderEpoch: 0, Metadata: `{"by":"an operator", "why":"ü"}`})
	offsets.Add(kadm.Offset{Topic: p.name, Partition: 1, At: 0, LeaderEpoch: -1})
	if _, err := p.adm.CommitOffsets(p.ctx, group, offsets); err != nil {
		t.Fatal(err)
	}
	var one kadm.TopicsSet
	one.Add(p.name, 1)
	if r, err := p.adm.DeleteOffsets(p.ctx, group, one); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
	t.Cleanup(func() { _, _ = p.adm.DeleteGroup(p.ctx, group) })
}

// workers makes a group whose protocol type is not consumer, as Kafka Connect does: what its members say is bytes to others.
func (p *peerClients) workers(t *testing.T) {
	t.Helper()
	group := p.name + "-workers"
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = group, "connect", 10_000, 20_000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "sessioned", []byte{0, 1, 0xff, 0xfe}
	join.Protocols = append(join.Protocols, protocol)
	var joined *kmsg.JoinGroupResponse
	for range 2 { // the first answer only gives the member its id
		var err error
		if joined, err = join.RequestWith(p.ctx, p.cl); err != nil {
			t.Fatal(err)
		}
		join.MemberID = joined.MemberID
	}
	if err := kerr.ErrorForCode(joined.ErrorCode); err != nil {
		t.Fatal(err)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = group, joined.Generation, joined.MemberID
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("connect"), kmsg.StringPtr("sessioned")
	assigned := kmsg.NewSyncGroupRequestGroupAssignment()
	assigned.MemberID, assigned.MemberAssignment = joined.MemberID, []byte{0, 2, 0x80}
	sync.GroupAssignment = append(sync.GroupAssignment, assigned)
	if r, err := sync.RequestWith(p.ctx, p.cl); err != nil || r.ErrorCode != 0 {
		t.Fatal(err, r)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = joined.MemberID
	leave.Group, leave.MemberID, leave.Members = group, joined.MemberID, append(leave.Members, member)
	t.Cleanup(func() {
		_, _ = leave.RequestWith(p.ctx, p.cl)
		_, _ = p.adm.DeleteGroup(p.ctx, group)
	})
}

// transactions commits one, aborts one, leaves one open until the test ends, and commits one with offsets of a group.
func (p *peerClients) transactions(t *testing.T) {
	t.Helper()
	for end, commit := range map[string]kgo.TransactionEndTry{"commit": kgo.TryCommit, "abort": kgo.TryAbort} {
		cl := p.begin(t, end, 0, 2)
		if err := cl.EndTransaction(p.ctx, commit); err != nil {
			t.Fatal(err)
		}
	}
	open := p.begin(t, "ongoing", 3, 1, 0)
	t.Cleanup(func() {
		if err := open.EndTransaction(p.ctx, kgo.TryAbort); err != nil {
			t.Error(err)
		}
	})
	group := p.name + "-session"
	s, err := kgo.NewGroupTransactSession(append(slices.Clone(p.opts), kgo.TransactionalID(group), kgo.ConsumerGroup(group), kgo.ConsumeTopics(p.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RequireStableFetchOffsets())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		_, _ = p.adm.DeleteGroup(p.ctx, group)
	})
	if err := s.PollFetches(p.ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := s.ProduceSync(p.ctx, &kgo.Record{Partition: 2, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if committed, err := s.End(p.ctx, kgo.TryCommit); err != nil || !committed {
		t.Fatal(committed, err)
	}
}

func (p *peerClients) begin(t *testing.T, id string, partitions ...int32) *kgo.Client {
	t.Helper()
	cl := p.client(t, kgo.TransactionalID(p.name+"-"+id), kgo.TransactionTimeout(10*time.Minute))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	p.produce(t, cl, partitions...)
	return cl
}

func (p *peerClients) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("in vain was waited for %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// read copies the files of a topic and decodes them until all that is wanted is in them.
func (p *peerClients) read(t *testing.T, folders, decoder string, wanted []string) (files []string, rows map[string]map[string]any) {
	t.Helper()
	var seen map[string]bool
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	for {
		files = written(t, folders, []string{"*.log"})
		rows, seen = kctlClassic(t, decoder, files)
		missing := slices.DeleteFunc(slices.Clone(wanted), func(w string) bool { return seen[w] })
		if len(missing) == 0 {
			return files, rows
		}
		select {
		case <-ctx.Done():
			t.Errorf("not written: %s", strings.Join(missing, "; "))
			return files, rows
		case <-time.After(200 * time.Millisecond):
		}
	}
}
