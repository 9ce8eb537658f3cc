package brokertest

import (
	"context"
	"errors"
	"net"
	"sync"

	"kctl/zkutil/cluster"
)

var errCut = errors.New("brokertest: the way to ZooKeeper is cut")

// gate is a dialer whose connections can be cut, and which then refuses to make new ones.
type gate struct {
	mu    sync.Mutex // guards the fields below
	cut   bool
	conns map[net.Conn]struct{}
}

// DialContext connects unless the gate is shut.
func (g *gate) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut {
		return nil, errCut
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if g.conns == nil {
		g.conns = make(map[net.Conn]struct{})
	}
	g.conns[c] = struct{}{}
	return c, nil
}

func (g *gate) set(cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = cut
	if cut {
		for c := range g.conns {
			c.Close()
		}
		g.conns = nil
	}
}

// CutZooKeeper cuts a broker off from ZooKeeper until HealZooKeeper; its session expires meanwhile if that is
// long enough. Everything else about the broker goes on.
func (c *Cluster) CutZooKeeper(id cluster.BrokerID) { c.nodes[id].gate.set(true) }

// HealZooKeeper lets the broker reach ZooKeeper again.
func (c *Cluster) HealZooKeeper(id cluster.BrokerID) { c.nodes[id].gate.set(false) }
