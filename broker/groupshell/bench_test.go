package groupshell

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/group"
)

// benchManager leads all partitions on a log that forgets.
func benchManager(b *testing.B) *Manager {
	fc := newFakeCluster(4)
	m := New(Options{Config: DefaultConfig(), Log: forgetful{}, Metadata: fc, Topics: fc})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	for p := range int32(4) {
		m.OnLeadership(p, true, 1)
	}
	for _, sh := range m.allShards() {
		for deadline := time.Now().Add(10 * time.Second); ; {
			sh.mu.Lock()
			state := sh.state
			sh.mu.Unlock()
			if state == active {
				break
			}
			if time.Now().After(deadline) {
				b.Fatal("not loaded")
			}
		}
	}
	return m
}

type forgetful struct{}

func (forgetful) Append(_ context.Context, _ int32, _ []byte, _ time.Duration, done func(group.Code)) {
	done(group.None)
}
func (forgetful) Range(int32) (int64, int64, error)                       { return 0, 0, nil }
func (forgetful) Read(context.Context, int32, int64, int) ([]byte, error) { return nil, nil }

// BenchmarkOffsetCommit: one offset of a consumer without group management, from many goroutines.
func BenchmarkOffsetCommit(b *testing.B) {
	m := benchManager(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req := commitRequest("g", 1)
		for pb.Next() {
			if m.OffsetCommit(context.Background(), req).Topics[0].Partitions[0].ErrorCode != 0 {
				b.Error("refused")
				return
			}
		}
	})
}

// BenchmarkHeartbeat: the most frequent request of all.
func BenchmarkHeartbeat(b *testing.B) {
	m := benchManager(b)
	cfg := m.opts.Config
	cfg.GroupInitialRebalanceWait = 0
	m.opts.Config = cfg
	for _, sh := range m.allShards() {
		sh.mu.Lock()
		sh.core.SetConfig(m.coreConfig())
		sh.mu.Unlock()
	}
	j := m.JoinGroup(context.Background(), client, joinRequest("g", ""))
	s := &kmsg.SyncGroupRequest{Version: 3, Group: "g", MemberID: j.MemberID, Generation: j.Generation}
	if code := m.SyncGroup(context.Background(), s).ErrorCode; code != 0 {
		b.Fatal(code)
	}
	req := heartbeatRequest("g", j)
	b.ReportAllocs()
	for b.Loop() {
		if m.Heartbeat(context.Background(), req).ErrorCode != 0 {
			b.Fatal("refused")
		}
	}
}
