package admin

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/cputime"
)

// largeFake is one broker with many topics and partitions that counts requests and the largest of them.
type largeFake struct {
	*fakeBroker
	topics, partitions int
	mostOffsets        atomic.Int64 // partitions of the largest ListOffsets request
	mostFetch          atomic.Int64
	mostConfigs        atomic.Int64  // resources of the largest DescribeConfigs request
	hold               chan struct{} // Metadata is answered when it is closed; nil: at once
	offsetsAsked       atomic.Int64
}

func newLargeFake(t *testing.T, topics, partitions int) *largeFake {
	t.Helper()
	f := &largeFake{topics: topics, partitions: partitions}
	f.fakeBroker = startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
		kmsg.Metadata: f.metadata, kmsg.ListOffsets: f.listOffsets, kmsg.Fetch: f.fetch, kmsg.DescribeConfigs: f.configs,
	})
	return f
}

func (f *largeFake) metadata(req kmsg.Request) kmsg.Response {
	if f.hold != nil {
		<-f.hold
	}
	r := kmsg.NewPtrMetadataResponse()
	id := "large"
	r.ClusterID, r.ControllerID = &id, 1
	r.Brokers = append(r.Brokers, f.node(1))
	if req.(*kmsg.MetadataRequest).Topics != nil {
		return r
	}
	for n := range f.topics {
		name := fmt.Sprintf("topic-%05d", n)
		t := kmsg.NewMetadataResponseTopic()
		t.Topic = &name
		for p := range (n+1)*f.partitions/f.topics - n*f.partitions/f.topics {
			mp := kmsg.NewMetadataResponseTopicPartition()
			mp.Partition, mp.Leader, mp.LeaderEpoch, mp.Replicas, mp.ISR = int32(p), 1, 3, []int32{1}, []int32{1}
			t.Partitions = append(t.Partitions, mp)
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

func (f *largeFake) listOffsets(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrListOffsetsResponse()
	var n int64
	for _, t := range req.(*kmsg.ListOffsetsRequest).Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = p.Partition, 7, 3
			rt.Partitions = append(rt.Partitions, rp)
			n++
		}
		r.Topics = append(r.Topics, rt)
	}
	f.offsetsAsked.Add(n)
	f.mostOffsets.Store(max(f.mostOffsets.Load(), n))
	return r
}

func (f *largeFake) fetch(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrFetchResponse()
	var n int64
	for _, t := range req.(*kmsg.FetchRequest).Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition, rp.HighWatermark = p.Partition, 7
			rt.Partitions = append(rt.Partitions, rp)
			n++
		}
		r.Topics = append(r.Topics, rt)
	}
	f.mostFetch.Store(max(f.mostFetch.Load(), n))
	return r
}

func (f *largeFake) configs(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrDescribeConfigsResponse()
	two := "2"
	for _, res := range req.(*kmsg.DescribeConfigsRequest).Resources {
		rr := kmsg.NewDescribeConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = res.ResourceType, res.ResourceName
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Value = "min.insync.replicas", &two
		rr.Configs = append(rr.Configs, c)
		r.Resources = append(r.Resources, rr)
	}
	f.mostConfigs.Store(max(f.mostConfigs.Load(), int64(len(r.Resources))))
	return r
}

// TestLargeClusterIsReadInFewBoundedRequests: 39,000 partitions of 9,000 topics are read with one Metadata request, and
// positions and settings with requests of bounded size: never one for each topic, never one for all.
func TestLargeClusterIsReadInFewBoundedRequests(t *testing.T) {
	f := newLargeFake(t, 9000, 39_000)
	readLarge(t, f)
	if n := f.count(kmsg.Metadata); n > 2 {
		t.Errorf("%d Metadata requests", n)
	}
	if n, most := f.count(kmsg.DescribeConfigs), f.mostConfigs.Load(); n != 5 || most > configsChunk {
		t.Errorf("%d DescribeConfigs requests of up to %d topics, want 5 of at most %d", n, most, configsChunk)
	}
	if most, asked := f.mostOffsets.Load(), f.offsetsAsked.Load(); most > offsetsChunk || asked != int64(f.partitions) {
		t.Errorf("ListOffsets asks for %d partitions, up to %d at a time", asked, most)
	}
	if n, most := f.count(kmsg.Fetch), f.mostFetch.Load(); n != 39 || most > fetchChunk {
		t.Errorf("%d Fetch requests of up to %d partitions", n, most)
	}
}

// readLarge reads the topics with their minimum ISR, and the positions of all replicas.
func readLarge(t *testing.T, f *largeFake) {
	t.Helper()
	c := openFake(t, Config{}, f.fakeBroker)
	s, err := c.Snapshot(t.Context(), SnapshotOptions{MinISR: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range s.Topics {
		n += len(s.Topics[i].Partitions)
	}
	if n != f.partitions || s.Topics[f.topics-1].Partitions[0].MinISR != 1 {
		t.Errorf("%d partitions, minimum ISR %d", n, s.Topics[f.topics-1].Partitions[0].MinISR)
	}
	rows, problems, err := c.ReplicaLag(t.Context(), nil)
	if err != nil || len(problems) > 0 || len(rows) != f.partitions {
		t.Fatalf("%d rows, %v, %v", len(rows), problems, err)
	}
	if r := rows[len(rows)-1]; r.LogEndOffset != 7 || r.HighWatermark != 7 || r.Err != "" {
		t.Errorf("%+v", r)
	}
}

// TestReadingIsLinear: 39,000 partitions cost about as much processor time, client and fake broker together, as an eighth of
// them eight times, not eight times as much. Disturbances only add: the least of a few runs counts.
func TestReadingIsLinear(t *testing.T) {
	few, many := newLargeFake(t, 1125, 4875), newLargeFake(t, 9000, 39_000)
	var leastFew, leastMany time.Duration
	for n := range 5 {
		a, b := cputime.Spent(t, func() {
			for range 8 {
				readLarge(t, few)
			}
		}), cputime.Spent(t, func() { readLarge(t, many) })
		if n == 0 {
			leastFew, leastMany = a, b
		}
		leastFew, leastMany = min(leastFew, a), min(leastMany, b)
		if leastMany <= 4*leastFew {
			t.Logf("%d partitions eight times: %s, %d partitions: %s", few.partitions, leastFew, many.partitions, leastMany)
			return
		}
	}
	t.Errorf("%d partitions eight times cost %s, %d cost %s: %.1f times as much", few.partitions, leastFew, many.partitions, leastMany, float64(leastMany)/float64(leastFew))
}

// TestLargeViewsAreShared: what a second broker says of 39,000 partitions costs no memory of its own where it says the same.
func TestLargeViewsAreShared(t *testing.T) {
	f := newLargeFake(t, 9000, 39_000)
	c := openFake(t, Config{}, f.fakeBroker)
	facts, _, err := c.Facts(t.Context(), FactsOptions{Needs: []check.Source{check.FromBrokers}})
	if err != nil {
		t.Fatal(err)
	}
	if len(facts.Views) != 1 || len(facts.Views[0].Topics) != f.topics {
		t.Fatalf("%d views", len(facts.Views))
	}
	for i := range facts.Snapshot.Topics {
		if a, b := facts.Snapshot.Topics[i].Partitions, facts.Views[0].Topics[i].Partitions; &a[0] != &b[0] {
			t.Fatalf("the partitions of %s are held twice", facts.Snapshot.Topics[i].Name)
		}
	}
}

// TestTimeoutHoldsOnALargeCluster: --timeout ends an operation although the broker goes on working on its answer.
func TestTimeoutHoldsOnALargeCluster(t *testing.T) {
	f := newLargeFake(t, 9000, 39_000)
	f.hold = make(chan struct{})
	defer close(f.hold)
	c := openFake(t, Config{Timeout: 300 * time.Millisecond}, f.fakeBroker)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.Snapshot(ctx, SnapshotOptions{})
	if err == nil || ctx.Err() != nil || KindOf(err) != Unreachable {
		t.Errorf("%v (%v), want that it is unreachable, long before the minute", err, ctx.Err())
	}
}
