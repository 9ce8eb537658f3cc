package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// parallelBrokers bounds how many brokers are asked at once.
const parallelBrokers = 64

// hedgeAfter is how long the first bootstrap server may stay silent before the next is asked as well.
const hedgeAfter = 700 * time.Millisecond

// askAny sends req to the bootstrap servers and then the other brokers that are known: to the first at once, to each next one when
// the one before failed or has been silent for a while. The first good answer wins.
func (c *Client) askAny(ctx context.Context, req func() kmsg.Request) (kmsg.Response, error) {
	seeds, err := c.askable(ctx)
	if err != nil {
		return nil, err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && c.knowsBrokers() {
		return nil, &Error{Kind: Unreachable, Msg: "no time is left to ask the brokers again", Hint: "--timeout gives it more time"}
	}
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		resp kmsg.Response
		err  error
	}
	answers := make(chan answer, len(seeds))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	next := 0
	ask := func() {
		addr := seeds[next]
		next++
		wg.Go(func() {
			resp, err := c.askAddr(ctx, addr, req())
			if err == nil {
				c.answered(addr)
			}
			answers <- answer{resp, err}
		})
	}
	ask()
	hedge := time.NewTicker(hedgeAfter)
	defer hedge.Stop()
	var errs []error
	for {
		select {
		case a := <-answers:
			if a.err == nil {
				return a.resp, nil
			}
			errs = append(errs, a.err)
			if next < len(seeds) {
				ask()
			} else if len(errs) == len(seeds) {
				return nil, c.diagnose(ctx, errs)
			}
		case <-hedge.C:
			if next < len(seeds) {
				ask()
			}
		}
	}
}

// metadata asks any bootstrap server. topics nil means all, empty none.
func (c *Client) metadata(ctx context.Context, topics []string) (*kmsg.MetadataResponse, error) {
	resp, err := c.askAny(ctx, func() kmsg.Request { return metadataRequest(topics) })
	if err != nil {
		return nil, err
	}
	m := resp.(*kmsg.MetadataResponse)
	brokers, _, _, _ := fromMetadata(&kmsg.MetadataResponse{Brokers: m.Brokers})
	c.learn(brokers)
	if m.ClusterID != nil {
		if err := c.otherCluster("the brokers", *m.ClusterID); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.id = *m.ClusterID
		c.mu.Unlock()
	}
	return m, nil
}

func metadataRequest(topics []string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	if topics == nil {
		req.Topics = nil
		return req
	}
	req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(topics))
	for i := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topics[i]
		req.Topics = append(req.Topics, t)
	}
	return req
}

const noControllerHint = "when it stays so the brokers have lost ZooKeeper (or the quorum of their controllers): kctl cluster health, kctl doctor"

// askController sends a change to the controller: one whose answer is lost may have been made. notController tells from the
// answer that the broker asked is not the controller any more, or not yet: nothing was done then, and the next controller is asked.
func (c *Client) askController(ctx context.Context, req kmsg.Request, notController func(kmsg.Response) bool) (kmsg.Response, error) {
	return c.seekController(ctx, req, notController, false)
}

// questionController sends what changes nothing, so that whether it arrived does not matter.
func (c *Client) questionController(ctx context.Context, req kmsg.Request, notController func(kmsg.Response) bool) (kmsg.Response, error) {
	return c.seekController(ctx, req, notController, true)
}

// seekController is askController, or questionController for what changes nothing.
func (c *Client) seekController(ctx context.Context, req kmsg.Request, notController func(kmsg.Response) bool, question bool) (kmsg.Response, error) {
	var last error
	for {
		m, err := c.metadata(ctx, []string{})
		if err != nil && last != nil && ctx.Err() != nil {
			return nil, wrap(last, "find the controller") // the time is over: what went wrong before is the cause
		}
		if err != nil {
			return nil, err
		}
		if id := cluster.BrokerID(m.ControllerID); id >= 0 {
			resp, err := c.askWithin(ctx, id, req)
			if err == nil && !notController(resp) {
				return resp, nil
			}
			if err != nil && last != nil && ctx.Err() != nil && (question || neverSent(err)) {
				return nil, wrap(last, "find the controller") // as above
			}
			if err != nil && !neverSent(err) {
				return nil, c.passedOnErr(ctx, id, err, question)
			}
			if last = err; err == nil {
				last = &Error{Kind: Unreachable, Msg: "no broker acts as controller: the brokers name " + brokerName(id) + ", which denies it", Hint: noControllerHint}
			}
		} else {
			last = &Error{Kind: Unreachable, Msg: "no broker is the controller", Hint: noControllerHint}
		}
		if !pause(ctx) {
			return nil, wrap(last, "find the controller")
		}
	}
}

// askWithin sends a request that may take all the time there is, unlike a question.
func (c *Client) askWithin(ctx context.Context, id cluster.BrokerID, req kmsg.Request) (kmsg.Response, error) {
	addr, err := c.addrOf(ctx, id)
	if err != nil {
		return nil, err
	}
	cl, err := c.conn(addr)
	if err != nil {
		return nil, err
	}
	resp, err := cl.SeedBrokers()[0].Request(ctx, req)
	if _, reached := c.reached.Load(addr); !reached && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		// The time ended while it was dialed: without a connection nothing was sent, and with the time over nothing will be.
		err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return resp, c.explainAddress(id, addr, c.explainVersion(ctx, addr, req, err))
}

// neverSent reports whether a request certainly did not leave: only then may another broker be asked.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// whetherMade is the hint for what is no question: its answer is missing, so it may have been done.
const whetherMade = "whether the change was made is not known: look before you repeat it; "

func controllerErr(id cluster.BrokerID, err error, question bool) error {
	if classify(err) != Unreachable {
		return wrap(err, "ask the controller, %s", brokerName(id))
	}
	e := &Error{Kind: Unreachable, Msg: fmt.Sprintf("the controller, %s, did not answer: %s", brokerName(id), short(err)), Hint: "--timeout gives it more time"}
	if !question {
		e.Hint = whetherMade + e.Hint
	}
	return e
}

// passedOnErr is controllerErr for a request that a broker in KRaft mode would have passed on: no answer is the controllers' then.
func (c *Client) passedOnErr(ctx context.Context, id cluster.BrokerID, err error, question bool) error {
	addr, aerr := c.addrOf(ctx, id)
	if aerr != nil || !errors.Is(err, context.DeadlineExceeded) || !c.passesOn(ctx, addr) {
		return controllerErr(id, err, question)
	}
	e := &Error{
		Kind: Unreachable, Msg: fmt.Sprintf("the controllers, to whom %s passes it on, did not answer: %s", brokerName(id), short(err)),
		Hint: "most of controller.quorum.voters do not run, or they elect one of them just now: kctl controller describe",
	}
	if !question {
		e.Hint = whetherMade + e.Hint
	}
	return e
}

// serverTimeout is the time granted to the controller inside a request: less than what we wait for the
// answer, so that its own "timed out" arrives.
func (c *Client) serverTimeout() int32 { return int32(c.cfg.Timeout.Milliseconds() * 8 / 10) }

// eachBroker runs fn for every id, many at once, and returns the error of each.
func (c *Client) eachBroker(ctx context.Context, ids []cluster.BrokerID, fn func(context.Context, cluster.BrokerID) error) map[cluster.BrokerID]error {
	var mu sync.Mutex
	out := make(map[cluster.BrokerID]error, len(ids))
	var g errgroup.Group
	g.SetLimit(parallelBrokers)
	for _, id := range ids {
		g.Go(func() error {
			err := fn(ctx, id)
			mu.Lock()
			out[id] = err
			mu.Unlock()
			return nil
		})
	}
	_ = g.Wait() // the functions above return nil
	return out
}

// supports reports whether the brokers serve an API key; asked once.
func (c *Client) supports(ctx context.Context, key int16) (bool, error) {
	c.mu.Lock()
	keys := c.keys
	c.mu.Unlock()
	if keys == nil {
		resp, err := c.askAny(ctx, func() kmsg.Request { return apiVersionsRequest() })
		if err != nil {
			return false, err
		}
		keys = map[int16]int16{}
		for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
			keys[k.ApiKey] = k.MaxVersion
		}
		c.mu.Lock()
		c.keys = keys
		c.mu.Unlock()
	}
	_, ok := keys[key]
	return ok, nil
}

// fromMetadata turns a Metadata answer into the model.
func fromMetadata(m *kmsg.MetadataResponse) (brokers []model.Broker, topics []model.Topic, ctl model.Controller, clusterID string) {
	ctl = model.Controller{ID: cluster.BrokerID(m.ControllerID), Epoch: -1, Source: model.SourceProtocol}
	if m.ClusterID != nil {
		clusterID = *m.ClusterID
	}
	for i := range m.Brokers {
		b := &m.Brokers[i]
		mb := model.Broker{
			ID: cluster.BrokerID(b.NodeID), Host: b.Host, Port: b.Port, Live: true, Epoch: cluster.NoBrokerEpoch,
			Controller: b.NodeID == m.ControllerID, Source: model.SourceProtocol,
		}
		if b.Rack != nil {
			mb.Rack = *b.Rack
		}
		brokers = append(brokers, mb)
	}
	slices.SortFunc(brokers, func(a, b model.Broker) int { return int(a.ID) - int(b.ID) })
	topics = make([]model.Topic, 0, len(m.Topics))
	for i := range m.Topics {
		topics = append(topics, topicFromMetadata(&m.Topics[i]))
	}
	slices.SortFunc(topics, func(a, b model.Topic) int { return strings.Compare(a.Name, b.Name) })
	return brokers, topics, ctl, clusterID
}

func topicFromMetadata(t *kmsg.MetadataResponseTopic) model.Topic {
	mt := model.Topic{ID: t.TopicID, Internal: t.IsInternal, Source: model.SourceProtocol}
	if t.Topic != nil {
		mt.Name = *t.Topic
	}
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		mt.Err = short(err)
	}
	mt.Partitions = make([]model.Partition, len(t.Partitions))
	for i := range t.Partitions {
		p := &t.Partitions[i]
		mp := model.Partition{
			Topic: mt.Name, Partition: p.Partition, Leader: max(cluster.BrokerID(p.Leader), cluster.NoLeader),
			LeaderEpoch: cluster.LeaderEpoch(p.LeaderEpoch), Replicas: cluster.IDsFromInt32(p.Replicas),
			ISR: cluster.IDsFromInt32(p.ISR), Offline: cluster.IDsFromInt32(p.OfflineReplicas), Source: model.SourceProtocol,
		}
		// LEADER_NOT_AVAILABLE only repeats that nobody leads.
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil && p.ErrorCode != kerr.LeaderNotAvailable.Code {
			mp.Err = short(err)
		}
		mt.Partitions[i] = mp
	}
	slices.SortFunc(mt.Partitions, func(a, b model.Partition) int { return int(a.Partition) - int(b.Partition) })
	return mt
}

// listed is one answer of ListOffsets.
type listed struct {
	code   int16
	offset int64
	epoch  cluster.LeaderEpoch
}

// The replica ids that a tool may use: the leader only, or whoever is asked.
const (
	asConsumer int32 = -1
	asDebugger int32 = -2
)

type epochOf func(p *model.Partition) cluster.LeaderEpoch

func anyEpoch(*model.Partition) cluster.LeaderEpoch { return cluster.NoLeaderEpoch }

// offsetsChunk bounds the partitions of one ListOffsets request, and with it the answer.
const offsetsChunk = 5000

// listOffsets asks one broker for the latest offset (log end, or high watermark as a consumer) of parts.
func (c *Client) listOffsets(ctx context.Context, id cluster.BrokerID, replica int32, parts []*model.Partition, epoch epochOf) (map[cluster.TopicPartition]listed, error) {
	out := make(map[cluster.TopicPartition]listed, len(parts))
	for chunk := range slices.Chunk(parts, offsetsChunk) {
		if err := c.listOffsetsOnce(ctx, id, replica, chunk, epoch, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Client) listOffsetsOnce(ctx context.Context, id cluster.BrokerID, replica int32, parts []*model.Partition, epoch epochOf, out map[cluster.TopicPartition]listed) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = replica
	byTopic := map[string]int{}
	for _, p := range parts {
		i, ok := byTopic[p.Topic]
		if !ok {
			i = len(req.Topics)
			byTopic[p.Topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = p.Partition, -1, int32(epoch(p))
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			out[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = listed{p.ErrorCode, p.Offset, cluster.LeaderEpoch(p.LeaderEpoch)}
		}
	}
	return nil
}

// apiVersionsRequest names the client: from version 3 an empty name is refused (KIP-511).
func apiVersionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "kctl", "1"
	return req
}

// probe asks a broker for its metadata without topics: proof that it serves, and which controller it knows.
func (c *Client) probe(ctx context.Context, id cluster.BrokerID) (controller cluster.BrokerID, err error) {
	resp, err := c.askBroker(ctx, id, metadataRequest([]string{}))
	if err != nil {
		return cluster.NoLeader, err
	}
	return max(cluster.BrokerID(resp.(*kmsg.MetadataResponse).ControllerID), cluster.NoLeader), nil
}
