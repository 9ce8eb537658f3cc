//go:build proc

package proctest

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/cmd/internal/harness"
)

// TestLogDirMoveKilled: a broker is killed, twice, while its replicas move to another log directory, one that it leads and
// one that follows. After the restarts each is in the other directory, once, with the records that the other broker has.
func TestLogDirMoveKilled(t *testing.T) {
	const rate = "replica.alter.log.dirs.io.max.bytes.per.second"
	const times = 9 // megabytes of each: more than a move copies in its last step, whatever the bound
	c := startCluster(t, 2, map[string]string{"replica.lag.time.max.ms": "3000"})
	b := c.Broker(1)
	dirs := []string{b.Dir, b.Dir + "-second"}
	must(t, b.Stop())
	must(t, replaceInFile(b.PropsFile(), "log.dirs="+b.Dir, "log.dirs="+dirs[0]+","+dirs[1]))
	must(t, b.Start(t.Context()))
	c.createAssigned(t, bulk, [][]int32{{1, 2}, {2, 1}})
	c.fillLarge(t, 2, times)
	c.createAssigned(t, moving, [][]int32{{1, 2}})
	l := c.startLoad(t, moving, 1)
	l.progress(t, 100)
	c.setBroker(t, 1, rate, "1000000")

	from := map[string]string{}
	for _, folder := range []string{bulk + "-0", bulk + "-1", moving + "-0"} {
		from[folder] = dirOf(t, b, dirs, folder)
	}
	other := func(dir string) string {
		if dir == dirs[0] {
			return dirs[1]
		}
		return dirs[0]
	}
	c.moveDir(t, b, bulk, 0, other(from[bulk+"-0"]))
	c.moveDir(t, b, bulk, 1, other(from[bulk+"-1"]))
	for range 2 {
		c.await(t, "copies are under way", longWait, func() bool { return c.futureBytes(t, b) > 0 })
		must(t, b.Kill())
		if futures := dirsMatching(t, dirs, "*-future"); len(futures) == 0 {
			t.Error("the broker died too late: no move was under way")
		}
		must(t, b.Start(t.Context()))
		l.progress(t, 50)
	}
	c.moveDir(t, b, moving, 0, other(from[moving+"-0"]))
	c.setBroker(t, 1, rate, "9223372036854775807")
	c.await(t, "the moves end", longWait, func() bool { return c.futureBytes(t, b) == 0 })
	c.awaitFullISR(t, bulk, 2, 2)
	c.awaitFullISR(t, moving, 1, 2)
	l.progress(t, 50)
	l.stop(t)

	read, err := l.ledger.Verify(t.Context(), c.Bootstrap())
	must(t, err)
	for folder, old := range from {
		now := dirOf(t, b, dirs, folder)
		if now != other(old) {
			t.Errorf("%s is in %s", folder, now)
		}
		topic, p := folder[:len(folder)-2], int32(folder[len(folder)-1]-'0')
		end := c.count(t, topic, p)
		mine, err := harness.LogBytes(filepath.Join(now, folder), end)
		must(t, err)
		its, err := harness.LogBytes(filepath.Join(c.Broker(2).Dir, folder), end)
		must(t, err)
		if !bytes.Equal(mine, its) || topic == bulk && end != times*bulkRecords {
			t.Errorf("%s: %d records, %d bytes, %d bytes on the other broker", folder, end, len(mine), len(its))
		}
	}
	t.Logf("%d records acknowledged, %d read", l.ledger.Acked(), read)
}

// fillLarge fills several times, so that a copy takes several chunks.
func (c *testCluster) fillLarge(t *testing.T, partitions, times int) {
	t.Helper()
	for range times {
		c.fill(t, partitions)
	}
}

func dirsMatching(t *testing.T, dirs []string, pattern string) (found []string) {
	t.Helper()
	for _, dir := range dirs {
		some, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		found = append(found, some...)
	}
	return found
}

// setBroker sets a configuration of one broker, and waits until that has taken it up.
func (c *testCluster) setBroker(t *testing.T, id int32, name, value string) {
	t.Helper()
	adm := c.admin(t)
	resp, err := adm.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}}, id)
	must(t, err)
	for _, r := range resp {
		must(t, r.Err)
	}
	c.await(t, name+"="+value, longWait, func() bool {
		all, err := adm.DescribeBrokerConfigs(t.Context(), id)
		if err != nil || len(all) != 1 || all[0].Err != nil {
			return false
		}
		return slices.ContainsFunc(all[0].Configs, func(cfg kadm.Config) bool { return cfg.Key == name && cfg.MaybeValue() == value })
	})
}

func (c *testCluster) moveDir(t *testing.T, b *harness.Broker, topic string, partition int32, dir string) {
	t.Helper()
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	rd := kmsg.NewAlterReplicaLogDirsRequestDir()
	rt := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
	rt.Topic, rt.Partitions = topic, []int32{partition}
	rd.Dir, rd.Topics = dir, append(rd.Topics, rt)
	req.Dirs = append(req.Dirs, rd)
	c.await(t, "the broker takes the move", longWait, func() bool {
		resp, err := ask[*kmsg.AlterReplicaLogDirsResponse](t, b, req)
		if err != nil {
			return false
		}
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		if err != nil && err != kerr.ReplicaNotAvailable { //nolint:errorlint // not wrapped
			t.Fatal(err)
		}
		return err == nil
	})
}

// futureBytes is how much is copied of moves that have not ended; -1 when the broker does not answer, so that neither
// a beginning nor an end is taken from that.
func (c *testCluster) futureBytes(t *testing.T, b *harness.Broker) (n int64) {
	t.Helper()
	req := kmsg.NewPtrDescribeLogDirsRequest()
	resp, err := ask[*kmsg.DescribeLogDirsResponse](t, b, req)
	if err != nil {
		return -1
	}
	for _, d := range resp.Dirs {
		for _, topic := range d.Topics {
			for _, p := range topic.Partitions {
				if p.IsFuture {
					n += max(p.Size, 1)
				}
			}
		}
	}
	return n
}
