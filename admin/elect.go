package admin

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// pollEvery is how often a wait looks again.
const pollEvery = 100 * time.Millisecond

// ElectionResult is what became of one planned election.
type ElectionResult struct {
	plan.Election
	Done      bool // the controller carried it out, or it was not needed any more
	Confirmed bool // the new leader answers as leader (only looked for when waiting)
	Err       string
}

// PlanPreferred plans a preferred election of the targets (all partitions when empty). Targets that do not
// exist are an error. The plan is made of what the brokers say: they carry it out.
func (c *Client) PlanPreferred(ctx context.Context, targets []plan.Target) ([]plan.Election, *model.Snapshot, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(targets), Source: model.SourceProtocol})
	if err != nil {
		return nil, nil, err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, err
	}
	p, _ := plan.Preferred(s, check.Live(s), targets)
	return p, s, nil
}

// ElectPreferred asks the controller to carry out moves. With wait above zero it then waits until every
// new leader answers as leader, or the time is over: those that do not are results without Confirmed.
func (c *Client) ElectPreferred(ctx context.Context, moves []plan.Election, wait time.Duration) ([]ElectionResult, error) {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType = 0
	req.TimeoutMillis = c.serverTimeout()
	byTopic := map[string]int{}
	for _, m := range moves {
		i, ok := byTopic[m.Topic]
		if !ok {
			i = len(req.Topics)
			byTopic[m.Topic] = i
			t := kmsg.NewElectLeadersRequestTopic()
			t.Topic = m.Topic
			req.Topics = append(req.Topics, t)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, m.Partition)
	}
	if len(req.Topics) == 0 {
		return nil, nil // an empty list would mean every partition
	}
	actx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.askController(actx, req, func(r kmsg.Response) bool {
		return r.(*kmsg.ElectLeadersResponse).ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ElectLeadersResponse)
	if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
		return nil, wrap(err, "elect leaders")
	}
	results := electionResults(moves, r)
	if wait > 0 {
		c.confirm(ctx, results, wait)
	}
	return results, nil
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
		a, ok := said[cluster.TopicPartition{Topic: m.Topic, Partition: m.Partition}]
		switch {
		case !ok:
			out[i].Err = "the controller said nothing about it"
		case a.code == 0 || a.code == kerr.ElectionNotNeeded.Code:
			out[i].Done = true
		default:
			out[i].Err = brokerErr(a.code, a.msg).Error()
		}
	}
	return out
}

// confirm waits until the new leaders answer as leaders.
func (c *Client) confirm(ctx context.Context, results []ElectionResult, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
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
			parts := make([]*model.Partition, len(by[id]))
			for k, i := range by[id] {
				parts[k] = &model.Partition{Topic: results[i].Topic, Partition: results[i].Partition}
			}
			got, err := c.listOffsets(ctx, id, asConsumer, parts, anyEpoch)
			if err != nil {
				return err
			}
			for k, i := range by[id] {
				a, _ := answerOf(got, parts[k].TP())
				results[i].Confirmed = a == model.AnswerOK
			}
			return nil
		})
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollEvery):
		}
	}
}
