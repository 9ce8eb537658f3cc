package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kctl/broker/obs"
	"kctl/broker/storage"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// notificationLife is how long a node of /config/changes is kept, as in Kafka.
const notificationLife = 15 * time.Minute

// Dynamic is the static configuration plus what /config holds for topics and brokers. Load reads it all once,
// Run keeps it current. Safe for concurrent use.
type Dynamic struct {
	id   cluster.BrokerID
	zk   zkutil.Client
	log  *slog.Logger
	now  func() time.Time
	curr atomic.Pointer[state]

	mu    sync.Mutex          // serialises changes of curr
	stale map[string]struct{} // guarded by mu: topics that Refresh could not read

	seen int32 // highest sequence number of /config/changes that was applied; owned by Load, then Run
}

// Change says what an applied notification concerned: a topic, or with an empty Topic the brokers' defaults.
type Change struct{ Topic string }

// NewDynamic returns the static configuration alone.
func NewDynamic(static *Broker, id cluster.BrokerID, zk zkutil.Client, logger *slog.Logger) *Dynamic {
	d := &Dynamic{id: id, zk: zk, log: logger, now: time.Now, seen: -1}
	d.curr.Store(newState(static, nil, nil, nil))
	return d
}

// Load reads every topic's and this broker's configuration.
func (d *Dynamic) Load(ctx context.Context) error {
	ops := zkutil.Any(d.zk)
	// Notifications first: what is written after this list is read again by Run.
	changes, _, err := ops.Children(ctx, znode.ConfigChangesPath)
	if err != nil && !errors.Is(err, zkop.ErrNoNode) {
		return err
	}
	for _, c := range changes {
		if n, ok := znode.SequenceNumber(c); ok {
			d.seen = max(d.seen, n)
		}
	}
	return d.reload(ctx)
}

func (d *Dynamic) reload(ctx context.Context) error {
	ops := zkutil.Any(d.zk)
	names, _, err := ops.Children(ctx, znode.ConfigEntityTypePath(znode.TopicConfig))
	if err != nil && !errors.Is(err, zkop.ErrNoNode) {
		return err
	}
	topics, err := d.readTopics(ctx, names)
	if err != nil {
		return err
	}
	own, err := d.read(ctx, znode.BrokerConfig, d.entity())
	if err != nil {
		return err
	}
	def, err := d.read(ctx, znode.BrokerConfig, znode.DefaultEntity)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.curr.Store(newState(d.curr.Load().static, own, def, topics))
	return nil
}

func (d *Dynamic) entity() string { return strconv.Itoa(int(d.id)) }

func (d *Dynamic) read(ctx context.Context, t znode.ConfigType, name string) (map[string]string, error) {
	data, _, err := zkutil.Any(d.zk).Get(ctx, znode.ConfigEntityPath(t, name))
	if errors.Is(err, zkop.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return d.decode(t, name, data), nil
}

// decode keeps a broker running on a node that someone broke by hand: it logs and takes the defaults.
func (d *Dynamic) decode(t znode.ConfigType, name string, data []byte) map[string]string {
	c, err := znode.DecodeConfig(t, name, data)
	if err != nil {
		d.log.Error("configuration node is malformed, defaults are used", obs.KeyPath, znode.ConfigEntityPath(t, name), obs.Err(err))
		return nil
	}
	if t == znode.BrokerConfig {
		for k, v := range c.Values {
			key, ok := BrokerKey(k)
			if ok {
				ok = key.Check(v) == nil
			}
			if !ok {
				d.log.Warn("dynamic broker configuration ignored", obs.KeyConfig, k)
				delete(c.Values, k)
			}
		}
	}
	return c.Values
}

// Run applies notifications until ctx ends. applied is called after each change, in Run's goroutine.
func (d *Dynamic) Run(ctx context.Context, applied func(Change)) error {
	feed, cancel := d.zk.Subscribe()
	defer cancel()
	session := d.zk.Session().Epoch
	if err := d.catchUp(ctx, applied); err != nil && ctx.Err() == nil {
		d.log.Warn("configuration changes cannot be read", obs.Err(err))
	}
	for {
		var n zkutil.Notice
		var ok bool
		select {
		case <-ctx.Done():
			return nil
		case n, ok = <-feed:
			if !ok {
				return nil
			}
		}
		if n.Watch == nil && n.Session.State == zkutil.Connected {
			d.refreshStale(ctx, applied)
		}
		switch {
		case n.Watch != nil && n.Watch.Path == znode.ConfigChangesPath:
		case n.Watch == nil && n.Session.State == zkutil.Connected && n.Session.Epoch != session:
			session = n.Session.Epoch // the watch went with the old session
		default:
			continue
		}
		if err := d.catchUp(ctx, applied); err != nil && ctx.Err() == nil {
			d.log.Warn("configuration changes cannot be read", obs.Err(err))
		}
	}
}

// catchUp sets the watch and applies every notification that has not been seen.
func (d *Dynamic) catchUp(ctx context.Context, applied func(Change)) error {
	ops := zkutil.Any(d.zk)
	names, _, err := ops.ChildrenWatch(ctx, znode.ConfigChangesPath)
	if err != nil {
		return err
	}
	for _, name := range names {
		seq, ok := znode.SequenceNumber(name)
		if !ok {
			continue
		}
		path := znode.ConfigChangesPath + "/" + name
		data, stat, err := ops.Get(ctx, path)
		if errors.Is(err, zkop.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if seq > d.seen {
			d.apply(ctx, name, data, applied)
			d.seen = seq
		}
		if d.now().Sub(time.UnixMilli(stat.Ctime)) > notificationLife {
			_ = ops.Delete(ctx, path, zkop.AnyVersion) // another broker may have been first
		}
	}
	return nil
}

func (d *Dynamic) apply(ctx context.Context, name string, data []byte, applied func(Change)) {
	change, err := znode.DecodeConfigChange(name, data)
	if err != nil {
		d.log.Error("configuration notification is malformed", obs.Err(err))
		return
	}
	switch change.Type {
	case znode.TopicConfig:
		err = d.Refresh(ctx, change.Entity)
		applied(Change{Topic: change.Entity})
	case znode.BrokerConfig:
		if change.Entity != d.entity() && change.Entity != znode.DefaultEntity {
			return
		}
		err = d.reload(ctx)
		applied(Change{})
	default:
		return // quotas and credentials belong to others
	}
	if err != nil {
		d.log.Warn("configuration cannot be read", obs.KeyConfig, change.Entity, obs.Err(err))
		return
	}
	d.log.Info("configuration changed", obs.KeyConfig, string(change.Type)+"/"+change.Entity)
}

// Refresh reads topics' configurations now, in pipelined requests: when this broker first hears of them, since
// creation leaves no notification. Topics that cannot be read keep what they have, and Run reads them when
// ZooKeeper can be reached again.
func (d *Dynamic) Refresh(ctx context.Context, topics ...string) error {
	values, err := d.readTopics(ctx, topics)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.stale == nil {
			d.stale = make(map[string]struct{})
		}
		for _, t := range topics {
			d.stale[t] = struct{}{}
		}
		return err
	}
	d.setTopics(topics, values)
	return nil
}

// refreshStale makes up for what Refresh could not read.
func (d *Dynamic) refreshStale(ctx context.Context, applied func(Change)) {
	d.mu.Lock()
	topics := slices.Collect(maps.Keys(d.stale))
	d.stale = nil
	d.mu.Unlock()
	if len(topics) == 0 || d.Refresh(ctx, topics...) != nil {
		return // still stale, or the broker stops
	}
	for _, t := range topics {
		applied(Change{Topic: t})
	}
}

// readTopics returns the overrides of those of the topics that have some.
func (d *Dynamic) readTopics(ctx context.Context, names []string) (map[string]map[string]string, error) {
	ops := zkutil.Any(d.zk)
	topics := make(map[string]map[string]string)
	const batch = 512
	for from := 0; from < len(names); from += batch {
		part := names[from:min(from+batch, len(names))]
		reqs := make([]zkop.Request, len(part))
		for i, n := range part {
			reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.ConfigEntityPath(znode.TopicConfig, n)}
		}
		for i, r := range ops.Do(ctx, reqs...) {
			if r.Err != nil && !errors.Is(r.Err, zkop.ErrNoNode) {
				return nil, fmt.Errorf("read configuration of topic %s: %w", part[i], r.Err)
			}
			if v := d.decode(znode.TopicConfig, part[i], r.Data); len(v) > 0 {
				topics[part[i]] = v
			}
		}
	}
	return topics, nil
}

// setTopics takes over the overrides of names; those without an entry in values have none.
func (d *Dynamic) setTopics(names []string, values map[string]map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.curr.Load()
	var topics map[string]map[string]string
	for _, name := range names {
		if len(values[name]) == 0 && len(old.topics[name]) == 0 {
			continue
		}
		if topics == nil {
			if topics = maps.Clone(old.topics); topics == nil {
				topics = make(map[string]map[string]string)
			}
		}
		delete(topics, name)
		if len(values[name]) > 0 {
			topics[name] = values[name]
		}
	}
	if topics != nil {
		d.curr.Store(newState(old.static, old.own, old.clusterDefault, topics))
	}
}

// TopicConfig returns the effective configuration of a topic's logs. It does no I/O.
func (d *Dynamic) TopicConfig(topic string) storage.Config { return d.curr.Load().topicConfig(topic) }

// Overrides returns what /config/topics holds for a topic. The map must not be changed.
func (d *Dynamic) Overrides(topic string) map[string]string { return d.curr.Load().topics[topic] }

// Long returns the effective value of an integer broker key, dynamic values included.
func (d *Dynamic) Long(key string) int64 {
	v, _ := d.curr.Load().brokerValue(key)
	n, _ := strconv.ParseInt(v, 10, 64)
	return n
}
