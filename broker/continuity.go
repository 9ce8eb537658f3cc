package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kctl/broker/obs"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// continuityFile stands in every log directory and says since which broker epoch its logs have lost nothing.
// Kafka leaves it alone.
const continuityFile = "kbroker.continuity"

// continuity is the contents of the file. While the machine stays up (the boot id is the same), what a process
// wrote survives the process, so a broker that was killed has lost nothing; after a crash of the machine it may
// have lost what was not synced, unless it had stopped in order.
type continuity struct {
	BootID    string `json:"boot_id"`
	DataEpoch int64  `json:"data_epoch"`
}

// bootID identifies this run of the operating system; empty where it cannot be learnt, which counts as changed.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// readContinuity returns the data epoch that all log directories agree on, or 0: then the next registration
// begins a new one. clean says that the last stop was in order.
func readContinuity(dirs []string, boot string, clean bool) int64 {
	epoch := int64(0)
	for i, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, continuityFile))
		var c continuity
		if err != nil || json.Unmarshal(data, &c) != nil || c.DataEpoch <= 0 {
			return 0
		}
		if !clean && (boot == "" || c.BootID != boot) || i > 0 && c.DataEpoch != epoch {
			return 0
		}
		epoch = c.DataEpoch
	}
	return epoch
}

// writeContinuity replaces the file in every directory. Losing it is safe: the broker then counts as crashed.
func writeContinuity(dirs []string, c continuity) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var all error
	for _, dir := range dirs {
		path := filepath.Join(dir, continuityFile)
		err := os.WriteFile(path+".tmp", append(data, '\n'), 0o644)
		if err == nil {
			err = os.Rename(path+".tmp", path)
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("write %s: %w", path, err))
		}
	}
	return all
}

// keepContinuity notes the data epoch after a registration began one.
func (b *Broker) keepContinuity() {
	if err := writeContinuity(b.static.LogDirs, continuity{BootID: bootID(), DataEpoch: b.dataEpoch}); err != nil {
		b.log.Warn("cannot note that the logs are complete; after a restart this broker counts as crashed", obs.Err(err))
	}
}

// stoppedClean reports whether every log directory has the mark of a stop in order. It must be asked before the
// log directories are opened, which takes the marks away.
func stoppedClean(dirs []string) bool {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
			return false
		}
	}
	return len(dirs) > 0
}

// assignmentsAtOnce is how many topics are read from ZooKeeper in one go.
const assignmentsAtOnce = 500

// missingLog returns a partition that is assigned to this broker and has no log here, another topic's, or one that
// ends below its checkpointed high watermark. A log that somebody removed or cut is lost data like that of a crash, and nothing else tells of it: the broker would lead with
// an empty log (KIP-903).
func (b *Broker) missingLog(ctx context.Context) (tp cluster.TopicPartition, missing bool, err error) {
	ops := zkutil.Any(b.zk)
	topics, _, err := ops.Children(ctx, znode.BrokerTopicsPath)
	if err != nil {
		return tp, false, err
	}
	for some := range slices.Chunk(topics, assignmentsAtOnce) {
		gets := make([]zkop.Request, len(some))
		for i, name := range some {
			gets[i] = zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(name)}
		}
		for i, got := range ops.Do(ctx, gets...) {
			if errors.Is(got.Err, zkop.ErrNoNode) {
				continue
			}
			if got.Err != nil {
				return tp, false, got.Err
			}
			t, err := znode.DecodeTopic(some[i], got.Data)
			if err != nil {
				continue // the controller complains of it
			}
			if p, ok := b.missingOf(some[i], t); ok {
				return cluster.TopicPartition{Topic: some[i], Partition: p}, true, nil
			}
		}
	}
	return tp, false, nil
}

func (b *Broker) missingOf(topic string, t znode.Topic) (partition int32, ok bool) {
	for p, a := range t.Partitions {
		if !slices.Contains(a.Replicas, b.id) {
			continue
		}
		tp := cluster.TopicPartition{Topic: topic, Partition: p}
		l, here := b.store.Log(tp)
		if !here || !t.ID.IsZero() && !l.TopicID().IsZero() && l.TopicID() != t.ID {
			return p, true
		}
		if _, short := b.store.Shortened(tp); short {
			return p, true
		}
	}
	return 0, false
}

// learnDataEpoch decides whether the logs are as complete as they were when the broker was last registered. clean
// says that the last stop was in order.
func (b *Broker) learnDataEpoch(ctx context.Context, clean bool) {
	b.dataEpoch = readContinuity(b.static.LogDirs, bootID(), clean)
	if b.dataEpoch == 0 {
		return
	}
	tp, missing, err := b.missingLog(ctx)
	switch {
	case err != nil:
		b.log.Warn("cannot compare the logs with what is assigned: this broker counts as crashed", obs.Err(err))
	case missing:
		b.log.Warn("a log is missing or shorter than it was: this broker counts as crashed", obs.KeyTopicPartition, tp.String())
	default:
		return
	}
	b.dataEpoch = 0
	// Also when this life ends before it registers: the next one would find nothing amiss.
	if err := writeContinuity(b.static.LogDirs, continuity{}); err != nil {
		b.log.Warn("the continuity mark could not be withdrawn", obs.Err(err))
	}
}
