package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// DefaultElectionBatch is how many partitions are asked for in one request: enough that twenty thousand take
// a few requests, few enough that the controller does other things in between.
const DefaultElectionBatch = 1000

// ElectVia says how the controller is asked.
type ElectVia string

// The ways. Auto is the protocol while a broker answers and knows ElectLeaders (KIP-183, Kafka 2.2), else the
// znode /admin/preferred_replica_election.
const (
	ElectAuto         ElectVia = "auto"
	ElectViaProtocol  ElectVia = "protocol"
	ElectViaZooKeeper ElectVia = "zookeeper"
)

// ElectOptions says what is elected and how.
type ElectOptions struct {
	Unclean bool                       // may take replicas outside the ISR for partitions without a leader
	Batch   int                        // partitions per request; 0: DefaultElectionBatch
	Wait    time.Duration              // for the new leaders to answer as leaders; 0: not at all
	Via     ElectVia                   // empty: ElectAuto
	Done    func(confirmed, asked int) // called after each batch; may be nil
}

// ElectionResult is what became of one planned election.
type ElectionResult struct {
	plan.Election
	Done      bool // the controller carried it out, or it was not needed any more
	Already   bool // nothing was left to do when the controller looked
	Confirmed bool // the new leader answers as leader (only looked for when waiting)
	Err       string
}

// PlanElections plans elections of the targets (all partitions when empty). Targets that do not exist are an
// error. The plan is made of what the brokers say, as they carry it out; when the znode is the way it is made
// of ZooKeeper. The way that fits is returned: Auto is decided here.
func (c *Client) PlanElections(ctx context.Context, targets []plan.Target, o ElectOptions) ([]plan.Election, *model.Snapshot, ElectVia, error) {
	via, err := c.electVia(ctx, o)
	if err != nil {
		return nil, nil, "", err
	}
	source := model.SourceProtocol
	if via == ElectViaZooKeeper {
		source = model.SourceZooKeeper
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(targets), Source: source})
	if err != nil {
		return nil, nil, "", err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, "", err
	}
	make := plan.Preferred
	if o.Unclean {
		make = plan.Unclean
	}
	p, _ := make(s, check.Live(s), targets)
	return p, s, via, nil
}

// electVia finds the way. What the brokers cannot do is an error that names the version they lack.
func (c *Client) electVia(ctx context.Context, o ElectOptions) (ElectVia, error) {
	if o.Via == ElectViaZooKeeper {
		if o.Unclean {
			return "", badInput("an unclean election cannot be asked for through ZooKeeper: the znode knows preferred elections only")
		}
		return o.Via, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	highest, err := c.apiVersion(ctx, kmsg.ElectLeaders)
	znode := o.Via != ElectViaProtocol && !o.Unclean && c.HasZooKeeper()
	switch {
	case err != nil && znode && len(c.cfg.Bootstrap) == 0 && !c.zookeeperFailed() && !errors.Is(err, context.Canceled):
		return ElectViaZooKeeper, nil // no broker can be asked, but the controller watches the znode
	case err != nil:
		return "", err
	case highest < 0 && znode:
		return ElectViaZooKeeper, nil
	case highest < 0:
		return "", tooOld("ElectLeaders", "2.2", "an election can be asked for through ZooKeeper: give its address with -z")
	case highest < 1 && o.Unclean:
		return "", tooOld("unclean elections (ElectLeaders version 1)", "2.4", "set unclean.leader.election.enable=true on the topic instead, and false again afterwards")
	}
	return ElectViaProtocol, nil
}

// Elect asks the controller to carry out moves, in batches. With o.Wait above zero it waits after each batch
// until every new leader answers as leader, or the time for all is over: those that do not are results
// without Confirmed. An error is returned only when nothing at all was asked for successfully; what a later
// batch could not do stands in its results.
func (c *Client) Elect(ctx context.Context, moves []plan.Election, via ElectVia, o ElectOptions) ([]ElectionResult, error) {
	if via == ElectViaZooKeeper {
		return c.electByZnode(ctx, moves, o)
	}
	if o.Batch <= 0 {
		o.Batch = DefaultElectionBatch
	}
	deadline := time.Now().Add(o.Wait)
	var results []ElectionResult
	confirmed := 0
	for batch := range slices.Chunk(moves, o.Batch) {
		got, err := c.electBatch(ctx, batch, o.Unclean)
		if err != nil {
			if len(results) == 0 {
				return nil, err
			}
			return append(results, notAsked(moves[len(results):], err)...), nil
		}
		if o.Wait > 0 {
			c.confirm(ctx, got, time.Until(deadline), o.Unclean)
		}
		for i := range got {
			confirmed += boolInt(got[i].Confirmed)
		}
		results = append(results, got...)
		if o.Done != nil {
			o.Done(confirmed, len(results))
		}
	}
	return results, nil
}

func notAsked(moves []plan.Election, err error) []ElectionResult {
	out := make([]ElectionResult, len(moves))
	for i, m := range moves {
		out[i] = ElectionResult{Election: m, Err: "the controller did not carry it out: " + err.Error()}
	}
	return out
}

func (c *Client) electBatch(ctx context.Context, moves []plan.Election, unclean bool) ([]ElectionResult, error) {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType = int8(boolInt(unclean))
	req.TimeoutMillis = c.serverTimeout()
	for _, t := range plan.TargetsOf(moves) {
		rt := kmsg.NewElectLeadersRequestTopic()
		rt.Topic, rt.Partitions = t.Topic, t.Partitions
		req.Topics = append(req.Topics, rt)
	}
	if len(req.Topics) == 0 {
		return nil, nil // an empty list would mean every partition
	}
	actx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.askController(actx, req, func(r kmsg.Response) bool { return electionRefused(r.(*kmsg.ElectLeadersResponse)) })
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ElectLeadersResponse)
	if err := brokerErr(kmsg.ElectLeaders, r.ErrorCode, nil); err != nil {
		return nil, wrap(err, "elect leaders")
	}
	if err := electionDenied(r); err != nil {
		return nil, err
	}
	return electionResults(moves, r), nil
}

// electionDenied is the authorizer's refusal of the whole in an answer of version 0, which has it at every partition only.
func electionDenied(r *kmsg.ElectLeadersResponse) error {
	var denied error
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if denied = brokerErr(kmsg.ElectLeaders, p.ErrorCode, p.ErrorMessage); !isAuthorization(denied) {
				return nil
			}
		}
	}
	return wrap(denied, "elect leaders")
}

// electionRefused tells that the broker asked is not the controller. Version 0 has no code for the whole, and
// brokers also say it for every partition.
func electionRefused(r *kmsg.ElectLeadersResponse) bool {
	n := 0
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != kerr.NotController.Code {
				return false
			}
			n++
		}
	}
	return r.ErrorCode == kerr.NotController.Code || n > 0
}

func electionResults(moves []plan.Election, r *kmsg.ElectLeadersResponse) []ElectionResult {
	type answer struct {
		code int16
		msg  *string
	}
	said := map[cluster.TopicPartition]answer{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			said[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = answer{p.ErrorCode, p.ErrorMessage}
		}
	}
	out := make([]ElectionResult, len(moves))
	for i, m := range moves {
		out[i] = ElectionResult{Election: m}
		a, ok := said[m.TP()]
		switch {
		case !ok:
			out[i].Err = "the controller said nothing about it"
		case a.code == 0:
			out[i].Done = true
		case a.code == kerr.ElectionNotNeeded.Code:
			out[i].Done, out[i].Already = true, true
		default:
			out[i].Err = brokerErr(kmsg.ElectLeaders, a.code, a.msg).Error()
		}
	}
	return out
}

// confirm waits until the new leaders answer as leaders. Which replica an unclean election took is the
// controller's choice: it is read back.
func (c *Client) confirm(ctx context.Context, results []ElectionResult, wait time.Duration, readBack bool) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		if readBack {
			c.readLeaders(ctx, results)
		}
		by := map[cluster.BrokerID][]int{}
		for i := range results {
			if results[i].Done && !results[i].Confirmed {
				by[results[i].To] = append(by[results[i].To], i)
			}
		}
		if len(by) == 0 {
			return
		}
		c.eachBroker(ctx, keys(by), func(ctx context.Context, id cluster.BrokerID) error {
			return c.confirmAt(ctx, id, results, by[id])
		})
		if !slices.ContainsFunc(results, func(r ElectionResult) bool { return r.Done && !r.Confirmed }) {
			return
		}
		if !pause(ctx) {
			return
		}
	}
}

// confirmAt asks one broker for those it should lead; each result belongs to one broker only.
func (c *Client) confirmAt(ctx context.Context, id cluster.BrokerID, results []ElectionResult, mine []int) error {
	parts := make([]*model.Partition, len(mine))
	for k, i := range mine {
		parts[k] = &model.Partition{Topic: results[i].Topic, Partition: results[i].Partition}
	}
	got, err := c.listOffsets(ctx, id, asConsumer, parts, anyEpoch)
	if err != nil {
		return err
	}
	for k, i := range mine {
		a, _ := answerOf(got, parts[k].TP())
		results[i].Confirmed = a == model.AnswerOK
	}
	return nil
}

func (c *Client) readLeaders(ctx context.Context, results []ElectionResult) {
	var open []plan.Election
	for i := range results {
		if results[i].Done && !results[i].Confirmed {
			open = append(open, results[i].Election)
		}
	}
	if len(open) == 0 {
		return
	}
	m, err := c.metadata(ctx, topicsOf(plan.TargetsOf(open)))
	if err != nil {
		return // the next round reads again
	}
	_, topics, _, _ := fromMetadata(m)
	leads := map[cluster.TopicPartition]cluster.BrokerID{}
	for i := range topics {
		for j := range topics[i].Partitions {
			leads[topics[i].Partitions[j].TP()] = topics[i].Partitions[j].Leader
		}
	}
	for i := range results {
		if id, ok := leads[results[i].TP()]; ok && id >= 0 && !results[i].Confirmed {
			results[i].To = id
		}
	}
}

// Unconfirmed says of a result what is missing; empty when nothing is.
func (r *ElectionResult) Unconfirmed(waited time.Duration) string {
	if !r.Done || r.Confirmed || waited <= 0 {
		return ""
	}
	return fmt.Sprintf("elected, but broker %d does not answer as leader yet", r.To)
}
