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
	"kctl/admin/plan/reassign"
	"kctl/zkutil/cluster"
)

// ReassignOptions says how a run is executed. Save must make the run durable before it returns: it is called before
// each change. Report and Warn may be nil.
type ReassignOptions struct {
	Save     func(*reassign.Run) error
	Report   func(ReassignProgress)
	Warn     func(string)
	Others   []*reassign.Run // other unfinished runs of ours on this cluster
	Override bool            // replace reassignments that are under way
	Interval time.Duration   // between looks at the cluster; default 500 ms
	Patience time.Duration   // how long the cluster may stay silent; default 60 s
}

// ReassignProgress is how far a run is. Left is the number of partitions of the running batch that are not done.
type ReassignProgress struct {
	Batch, Batches int
	Done, Steps    int
	Left           int
	Copied         reassign.Copied // bytes of all batches
	Rate           float64         // bytes per second
	ETA            time.Duration
	ETAKnown       bool
}

// grace is how long a partition that was asked for may look untouched before it counts as cancelled by somebody: the
// broker that answers may be behind the controller.
const grace = 10 * time.Second

type executor struct {
	c      *Client
	run    *reassign.Run
	o      ReassignOptions
	others []*reassign.Run
	sent   map[cluster.TopicPartition]time.Time // by this process
	dirs   map[cluster.TopicPartition]time.Time // last order to move a replica to its directory
	meter  reassign.Meter
	last   time.Time // the cluster answered
}

func (e *executor) save() error {
	if err := e.o.Save(e.run); err != nil {
		return &Error{Kind: Failed, Msg: "write the state of the run, nothing more was changed", Err: err}
	}
	return nil
}

func (e *executor) warn(format string, args ...any) {
	if e.o.Warn != nil {
		e.o.Warn(fmt.Sprintf(format, args...))
	}
}

// ErrReassignPartly says that some partitions of a run are not where they should be; the steps have the reasons.
var ErrReassignPartly = errors.New("some partitions were not reassigned")

// ExecuteReassign carries out a run, or goes on with one: batch after batch, each complete before the next. Whatever
// was done already, by this run or by anybody, is seen in the cluster and not done again, so that it may be called
// after a crash at any point. At the end it removes the throttles that it set; when ctx ends they stay, since the
// cluster goes on with the batch. Errors: ErrReassignPartly after the batch in which a step failed.
func (c *Client) ExecuteReassign(ctx context.Context, run *reassign.Run, o ReassignOptions) error {
	if o.Interval <= 0 {
		o.Interval = 500 * time.Millisecond
	}
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	e := &executor{
		c: c, run: run, o: o, others: o.Others, last: time.Now(),
		sent: map[cluster.TopicPartition]time.Time{}, dirs: map[cluster.TopicPartition]time.Time{},
	}
	if err := e.throttle(ctx); err != nil {
		return err
	}
	failed := false
	for batch := run.Next(); batch != nil && !failed; batch = run.Next() {
		if err := e.doBatch(ctx, batch); err != nil {
			return err
		}
		failed = slices.ContainsFunc(batch, func(s *reassign.RunStep) bool { return s.Error != "" })
	}
	return e.finish(ctx, failed)
}

// throttle sets the throttles of the open steps.
func (e *executor) throttle(ctx context.Context) error {
	if e.run.Throttle <= 0 || len(e.run.Left()) == 0 {
		return nil
	}
	s, err := e.c.Snapshot(ctx, SnapshotOptions{NoTopics: true})
	if err != nil {
		return err
	}
	var live []cluster.BrokerID
	for id, ok := range check.Live(s) {
		if ok {
			live = append(live, id)
		}
	}
	warnings, err := e.setThrottles(ctx, live)
	for _, w := range warnings {
		e.warn("%s", w)
	}
	return err
}

// finish takes the throttles back and writes the outcome.
func (e *executor) finish(ctx context.Context, failed bool) error {
	problems, err := e.removeThrottles(ctx)
	if err != nil {
		return errors.Join(err, e.save())
	}
	if !failed {
		e.run.Outcome = reassign.Finished
	}
	if err := e.save(); err != nil {
		return err
	}
	if len(problems) > 0 {
		return &Error{
			Kind: Failed, Msg: fmt.Sprintf("the throttle of %s was not removed: %s", problems[0].Object, problems[0].Message),
			Hint: "kctl reassign verify FILE --remove-throttles removes what is left",
		}
	}
	if failed {
		return ErrReassignPartly
	}
	return nil
}

// removeThrottles asks a broker that just restarts again, for as long as one operation may take.
func (e *executor) removeThrottles(ctx context.Context) ([]model.Problem, error) {
	within, cancel := e.c.within(ctx)
	defer cancel()
	for {
		problems, err := e.c.RemoveThrottles(ctx, e.run, e.others)
		if _, denied := Denied(problems); err != nil || len(problems) == 0 || denied || !pause(within) {
			return problems, err
		}
	}
}

// doBatch asks for a batch and waits until each of its steps is done or has failed.
func (e *executor) doBatch(ctx context.Context, batch []*reassign.RunStep) error {
	for {
		open, err := e.look(ctx, batch)
		if err == nil && open == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), e.save())
		}
		if err != nil && (!passing(err) || time.Since(e.last) > e.o.Patience) {
			return errors.Join(err, e.save())
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), e.save())
		case <-time.After(e.o.Interval):
		}
	}
}

// passing reports whether an error may be gone at the next attempt.
func passing(err error) bool { return KindOf(err) == Unreachable }

// look compares a batch with the cluster, asks for what is not asked for, and reports. It returns how many steps are
// open.
func (e *executor) look(ctx context.Context, batch []*reassign.RunStep) (int, error) {
	var topics []string
	for _, s := range batch {
		if !slices.Contains(topics, s.Topic) {
			topics = append(topics, s.Topic)
		}
	}
	view, _, err := e.c.ReassignView(ctx, e.run.Via, topics)
	if err != nil {
		return len(batch), err
	}
	copies := e.copies(ctx, batch, view)
	var ask []*reassign.RunStep
	open, changed := 0, false
	for _, s := range batch {
		if s.Done || s.Error != "" {
			continue
		}
		seen, ok := view.Parts[s.TP()]
		entry := s.Entry()
		switch e.judge(s, reassign.Judge(&entry, seen, ok), &seen) {
		case reassign.Waiting:
			ask = append(ask, s)
			open++
		case reassign.Done:
			if misplaced := e.misplaced(s, copies); len(misplaced) > 0 {
				e.place(ctx, s, misplaced, true)
				if changed = changed || s.Error != ""; s.Error == "" {
					open++
				}
				continue
			}
			s.Done, changed = true, true
		default:
			if s.Error != "" {
				changed = true
			} else {
				open++
			}
		}
	}
	if changed || len(ask) > 0 {
		for _, s := range ask {
			s.Sent = true
		}
		if err := e.save(); err != nil {
			return open, err
		}
	}
	if len(ask) > 0 {
		if err := e.ask(ctx, ask); err != nil {
			return open, err
		}
	}
	e.last = time.Now()
	e.report(batch, view, copies, open)
	return open, nil
}

// judge turns what the cluster shows of a step into what is to be done: Waiting to ask for it, Done, or nothing. A
// step that was asked for and stays untouched beyond the grace fails.
func (e *executor) judge(s *reassign.RunStep, state reassign.State, seen *reassign.Seen) reassign.State {
	at, asked := e.sent[s.TP()]
	late := asked && time.Since(at) > grace
	switch state {
	case reassign.Done, reassign.Running:
		return state
	case reassign.Waiting:
		if !asked {
			return reassign.Waiting
		}
		if late {
			s.Error = "it was asked for and is not under way any more: somebody cancelled or replaced it"
		}
	case reassign.Other:
		if !asked && e.o.Override {
			return reassign.Waiting
		}
		if !asked || late {
			s.Error = fmt.Sprintf("somebody reassigns it to %s", check.IDList(seen.Target()))
		}
	case reassign.Missing:
		if _, known := e.dirs[s.TP()]; !known {
			e.dirs[s.TP()] = time.Now()
		} else if time.Since(e.dirs[s.TP()]) > grace {
			s.Error = "the partition does not exist any more"
		}
	}
	return reassign.Running
}

// ask sends the orders for steps and notes refusals.
func (e *executor) ask(ctx context.Context, steps []*reassign.RunStep) error {
	entries := make([]reassign.Entry, len(steps))
	for i, s := range steps {
		entries[i] = s.Entry()
		if wanted := explicit(s); len(wanted) > 0 {
			e.place(ctx, s, wanted, false) // a broker remembers the directory of a replica that it is about to get
		}
	}
	said, err := e.c.AlterReassignments(ctx, e.run.Via, entries)
	if err != nil {
		return err
	}
	for _, s := range steps {
		e.sent[s.TP()] = time.Now()
		if err := said[s.TP()]; err != nil {
			s.Error = short(err)
			if r, ok := errors.AsType[*refusal](err); ok {
				s.Error = r.Error()
			}
		}
	}
	return e.save()
}

// explicit lists the replicas of a step that have a wanted directory.
func explicit(s *reassign.RunStep) []cluster.BrokerID {
	var out []cluster.BrokerID
	entry := s.Entry()
	for _, id := range s.Replicas {
		if entry.Dir(id) != reassign.AnyDir {
			out = append(out, id)
		}
	}
	return out
}

// misplaced lists the replicas that are known not to be in their wanted directory yet.
func (e *executor) misplaced(s *reassign.RunStep, copies Copies) []cluster.BrokerID {
	entry := s.Entry()
	var out []cluster.BrokerID
	for _, id := range explicit(s) {
		if r, ok := copies[s.TP()][id]; ok && (r.Dir != entry.Dir(id) || r.Future != "") {
			out = append(out, id)
		}
	}
	return out
}

// place orders replicas into their directories, at most every five seconds for a partition. A broker that does not
// have the replica yet says so and remembers the directory; what is refused to one that has it fails the step.
func (e *executor) place(ctx context.Context, s *reassign.RunStep, ids []cluster.BrokerID, there bool) {
	if at, ok := e.dirs[s.TP()]; ok && time.Since(at) < 5*time.Second {
		return
	}
	e.dirs[s.TP()] = time.Now()
	ctx, cancel := e.c.within(ctx)
	defer cancel()
	entry := s.Entry()
	for _, id := range ids {
		err := e.c.orderDir(ctx, id, s.TP(), entry.Dir(id))
		if err != nil && there && !passing(err) && !errors.Is(err, kerr.ReplicaNotAvailable) {
			s.Error = fmt.Sprintf("%s does not move it to %s: %s", brokerName(id), entry.Dir(id), short(err))
		}
	}
}

// orderDir tells a broker where a replica belongs.
func (c *Client) orderDir(ctx context.Context, id cluster.BrokerID, tp cluster.TopicPartition, dir string) error {
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	d := kmsg.NewAlterReplicaLogDirsRequestDir()
	t := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
	t.Topic, t.Partitions = tp.Topic, []int32{tp.Partition}
	d.Dir, d.Topics = dir, append(d.Topics, t)
	req.Dirs = append(req.Dirs, d)
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.AlterReplicaLogDirsResponse).Topics {
		for _, p := range t.Partitions {
			if err := brokerErr(kmsg.AlterReplicaLogDirs, p.ErrorCode, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// copies reads the sizes of the replicas of a batch; what cannot be read is left out.
func (e *executor) copies(ctx context.Context, batch []*reassign.RunStep, view *reassign.View) Copies {
	var ids []cluster.BrokerID
	var parts []cluster.TopicPartition
	for _, s := range batch {
		step := s.Step()
		if s.Done || s.Error != "" || len(step.Added()) == 0 && len(explicit(s)) == 0 {
			continue
		}
		parts = append(parts, s.TP())
		for _, id := range slices.Concat(s.From, s.Replicas) {
			if _, live := slices.BinarySearch(view.Live, id); live && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	out, _ := e.c.Copies(ctx, ids, parts)
	return out
}

func (e *executor) report(batch []*reassign.RunStep, view *reassign.View, copies Copies, open int) {
	p := ReassignProgress{Steps: len(e.run.Steps), Left: open}
	p.Batch, p.Batches = e.run.Batch()
	for i := range e.run.Steps {
		s := &e.run.Steps[i]
		p.Copied.Total += s.Bytes
		if s.Done {
			p.Done++
			p.Copied.Done += s.Bytes
		}
	}
	for _, s := range batch {
		if s.Done || s.Error != "" {
			continue
		}
		seen := view.Parts[s.TP()]
		step := s.Step()
		var got reassign.Copied
		for _, id := range step.Added() {
			c := reassign.CopiedOf(&seen, copies.Sizes(s.TP()), id)
			got.Done, got.Total = got.Done+c.Done, got.Total+c.Total
		}
		p.Copied.Done += min(got.Done, max(s.Bytes, got.Total))
		p.Copied.Total += max(0, got.Total-s.Bytes) // it has grown since the plan was made
	}
	e.meter.Add(time.Now(), p.Copied.Done)
	p.Rate = e.meter.Rate()
	p.ETA, p.ETAKnown = e.meter.ETA(p.Copied.Left())
	if e.o.Report != nil {
		e.o.Report(p)
	}
}

// CancelReassign cancels what is under way of partitions and waits, at most as long as wait, until nothing is. The
// result has an entry for each: nil, ErrNothingToCancel, or why it failed.
func (c *Client) CancelReassign(ctx context.Context, parts []cluster.TopicPartition, wait time.Duration) (map[cluster.TopicPartition]error, error) {
	entries := make([]reassign.Entry, len(parts))
	var topics []string
	for i, tp := range parts {
		entries[i] = reassign.Entry{Topic: tp.Topic, Partition: tp.Partition}
		if !slices.Contains(topics, tp.Topic) {
			topics = append(topics, tp.Topic)
		}
	}
	out, err := c.AlterReassignments(ctx, ViaAPI, entries)
	if err != nil || wait <= 0 {
		return out, err
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		view, _, err := c.ReassignView(within, ViaAPI, topics)
		left := 0
		for _, tp := range parts {
			if seen := view.PartOf(tp); out[tp] == nil && seen.Reassigning() {
				left++
			}
		}
		if err == nil && left == 0 {
			return out, nil
		}
		if !pause(within) {
			if ctx.Err() != nil {
				return out, wrap(ctx.Err(), "the cancellation was taken; wait until it has stopped")
			}
			return out, &Error{Kind: Unreachable, Msg: fmt.Sprintf("the cancellation was taken, but after %s it is still under way", wait), Hint: "kctl reassign status shows it"}
		}
	}
}

// ReassignSnapshot reads what a plan is made from: brokers, partitions and the sizes of replicas. Brokers whose log
// directories cannot be read are problems; their sizes count as unknown.
func (c *Client) ReassignSnapshot(ctx context.Context, via string, topics []string) (*reassign.View, *model.Snapshot, Copies, []model.Problem, error) {
	view, s, err := c.reassignView(ctx, via, SnapshotOptions{Topics: topics, Newest: true}) // what a rollback goes back to
	if err != nil {
		return nil, nil, nil, nil, err
	}
	var parts []cluster.TopicPartition
	if topics != nil {
		parts = []cluster.TopicPartition{}
		for tp := range view.Parts {
			parts = append(parts, tp)
		}
		slices.SortFunc(parts, cluster.TopicPartition.Compare)
	}
	copies, dirs, problems := c.copiesAndDirs(ctx, view.Live, parts)
	view.Dirs = dirs
	FillSizes(view, copies)
	return view, s, copies, problems, nil
}
