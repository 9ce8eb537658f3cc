package admin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// ISRWatchOptions says what WatchLeaderAndISR looks at.
type ISRWatchOptions struct {
	Targets []plan.Target // empty: every partition of every topic, also of those that are made later
	Every   time.Duration // without ZooKeeper: how often the metadata is read
	// Armed is called once, when the first state has been read: what changes from then on is reported.
	Armed func(partitions int)
	// Changed is called for each change, in the order in which they were seen; its error ends the watch.
	Changed func(check.ISRChange) error
}

// WatchLeaderAndISR reports changes of leader, ISR and replicas until ctx ends, which is no error. With ZooKeeper by watches on
// the state znodes: two changes that follow each other faster than a read are seen as one. Without, by the brokers'
// metadata. A lost session, or brokers that do not answer for a while, end nothing: what changed meanwhile is reported
// afterwards.
func (c *Client) WatchLeaderAndISR(ctx context.Context, opts ISRWatchOptions) error {
	if err := c.nothingToWatch(); err != nil {
		return err
	}
	w := &isrWatch{c: c, opts: opts, views: map[cluster.TopicPartition]*check.ISRView{}, live: map[cluster.BrokerID]bool{}}
	run := w.poll
	if c.HasZooKeeper() {
		run = w.follow
	}
	if err := run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// isrWatch is what has been seen so far. It belongs to one goroutine.
type isrWatch struct {
	c     *Client
	opts  ISRWatchOptions
	views map[cluster.TopicPartition]*check.ISRView
	live  map[cluster.BrokerID]bool
	armed bool
}

// update takes over what was read of some topics: all partitions of those in read. The first time nothing is reported.
func (w *isrWatch) update(topics map[string]bool, now map[cluster.TopicPartition]*check.ISRView) error {
	tps := slices.Collect(maps.Keys(now))
	for tp := range w.views {
		if topics[tp.Topic] && now[tp] == nil {
			tps = append(tps, tp)
		}
	}
	slices.SortFunc(tps, cluster.TopicPartition.Compare)
	for _, tp := range tps {
		before, after := w.views[tp], now[tp]
		if before != nil && after != nil && after.ZKVersion < 0 && after.LeaderEpoch < before.LeaderEpoch {
			continue // metadata of a broker that is late
		}
		if w.views[tp] = after; after == nil {
			delete(w.views, tp)
		}
		if !w.armed {
			continue
		}
		if ch, ok := check.ISRChangeOf(tp, before, after, w.live); ok {
			if err := w.opts.Changed(ch); err != nil {
				return err
			}
		}
	}
	if !w.armed {
		w.armed = true
		if w.opts.Armed != nil {
			w.opts.Armed(len(w.views))
		}
	}
	return nil
}

// poll reads the metadata again and again. Only the first reading must succeed.
func (w *isrWatch) poll(ctx context.Context) error {
	names := topicsOf(w.opts.Targets)
	for {
		s, err := w.c.Snapshot(ctx, SnapshotOptions{Topics: names})
		if err != nil && !w.armed {
			return err
		}
		if err == nil && !w.armed {
			if err := missingPartitions(s, w.opts.Targets); err != nil {
				return err
			}
		}
		if err == nil || KindOf(err) == NotFound && len(names) > 0 {
			if err := w.polled(s, names); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.opts.Every):
		}
	}
}

// polled takes over one reading; a topic that was named and is not there is gone. s may be nil.
func (w *isrWatch) polled(s *model.Snapshot, names []string) error {
	now := map[cluster.TopicPartition]*check.ISRView{}
	topics := map[string]bool{}
	for _, n := range names {
		topics[n] = true
	}
	for tp := range w.views {
		topics[tp.Topic] = true
	}
	if s == nil {
		s = &model.Snapshot{}
	}
	if len(s.Brokers) > 0 {
		w.live = check.Live(s)
	}
	for i := range s.Topics {
		t := &s.Topics[i]
		topics[t.Name] = t.Err == "" || len(t.Partitions) > 0 || t.Err == short(kerr.UnknownTopicOrPartition)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			n := stateFromPartition(p)
			if v := check.ViewOfState(&n, p); plan.Match(w.opts.Targets, p.Topic, p.Partition) {
				now[p.TP()] = &v
			}
		}
	}
	return w.update(topics, now)
}

// follow arms watches and reads what they announce.
func (w *isrWatch) follow(ctx context.Context) error {
	zk, err := w.c.zookeeper(ctx)
	if err != nil {
		return err
	}
	if _, _, err := w.c.LeaderAndISR(ctx, w.opts.Targets); err != nil {
		return err // names that do not exist, no cluster below this chroot
	}
	feed, cancel := zk.Subscribe()
	defer cancel()
	dirty := isrDirty{all: true}
	for {
		switch err := w.read(ctx, zk, &dirty); {
		case err == nil:
			dirty = isrDirty{}
		case !w.armed || !errors.Is(err, zkop.ErrOutcomeUnknown) && KindOf(err) != Unreachable:
			return err
		default:
			dirty.all = true
		}
		if dirty.all { // ZooKeeper did not answer: again in a while
			if !pause(ctx) {
				return nil
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case n, ok := <-feed:
			if !ok {
				return &Error{Kind: Unreachable, Msg: "the ZooKeeper session was lost"}
			}
			dirty.note(n)
		}
		for more := true; more; { // what has come meanwhile is read together
			select {
			case n, ok := <-feed:
				if more = ok; ok {
					dirty.note(n)
				}
			default:
				more = false
			}
		}
	}
}

// isrDirty is what watches have announced since the last reading.
type isrDirty struct {
	all    bool
	ids    bool
	topics map[string]bool
}

// note sorts one notice. A new session has none of our watches.
func (d *isrDirty) note(n zkutil.Notice) {
	if n.Watch == nil {
		d.all = d.all || n.Session.State == zkutil.Connected
		return
	}
	if d.topics == nil {
		d.topics = map[string]bool{}
	}
	path := n.Watch.Path
	rest, below := strings.CutPrefix(path, znode.BrokerTopicsPath+"/")
	switch {
	case path == znode.BrokerIDsPath:
		d.ids = true
	case path == znode.BrokerTopicsPath:
		d.all = true
	case below:
		topic, _, _ := strings.Cut(rest, "/")
		d.topics[topic] = true
	}
}

// read reads what is dirty, arms its watches again, and reports what changed.
func (w *isrWatch) read(ctx context.Context, zk zkutil.Client, d *isrDirty) error {
	if !d.all && !d.ids && len(d.topics) == 0 {
		return nil
	}
	ctx, cancel := w.c.within(ctx)
	defer cancel()
	if err := w.readLive(ctx); err != nil {
		return err
	}
	names := topicsOf(w.opts.Targets)
	switch {
	case !d.all:
		names = slices.Sorted(maps.Keys(d.topics))
	case names == nil:
		r, err := w.c.zkDo(ctx, []zkop.Request{{Kind: zkop.Children, Path: znode.BrokerTopicsPath, Watch: true}})
		if err != nil {
			return err
		}
		names = r[0].Children
		for tp := range w.views { // topics that are gone
			if !slices.Contains(names, tp.Topic) {
				names = append(names, tp.Topic)
			}
		}
	}
	return w.readTopics(ctx, names)
}

func (w *isrWatch) readLive(ctx context.Context) error {
	r, err := w.c.zkDo(ctx, []zkop.Request{{Kind: zkop.Children, Path: znode.BrokerIDsPath, Watch: true}})
	if err != nil {
		return err
	}
	live := map[cluster.BrokerID]bool{}
	for _, ch := range r[0].Children {
		if id, err := znode.ParseBrokerID(ch); err == nil {
			live[id] = true
		}
	}
	w.live = live
	return nil
}

// watched watches nodes, also those that do not exist yet, and then reads them: the answers to the reads. What changes in
// between is told by the watch.
func (w *isrWatch) watched(ctx context.Context, paths []string) ([]zkop.Response, error) {
	reqs := make([]zkop.Request, 2*len(paths))
	for i, p := range paths {
		reqs[i], reqs[len(paths)+i] = zkop.Request{Kind: zkop.Exists, Path: p, Watch: true}, zkop.Request{Kind: zkop.Get, Path: p}
	}
	rs, err := w.c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	return rs[len(paths):], nil
}

// readTopics reads topics with all their partitions that are wanted. What does not decode is left as it was.
func (w *isrWatch) readTopics(ctx context.Context, names []string) error {
	var paths []string
	for _, n := range names {
		paths = append(paths, znode.TopicPath(n))
	}
	rs, err := w.watched(ctx, paths)
	if err != nil {
		return err
	}
	topics := map[string]bool{}
	var parts []model.Partition
	paths = nil
	for i, n := range names {
		r := rs[i]
		t, err := znode.DecodeTopic(n, r.Data)
		if topics[n] = r.Err != nil || err == nil; r.Err != nil || err != nil {
			continue
		}
		for _, num := range t.PartitionNumbers() {
			if plan.Match(w.opts.Targets, n, num) {
				a := t.Partitions[num]
				p := model.Partition{Topic: n, Partition: num, Replicas: a.Replicas, Adding: a.Adding, Removing: a.Removing}
				parts, paths = append(parts, p), append(paths, znode.StatePath(p.TP()))
			}
		}
	}
	if rs, err = w.watched(ctx, paths); err != nil {
		return err
	}
	now := map[cluster.TopicPartition]*check.ISRView{}
	for i := range parts {
		n := stateNode(&parts[i], rs[i])
		switch v := check.ViewOfState(&n, &parts[i]); {
		case n.Err == "":
			now[parts[i].TP()] = &v
		case !n.Missing:
			now[parts[i].TP()] = w.views[parts[i].TP()] // cannot be understood: no change that could be named
		}
	}
	maps.DeleteFunc(now, func(_ cluster.TopicPartition, v *check.ISRView) bool { return v == nil })
	return w.update(topics, now)
}
