package controller

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// dataEpochs is what the controllers know of the brokers' data epochs. It is written after a change was taken into
// account, so what stands there lags behind in the safe direction: a crash is handled twice rather than never.
type dataEpochs struct {
	seen   map[cluster.BrokerID]cluster.BrokerEpoch
	stored []byte // the znode's contents, nil when there is none
}

// loadDataEpochs takes over what earlier controllers noted.
func (c *Controller) loadDataEpochs(r *zkop.Response) {
	c.dataEpochs = dataEpochs{seen: map[cluster.BrokerID]cluster.BrokerEpoch{}}
	if errors.Is(r.Err, zkop.ErrNoNode) || !c.usable(znode.BrokerDataEpochsPath, r) {
		return
	}
	c.dataEpochs.stored = append([]byte{}, r.Data...)
	seen, err := znode.DecodeDataEpochs(r.Data)
	if err != nil {
		c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
		return
	}
	c.dataEpochs.seen = seen
}

// crashed: the broker was known, and its logs may have lost records since.
func (c *Controller) crashed(b cluster.Broker) bool {
	seen, known := c.dataEpochs.seen[b.ID]
	return known && seen != b.DataEpoch
}

// noteDataEpochs writes down that the brokers' present data epochs have been taken into account.
func (c *Controller) noteDataEpochs(then func()) {
	next := maps.Clone(c.dataEpochs.seen)
	for id, b := range c.brokers {
		next[id] = b.info.DataEpoch
	}
	data := znode.EncodeDataEpochs(next)
	if bytes.Equal(data, c.dataEpochs.stored) {
		then()
		return
	}
	op := setOp(znode.BrokerDataEpochsPath, data, zkop.AnyVersion)
	if c.dataEpochs.stored == nil {
		op = createOp(znode.BrokerDataEpochsPath, data)
	}
	c.write([]writeOp{op}, func(results []writeResult) {
		if err := results[0].err; err != nil {
			c.emit(Note{Kind: NoteBadZnode, Reason: "write " + znode.BrokerDataEpochsPath + ": " + err.Error()})
		} else {
			c.dataEpochs = dataEpochs{seen: next, stored: data}
		}
		then()
	})
}

// repairCrashed repairs every partition that wants it, and those that count a crashed broker as in sync.
func (c *Controller) repairCrashed(crashed []cluster.BrokerID, reason string, then func()) {
	ps := c.collect(func(p *partition) bool {
		return c.wantsRepair(p) || slices.ContainsFunc(p.li.ISR, func(b cluster.BrokerID) bool { return slices.Contains(crashed, b) })
	})
	c.repairWith(c.repairAfter(crashed), ps, reason, then)
}
