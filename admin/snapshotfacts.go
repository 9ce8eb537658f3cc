package admin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// FactsOptions says what Facts reads.
type FactsOptions struct {
	Needs     []check.Source // empty: everything
	OlderThan time.Duration  // age from which an unfinished decision is stuck; 0: DefaultOlderThan
	Sample    time.Duration  // time between the two looks at replicas that are behind; 0: DefaultSample
	Now       time.Time      // zero: the clock

	leftovers bool // the facts are for a list of leftovers, which has no place for checks that were skipped
}

// DefaultSample is the time between two looks at replicas that are behind. It is longer than a follower's longest
// wait for data and than the change of an ISR takes.
const DefaultSample = 2 * time.Second

const (
	needsZooKeeper = "it needs ZooKeeper: give its address with -z HOST:PORT/chroot"
	hasNoZooKeeper = "the cluster is in KRaft mode, without ZooKeeper"
)

// Facts reads the cluster once, all brokers and ZooKeeper at the same time, for check.Diagnose and check.Diff. A part
// that could not be read is a problem and an entry of Missing, never a failure of the whole; only when neither
// brokers nor ZooKeeper answer there is an error.
func (c *Client) Facts(ctx context.Context, opts FactsOptions) (*check.Facts, []model.Problem, error) {
	if c.offline() {
		return c.factsFromDir(ctx, opts)
	}
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	if opts.Sample <= 0 {
		opts.Sample = DefaultSample
	}
	base, cancel := c.within(ctx)
	defer cancel()
	f := &check.Facts{Missing: map[check.Source]string{}}
	r := &factsReader{c: c, f: f, opts: opts}
	if err := r.readSnapshot(base); err != nil {
		return nil, nil, err
	}
	r.readAll(ctx, base)
	r.confirmOffice(base)
	if r.wants(check.FromPositions) && f.Missing[check.FromPositions] == "" {
		r.lookAgain(ctx)
	}
	return f, r.problems(), nil
}

// factsReader fills one Facts. Each reading fills its own fields; what they share is behind mu.
type factsReader struct {
	c    *Client
	f    *check.Facts
	opts FactsOptions

	moves map[cluster.TopicPartition]cluster.Assignment // reassignments under way, as the controller tells

	mu    sync.Mutex
	wrong []model.Problem
}

func (r *factsReader) wants(s check.Source) bool {
	return len(r.opts.Needs) == 0 || slices.Contains(r.opts.Needs, s)
}

func (r *factsReader) missing(s check.Source, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.f.Missing[s] = why
}

func (r *factsReader) isMissing(s check.Source) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.f.Missing[s] != ""
}

func (r *factsReader) problem(ps ...model.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, ps...)
}

// problems are those that no finding repeats: each once, and of a broker the first only.
func (r *factsReader) problems() []model.Problem {
	seen := map[string]bool{}
	var out []model.Problem
	for _, p := range r.wrong {
		if !seen[p.Object] {
			seen[p.Object] = true
			out = append(out, p)
		}
	}
	return out
}

// readSnapshot reads Metadata and ZooKeeper's view of brokers and controller. Unlike Snapshot it does not refuse
// sources of two clusters: that is a finding.
func (r *factsReader) readSnapshot(ctx context.Context) error {
	var z *zkCluster
	var zkErr error
	var g errgroup.Group
	if r.c.HasZooKeeper() {
		g.Go(func() error { z, zkErr = r.c.readZKCluster(ctx); return nil })
	}
	s, err := r.c.snapshotProtocol(ctx, SnapshotOptions{Controller: true})
	_ = g.Wait() // its function returns nil
	noZooKeeper := needsZooKeeper
	if err == nil && s.Controller.Quorum {
		noZooKeeper = hasNoZooKeeper
	}
	if zkErr != nil {
		noZooKeeper = zkErr.Error()
		r.problem(model.Problem{Object: "zookeeper", Message: zkErr.Error()})
	}
	if z == nil {
		r.f.Missing[check.FromZooKeeper] = noZooKeeper
	}
	if !r.c.HasZooKeeper() {
		r.f.Missing[check.FromEnsemble] = noZooKeeper
	}
	switch {
	case err != nil && zkErr != nil && len(r.c.cfg.Bootstrap) == 0:
		return zkErr // the brokers were looked for there too
	case err != nil && z == nil:
		return errors.Join(err, zkErr)
	case err != nil:
		if s, err = r.withoutBrokers(ctx, err); err != nil {
			return err
		}
	case z != nil:
		merge(s, z)
	}
	addDeadBrokers(s)
	if z != nil {
		r.f.Tree = &check.Tree{ClusterID: z.clusterID, Controller: z.controller.ID, ControllerEpoch: cluster.ControllerEpoch(z.controller.Epoch)}
	}
	r.problem(s.Problems...)
	s.Problems = nil
	r.f.Snapshot = s
	return nil
}

// withoutBrokers takes everything from ZooKeeper: no broker answers.
func (r *factsReader) withoutBrokers(ctx context.Context, cause error) (*model.Snapshot, error) {
	s, err := r.c.snapshotZooKeeper(ctx, SnapshotOptions{})
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	r.problem(model.Problem{Object: "brokers", Message: cause.Error()})
	for _, src := range []check.Source{check.FromConfigs, check.FromLogDirs, check.FromPositions, check.FromGroups} {
		r.f.Missing[src] = "no broker answers"
	}
	return s, nil
}

// readAll reads every source that is wanted, side by side.
func (r *factsReader) readAll(ctx, base context.Context) {
	var g errgroup.Group
	needed := func(src check.Source, fn func() error) {
		if !r.reads(src) {
			return
		}
		g.Go(func() error {
			if err := fn(); err != nil {
				r.missing(src, err.Error())
				r.problem(model.Problem{Object: string(src), Message: err.Error()})
			}
			return nil
		})
	}
	if r.f.Snapshot.Source == model.SourceProtocol {
		g.Go(func() error { r.readMoves(base); return nil })
	}
	if r.reads(check.FromBrokers) && r.reads(check.FromZooKeeper) {
		g.Go(func() error { r.askOffice(base); return nil })
	}
	viewsRead, treeRead := make(chan struct{}), make(chan struct{})
	if !r.reads(check.FromBrokers) {
		close(viewsRead)
	}
	if !r.reads(check.FromZooKeeper) {
		close(treeRead)
	}
	needed(check.FromBrokers, func() error { defer close(viewsRead); r.readViews(base); return nil })
	needed(check.FromZooKeeper, func() error { defer close(treeRead); return r.readTree(base) })
	needed(check.FromConfigs, func() error { return r.readConfigs(base) })
	needed(check.FromLogDirs, func() error { r.readDirs(base); return nil })
	needed(check.FromGroups, func() error { return r.readGroups(base) })
	needed(check.FromPositions, func() error { r.readPositions(base); return nil })
	needed(check.FromEnsemble, func() error { r.readEnsemble(base); return nil })
	needed(check.FromTransitions, func() error { // bounds itself, so that it may wait longer without ZooKeeper
		<-viewsRead
		<-treeRead
		return r.readTransitions(ctx, base)
	})
	_ = g.Wait() // the functions above return nil
	r.applyViews()
}

// readMoves asks for reassignments under way; the snapshot, which the other readings look at, gets them when all are done.
func (r *factsReader) readMoves(ctx context.Context) {
	var err error
	if r.moves, err = r.c.reassignmentsSoon(ctx); err != nil {
		r.problem(model.Problem{Object: "reassignments", Message: short(err)})
	}
}

// reads reports whether a source is wanted and can be read.
func (r *factsReader) reads(src check.Source) bool { return r.wants(src) && !r.isMissing(src) }

// readTransitions compares decisions with what the brokers do. The decisions were read with the tree, or with the brokers'
// views, and are not read twice: they are most of what there is to read. Without ZooKeeper there are no ages: among
// everything else the epochs are watched for a moment only, a full look watches for as long as a decision may take.
func (r *factsReader) readTransitions(ctx, base context.Context) (err error) {
	opts := TransitionOptions{OlderThan: r.opts.OlderThan}
	switch {
	case r.f.Tree != nil && r.f.Tree.States != nil && !r.isMissing(check.FromZooKeeper):
		ctx = base
		opts.first = func(ctx context.Context) (*decisions, error) {
			return r.c.decisionsOf(ctx, check.Live(r.f.Snapshot), r.f.Tree.ControllerEpoch, r.f.Tree.States)
		}
	case !r.c.HasZooKeeper() && len(r.opts.Needs) == 0:
		ctx = base
		opts.OlderThan, opts.watch = r.opts.Sample/2, r.opts.Sample
		opts.first = func(context.Context) (*decisions, error) { return decisionsFromViews(r.f.Snapshot, r.f.Views), nil }
	}
	r.f.Transitions, _, err = r.c.Transitions(ctx, opts)
	return err
}

// liveIDs are the registered brokers.
func (r *factsReader) liveIDs() []cluster.BrokerID {
	var ids []cluster.BrokerID
	for i := range r.f.Snapshot.Brokers {
		if r.f.Snapshot.Brokers[i].Live {
			ids = append(ids, r.f.Snapshot.Brokers[i].ID)
		}
	}
	return ids
}

// brokerProblems turns the errors of brokers into problems.
func (r *factsReader) brokerProblems(errs map[cluster.BrokerID]error) {
	for _, id := range r.liveIDs() {
		if errs[id] != nil {
			r.problem(model.Problem{Object: brokerName(id), Message: short(errs[id])})
		}
	}
}

func (r *factsReader) readPositions(ctx context.Context) {
	rows := replicaRows(r.f.Snapshot, nil)
	r.problem(r.c.askPositions(ctx, r.f.Snapshot, rows)...)
	derivelag(rows)
	r.f.Positions = rows
}

// lookAgain reads the replicas that are behind once more after a moment, with a fresh ISR.
func (r *factsReader) lookAgain(ctx context.Context) {
	suspects := check.Suspects(r.f)
	if len(suspects) == 0 {
		return
	}
	wait := time.NewTimer(r.opts.Sample)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return
	case <-wait.C:
	}
	ctx, cancel := r.c.within(ctx)
	defer cancel()
	wanted, named := map[cluster.TopicPartition]bool{}, map[string]bool{}
	var topics []string
	for _, tp := range suspects {
		wanted[tp] = true
		if !named[tp.Topic] {
			named[tp.Topic] = true
			topics = append(topics, tp.Topic)
		}
	}
	s, err := r.c.snapshot(ctx, SnapshotOptions{Topics: topics, NoZooKeeper: true})
	if err != nil {
		r.problem(model.Problem{Object: "positions, second look", Message: err.Error()})
		return
	}
	for i := range s.Topics {
		s.Topics[i].Partitions = slices.DeleteFunc(s.Topics[i].Partitions, func(p model.Partition) bool { return !wanted[p.TP()] })
	}
	rows := replicaRows(s, nil)
	r.c.askPositions(ctx, s, rows)
	derivelag(rows)
	r.f.Later = rows
}
