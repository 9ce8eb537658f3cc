package group

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kctl/zkutil/cluster"
)

// TestRandomEvents drives a shard with random requests, outcomes and pauses. After every event the groups
// are consistent; at the end, after Unload, every request has been answered exactly once, and what the
// appended records say equals what the shard said.
func TestRandomEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &randomRun{rt: rt, t: t, env: newScriptEnv(t), answered: map[RequestID]int{}}
		r.env.shard.SetConfig(Config{
			SessionTimeoutMin: time.Second, SessionTimeoutMax: time.Hour, InitialRebalanceDelay: time.Second,
			MaxSize: 4, OffsetMetadataMax: 8, OffsetsRetention: time.Minute,
		})
		for range rapid.IntRange(1, 120).Draw(rt, "steps") {
			r.one()
		}
		r.step(Unload{At: r.env.now})
		for id := RequestID(1); id <= r.requests; id++ {
			if r.answered[id] != 1 {
				rt.Fatalf("request %d answered %d times", id, r.answered[id])
			}
		}
	})
}

type randomRun struct {
	rt       *rapid.T
	t        *testing.T
	env      *scriptEnv
	requests RequestID
	answered map[RequestID]int
	appends  []AppendID
	members  []string
}

func (r *randomRun) step(ev Event) {
	effects := r.env.shard.Step(ev, nil)
	for _, eff := range effects {
		switch e := eff.(type) {
		case ArmTimer:
			r.env.timers = append(r.env.timers, e)
		case Append:
			r.appends = append(r.appends, e.ID)
		case JoinReply:
			r.answered[e.Request]++
			if e.MemberID != "" {
				r.members = append(r.members, e.MemberID)
			}
		case SyncReply:
			r.answered[e.Request]++
		case HeartbeatReply:
			r.answered[e.Request]++
		case LeaveReply:
			r.answered[e.Request]++
		case CommitReply:
			r.answered[e.Request]++
		case DeleteGroupReply:
			r.answered[e.Request]++
		case DeleteOffsetsReply:
			r.answered[e.Request]++
		}
	}
	for _, g := range r.env.shard.groups {
		checkGroup(r.t, g)
	}
	if r.t.Failed() {
		r.rt.Fatalf("after %T%+v", ev, ev)
	}
}

func (r *randomRun) next() RequestID { r.requests++; return r.requests }

func (r *randomRun) pickMember() string {
	if len(r.members) == 0 || rapid.IntRange(0, 5).Draw(r.rt, "new") == 0 {
		return ""
	}
	return rapid.SampledFrom(r.members).Draw(r.rt, "member")
}

func (r *randomRun) pickInstance() *string {
	if rapid.IntRange(0, 2).Draw(r.rt, "static") > 0 {
		return nil
	}
	i := rapid.SampledFrom([]string{"i1", "i2"}).Draw(r.rt, "instance")
	return &i
}

func (r *randomRun) one() {
	group := rapid.SampledFrom([]string{"g", "h"}).Draw(r.rt, "group")
	at := r.env.now
	gen := int32(rapid.IntRange(-1, 6).Draw(r.rt, "gen"))
	tp := cluster.TopicPartition{Topic: "t", Partition: int32(rapid.IntRange(0, 2).Draw(r.rt, "partition"))}
	switch rapid.IntRange(0, 11).Draw(r.rt, "kind") {
	case 0, 1, 2:
		protos := rapid.SampledFrom([][]Protocol{{{"a", nil}}, {{"a", []byte("x")}, {"b", nil}}, {{"b", nil}, {"a", nil}, {"a", nil}}, {}}).Draw(r.rt, "protocols")
		req := r.next()
		r.step(Join{At: at, Request: req, Group: group, MemberID: r.pickMember(), InstanceID: r.pickInstance(), ClientID: "c",
			Suffix: fmt.Sprint(req), RequireKnownMemberID: rapid.Bool().Draw(r.rt, "known"), SkipAssignment: rapid.Bool().Draw(r.rt, "skip"),
			SessionTimeout: 10 * time.Second, RebalanceTimeout: 20 * time.Second, ProtocolType: "consumer", Protocols: protos})
	case 3, 4:
		r.step(Sync{At: at, Request: r.next(), Group: group, MemberID: r.pickMember(), InstanceID: r.pickInstance(), Generation: gen})
	case 5:
		r.step(Heartbeat{At: at, Request: r.next(), Group: group, MemberID: r.pickMember(), Generation: gen})
	case 6:
		r.step(Leave{At: at, Request: r.next(), Group: group, Members: []Leaver{{MemberID: r.pickMember(), InstanceID: r.pickInstance()}}})
	case 7:
		pid := rapid.SampledFrom([]int64{NoProducer, NoProducer, 7}).Draw(r.rt, "pid")
		r.step(CommitOffsets{At: at, Request: r.next(), Group: group, MemberID: r.pickMember(), Generation: gen, ProducerID: pid,
			Offsets: []PartitionOffset{{tp, Offset{Offset: 1, ExpireTimestamp: -1}}}})
	case 8:
		r.odd(group, tp)
	case 9:
		r.tick(time.Duration(rapid.IntRange(0, 30).Draw(r.rt, "seconds")) * time.Second)
	default:
		if len(r.appends) > 0 {
			code := rapid.SampledFrom([]Code{None, None, None, NotEnoughReplicas, RequestTimedOut}).Draw(r.rt, "code")
			id := r.appends[0]
			r.appends = r.appends[1:]
			r.step(Appended{At: at, ID: id, Code: code})
		}
	}
}

func (r *randomRun) odd(group string, tp cluster.TopicPartition) {
	at := r.env.now
	switch rapid.IntRange(0, 4).Draw(r.rt, "odd") {
	case 0:
		r.step(DeleteGroup{At: at, Request: r.next(), Group: group})
	case 1:
		r.step(DeleteOffsets{At: at, Request: r.next(), Group: group, Partitions: []cluster.TopicPartition{tp, tp}})
	case 2:
		r.step(Expire{At: at})
	case 3:
		r.step(EndTransaction{At: at, ProducerID: 7, Commit: rapid.Bool().Draw(r.rt, "commit")})
	case 4:
		r.step(TopicsDeleted{At: at, Topics: []string{"t"}})
	}
}

func (r *randomRun) tick(d time.Duration) {
	r.env.now = r.env.now.Add(d)
	var later, due []ArmTimer
	for _, a := range r.env.timers {
		if a.At.After(r.env.now) {
			later = append(later, a)
		} else {
			due = append(due, a)
		}
	}
	r.env.timers = later
	for _, a := range due {
		r.step(TimerFired{At: r.env.now, Timer: a.Timer})
	}
}

func FuzzSubscriptionTopics(f *testing.F) {
	f.Add(subscription([]string{"a", "bb"}))
	f.Add([]byte{0, 1, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics := map[string]struct{}{}
		ok := subscriptionTopics(b, topics)
		n := 0
		for topic := range topics {
			n += len(topic)
		}
		if n > len(b) || ok && len(b) < 6 {
			t.Fatalf("%d bytes of topics out of %d", n, len(b))
		}
	})
}
