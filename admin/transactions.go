package admin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// API keys of transactions.
const (
	keyWriteTxnMarkers   = 27
	keyDescribeProducers = 61
	keyListTransactions  = 66
)

// transactional refuses clusters whose brokers do not serve an API of transactions.
func (c *Client) transactional(ctx context.Context, key int16) error {
	ok, err := c.supports(ctx, key)
	if err != nil || ok {
		return err
	}
	return &Error{
		Kind: Failed, Msg: "the brokers of this cluster serve no transactions: they do not offer " + kmsg.NameForKey(key),
		Hint: "kbroker has no transactions; Apache Kafka offers these requests from 3.0 on",
	}
}

// TransactionFilter says which transactional ids are listed.
type TransactionFilter struct {
	States      []string // without case; empty: all
	ProducerIDs []int64
	OlderThan   time.Duration // only transactions under way for at least so long; 0: all
}

func (f TransactionFilter) keeps(t *model.TransactionState, now time.Time) bool {
	if len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s string) bool { return strings.EqualFold(s, t.State) }) {
		return false
	}
	if len(f.ProducerIDs) > 0 && !slices.Contains(f.ProducerIDs, t.ProducerID) {
		return false
	}
	return f.OlderThan == 0 || !t.Started.IsZero() && now.Sub(t.Started) >= f.OlderThan
}

// Transactions lists the transactional ids of all coordinators and describes those that the filter keeps: two requests
// to each broker. A broker that does not answer is a problem. Rows are sorted by id.
func (c *Client) Transactions(ctx context.Context, f TransactionFilter) ([]model.TransactionState, []model.Problem, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.transactional(ctx, keyListTransactions); err != nil {
		return nil, nil, err
	}
	ids, err := c.brokerIDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := make([][]model.TransactionState, len(ids))
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		ts, err := c.transactionsOf(ctx, id, f)
		found[slices.Index(ids, id)] = ts // one slot per broker
		return err
	})
	problems, err := brokerProblems(ids, errs, "list transactions")
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	all := slices.Concat(found...)
	all = slices.DeleteFunc(all, func(t model.TransactionState) bool { return !f.keeps(&t, now) })
	slices.SortFunc(all, func(a, b model.TransactionState) int { return strings.Compare(a.ID, b.ID) })
	return all, problems, nil
}

// transactionsOf lists and describes the transactional ids of one coordinator.
func (c *Client) transactionsOf(ctx context.Context, id cluster.BrokerID, f TransactionFilter) ([]model.TransactionState, error) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.ProducerIDFilters = f.ProducerIDs
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ListTransactionsResponse)
	if err := brokerErr(kmsg.ListTransactions, r.ErrorCode, nil); err != nil {
		return nil, err
	}
	var ids []string
	var out []model.TransactionState
	state := TransactionFilter{States: f.States}
	for _, t := range r.TransactionStates {
		m := model.TransactionState{ID: t.TransactionalID, Coordinator: id, ProducerID: t.ProducerID, ProducerEpoch: -1, State: t.TransactionState}
		if state.keeps(&m, time.Time{}) {
			ids, out = append(ids, t.TransactionalID), append(out, m)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	described, err := c.describeTransactions(ctx, id, ids)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if d, ok := described[out[i].ID]; ok && d.code == 0 {
			out[i] = d.state
		}
	}
	return out, nil
}

type transactionAnswer struct {
	state model.TransactionState
	code  int16
}

func (c *Client) describeTransactions(ctx context.Context, id cluster.BrokerID, ids []string) (map[string]transactionAnswer, error) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	out := make(map[string]transactionAnswer, len(ids))
	for _, t := range resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
		m := model.TransactionState{
			ID: t.TransactionalID, Coordinator: id, ProducerID: t.ProducerID, ProducerEpoch: t.ProducerEpoch, State: t.State,
			Timeout: time.Duration(t.TimeoutMillis) * time.Millisecond,
		}
		// Some brokers leave the start of the last one there.
		if t.StartTimestamp > 0 && plan.UnderWay(t.State) {
			m.Started = time.UnixMilli(t.StartTimestamp)
		}
		for _, topic := range t.Topics {
			for _, p := range topic.Partitions {
				m.Partitions = append(m.Partitions, cluster.TopicPartition{Topic: topic.Topic, Partition: p})
			}
		}
		sortPartitions(m.Partitions)
		out[t.TransactionalID] = transactionAnswer{m, t.ErrorCode}
	}
	return out, nil
}

// DescribeTransactions asks the coordinators about transactional ids, one request each, in the order of ids. One that
// does not exist, or could not be described, has Err.
func (c *Client) DescribeTransactions(ctx context.Context, ids []string) ([]model.TransactionState, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.transactional(ctx, keyListTransactions); err != nil {
		return nil, err
	}
	found := newAnswers[transactionAnswer]()
	errs := c.perCoordinator(ctx, forTransactions, ids, func(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]int16, error) {
		got, err := c.describeTransactions(ctx, id, keys)
		codes := make(map[string]int16, len(got))
		for k, a := range got {
			found.set(k, a)
			codes[k] = a.code
		}
		return codes, err
	})
	if err := allRefused(ids, errs, found); err != nil {
		return nil, err
	}
	out := make([]model.TransactionState, len(ids))
	for i, id := range ids {
		out[i] = model.TransactionState{ID: id, Coordinator: cluster.NoLeader, ProducerID: -1, ProducerEpoch: -1}
		a, ok := found.get(id)
		switch {
		case errs[id] != nil:
			out[i].Err = short(errs[id])
		case !ok:
			out[i].Err = "the coordinator said nothing about it"
		case a.code == kerr.TransactionalIDNotFound.Code:
			out[i].Err = "it does not exist"
		case a.code != 0:
			out[i].Err = short(brokerErr(kmsg.DescribeTransactions, a.code, nil))
		default:
			out[i] = a.state
		}
	}
	return out, nil
}

// allRefused is the refusal when the authorizer let none of the ids be described.
func allRefused(ids []string, errs map[string]error, found *answers[transactionAnswer]) error {
	var first error
	for _, id := range ids {
		err := errs[id]
		if a, ok := found.get(id); err == nil && ok {
			err = brokerErr(kmsg.DescribeTransactions, a.code, nil)
		}
		if !isAuthorization(err) {
			return nil
		}
		if first == nil {
			first = wrap(err, "transactional id %s", id)
		}
	}
	return first
}

// OpenTransactions asks the leaders of the targets (all partitions when empty; those led by one broker when broker is not
// below 0) for the transactions that their logs hold open: one request to each broker.
func (c *Client) OpenTransactions(ctx context.Context, targets []plan.Target, broker cluster.BrokerID) ([]model.OpenTransaction, []model.Problem, error) {
	if err := c.transactional(ctx, keyDescribeProducers); err != nil {
		return nil, nil, err
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(targets), NoZooKeeper: true, Source: model.SourceProtocol})
	if err != nil {
		return nil, nil, err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	byBroker := map[cluster.BrokerID][]cluster.TopicPartition{}
	var problems []model.Problem
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			switch {
			case !plan.Match(targets, p.Topic, p.Partition) || broker >= 0 && p.Leader != broker:
			case p.Leader < 0:
				problems = append(problems, model.Problem{Object: p.TP().String(), Message: "nobody leads the partition"})
			default:
				byBroker[p.Leader] = append(byBroker[p.Leader], p.TP())
			}
		}
	}
	open, more := c.askProducers(ctx, byBroker)
	return open, append(problems, more...), nil
}

// askProducers sends DescribeProducers to every leader.
func (c *Client) askProducers(ctx context.Context, byBroker map[cluster.BrokerID][]cluster.TopicPartition) ([]model.OpenTransaction, []model.Problem) {
	var mu sync.Mutex // guards open and problems
	var open []model.OpenTransaction
	var problems []model.Problem
	ids := make([]cluster.BrokerID, 0, len(byBroker))
	for id := range byBroker {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		found, failed, err := c.producersOf(ctx, id, byBroker[id])
		mu.Lock()
		defer mu.Unlock()
		open, problems = append(open, found...), append(problems, failed...)
		return err
	})
	for _, id := range ids {
		if errs[id] != nil {
			problems = append(problems, model.Problem{Object: brokerName(id), Message: short(errs[id])})
		}
	}
	slices.SortFunc(open, func(a, b model.OpenTransaction) int {
		if d := comparePartitions(cluster.TopicPartition{Topic: a.Topic, Partition: a.Partition}, cluster.TopicPartition{Topic: b.Topic, Partition: b.Partition}); d != 0 {
			return d
		}
		return int(a.StartOffset - b.StartOffset)
	})
	return open, problems
}

func (c *Client) producersOf(ctx context.Context, id cluster.BrokerID, tps []cluster.TopicPartition) (open []model.OpenTransaction, problems []model.Problem, err error) {
	req := kmsg.NewPtrDescribeProducersRequest()
	for _, tp := range tps {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewDescribeProducersRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
	}
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range resp.(*kmsg.DescribeProducersResponse).Topics {
		for _, p := range t.Partitions {
			if err := brokerErr(kmsg.DescribeProducers, p.ErrorCode, p.ErrorMessage); err != nil {
				problems = append(problems, model.Problem{Object: cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}.String(), Message: short(err)})
				continue
			}
			for _, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset >= 0 {
					open = append(open, model.OpenTransaction{
						Topic: t.Topic, Partition: p.Partition, Broker: id, ProducerID: a.ProducerID, ProducerEpoch: a.ProducerEpoch,
						CoordinatorEpoch: a.CoordinatorEpoch, StartOffset: a.CurrentTxnStartOffset, LastTimestamp: time.UnixMilli(a.LastTimestamp),
					})
				}
			}
		}
	}
	return open, problems, nil
}

// HangingTransactions finds transactions that a log holds open and that no coordinator will ever end (KIP-664): open for
// longer than the longest transaction may last, and unknown to the coordinators.
func (c *Client) HangingTransactions(ctx context.Context, targets []plan.Target, broker cluster.BrokerID, longest time.Duration) ([]model.OpenTransaction, []model.Problem, error) {
	open, problems, err := c.OpenTransactions(ctx, targets, broker)
	if err != nil {
		return nil, nil, err
	}
	open = plan.OldTransactions(open, time.Now(), longest)
	if len(open) == 0 {
		return open, problems, nil
	}
	var ids []int64
	for i := range open {
		if !slices.Contains(ids, open[i].ProducerID) {
			ids = append(ids, open[i].ProducerID)
		}
	}
	states, missing, err := c.Transactions(ctx, TransactionFilter{ProducerIDs: ids})
	if err != nil {
		return nil, nil, err
	}
	if len(missing) > 0 {
		// Whoever does not answer may be the one that knows the transaction: nothing may be called hanging.
		return nil, nil, &Error{
			Kind: Unreachable, Msg: missing[0].Object + ": " + missing[0].Message + ": whether a transaction hangs is known only when every coordinator answers",
		}
	}
	return plan.Hanging(open, states), problems, nil
}

// AbortMarker says which transaction of which partition is ended by force.
type AbortMarker struct {
	Topic            string
	Partition        int32
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32 // below 0 counts as 0: the transaction was never known to a coordinator
}

// WriteAbort writes an abort marker into a partition's log, through its leader, past every coordinator: only right for a
// transaction that hangs.
func (c *Client) WriteAbort(ctx context.Context, m AbortMarker) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.transactional(ctx, keyWriteTxnMarkers); err != nil {
		return err
	}
	l, err := c.leadersOf(ctx, []string{m.Topic})
	if err != nil {
		return err
	}
	tp := cluster.TopicPartition{Topic: m.Topic, Partition: m.Partition}
	leader, ok := l.by[tp]
	if !ok || leader < 0 {
		return &Error{Kind: Failed, Msg: tp.String() + ": nobody leads the partition"}
	}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID, marker.ProducerEpoch, marker.CoordinatorEpoch = m.ProducerID, m.ProducerEpoch, max(0, m.CoordinatorEpoch)
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = m.Topic, []int32{m.Partition}
	marker.Topics = append(marker.Topics, t)
	req.Markers = append(req.Markers, marker)
	resp, err := c.askBroker(ctx, leader, req)
	if err != nil {
		return wrap(err, "write an abort marker through %s", brokerName(leader))
	}
	for _, mk := range resp.(*kmsg.WriteTxnMarkersResponse).Markers {
		for _, t := range mk.Topics {
			for _, p := range t.Partitions {
				if err := brokerErr(kmsg.WriteTxnMarkers, p.ErrorCode, nil); err != nil {
					return wrap(err, "write an abort marker into %s", tp)
				}
			}
		}
	}
	return nil
}

// fenceTimeoutMillis is the transaction timeout that the fencing request sets: Kafka's default. The coordinator also takes
// it for the time in which its own record must be replicated, so that with a short one it answers COORDINATOR_NOT_AVAILABLE
// for ever on all but the fastest cluster (Kafka's fenceProducers sends 1 ms: KAFKA-16570).
const fenceTimeoutMillis = 60_000

// FenceTransaction has the coordinator end what a transactional id has under way and shut out its producer: the producer's
// epoch is raised, as if a new instance had started. It returns the new producer id and epoch.
func (c *Client) FenceTransaction(ctx context.Context, id string) (producerID int64, epoch int16, err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	type fenced struct {
		id    int64
		epoch int16
		code  int16
	}
	// While the coordinator ends the old transaction it answers CONCURRENT_TRANSACTIONS: it is asked until it has.
	for {
		got := newAnswers[fenced]()
		errs := c.perCoordinator(ctx, forTransactions, []string{id}, func(ctx context.Context, b cluster.BrokerID, keys []string) (map[string]int16, error) {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID, req.TransactionTimeoutMillis = &keys[0], fenceTimeoutMillis
			resp, err := c.askBroker(ctx, b, req)
			if err != nil {
				return nil, err
			}
			r := resp.(*kmsg.InitProducerIDResponse)
			got.set(id, fenced{r.ProducerID, r.ProducerEpoch, r.ErrorCode})
			return map[string]int16{id: r.ErrorCode}, nil
		})
		if errs[id] != nil {
			return 0, 0, errs[id]
		}
		f, _ := got.get(id)
		if f.code != kerr.ConcurrentTransactions.Code {
			return f.id, f.epoch, wrap(brokerErr(kmsg.InitProducerID, f.code, nil), "fence transactional id %s", id)
		}
		if !pause(ctx) {
			return 0, 0, &Error{Kind: Unreachable, Msg: "the coordinator has not ended the transaction of " + id + " in time"}
		}
	}
}
