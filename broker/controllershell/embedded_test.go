package controllershell

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// TestAgainstEmbeddedServer runs two shells over the real client, the embedded server and TCP: election,
// 1,000 partitions, takeover after the first controller's session is closed.
func TestAgainstEmbeddedServer(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	srv, err := zkserver.Start(ctx, zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	fakes := map[cluster.BrokerID]*fakeBroker{}
	shells := map[cluster.BrokerID]*Shell{}
	clients := map[cluster.BrokerID]zkutil.Client{}
	for id := cluster.BrokerID(1); id <= 3; id++ {
		client, err := zkutil.Connect(ctx, zkutil.Config{Connect: srv.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		clients[id] = client
		if id == 1 {
			for _, path := range znode.PersistentPaths() {
				client.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: path})
			}
		}
		fakes[id] = &fakeBroker{id: id}
		port := listen(t, ctx, &work, fakes[id])
		reg := znode.Registration{ID: id, JMXPort: -1, Endpoints: []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: port}}}
		if resp := client.Do(ctx, zkutil.AnySession, znode.RegisterBroker(reg)); resp[0].Err != nil {
			t.Fatal(resp[0].Err)
		}
		if id < 3 {
			s := New(Options{BrokerID: id, ZK: client, Listener: "PLAINTEXT", Config: Config{DeleteTopicEnable: true}})
			shells[id] = s
			work.Go(func() { _ = s.Run(ctx) })
			s.Registered(client.Session().Epoch)
			if id == 1 {
				eventually(t, "election", s.IsActive)
			}
		}
	}
	z := znode.Topic{ID: cluster.TopicID{1}, Partitions: map[int32]cluster.Assignment{}}
	for p := range int32(1000) {
		z.Partitions[p] = cluster.Assignment{Replicas: []cluster.BrokerID{1 + cluster.BrokerID(p)%3, 1 + cluster.BrokerID(p+1)%3}}
	}
	begin := time.Now()
	if resp := clients[3].Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: znode.TopicPath("t"), Data: z.Encode()}); resp[0].Err != nil {
		t.Fatal(resp[0].Err)
	}
	eventually(t, "metadata of all partitions everywhere", func() bool {
		return metadataCount(fakes[1]) == 1000 && metadataCount(fakes[2]) == 1000 && metadataCount(fakes[3]) == 1000
	})
	t.Logf("1,000 partitions created and published in %v", time.Since(begin))
	if err := clients[1].Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "takeover", func() bool { return shells[2].ActiveEpoch() == 2 && !shells[1].IsActive() })
	eventually(t, "every partition led", func() bool {
		st := shells[2].Stats()
		return st.Partitions == 1000 && st.Offline == 0 && st.Transitions == 0 && st.ActiveBrokers == 2
	})
	if resp := clients[3].Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: znode.DeleteTopicPath("t")}); resp[0].Err != nil {
		t.Fatal(resp[0].Err)
	}
	eventually(t, "the deletion waits for the dead broker", func() bool {
		st := shells[2].Stats()
		return st.TopicsToDelete == 1 && st.TopicsIneligible == 1
	})
}

// metadataCount is the number of distinct partitions a broker was told of.
func metadataCount(f *fakeBroker) int {
	seen := map[string]bool{}
	for _, req := range f.requests() {
		if m, ok := req.(*kmsg.UpdateMetadataRequest); ok {
			for _, t := range m.TopicStates {
				for _, p := range t.PartitionStates {
					seen[fmt.Sprint(t.Topic, p.Partition)] = true
				}
			}
		}
	}
	return len(seen)
}

func listen(t *testing.T, ctx context.Context, work *sync.WaitGroup, f *fakeBroker) int32 {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { _ = ln.Close() })
	work.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			work.Go(func() { defer stop(); f.serve(conn) })
		}
	})
	return int32(ln.Addr().(*net.TCPAddr).Port)
}

// eventually polls a condition until its deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("%s did not happen in time", what)
		case <-tick.C:
		}
	}
}
