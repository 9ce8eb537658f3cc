package admin

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Each address has a client of its own, so that a request to one broker depends on that broker alone: a
// client that knows several refreshes its view of the cluster through any of them, and one that is silent
// would make the others look silent too.

// seedAddrs are the addresses to start from: those configured, or those of the brokers in ZooKeeper.
func (c *Client) seedAddrs(ctx context.Context) ([]string, error) {
	if err := c.notOffline(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seeds) > 0 {
		return c.seeds, nil
	}
	seeds := c.cfg.Bootstrap
	if len(seeds) == 0 {
		var err error
		if seeds, err = c.seedsFromZooKeeper(ctx); err != nil {
			return nil, err
		}
	}
	c.seeds = slices.Clone(seeds)
	return c.seeds, nil
}

// askable are the addresses at which any broker may be asked: those to start from, then those that earlier answers named.
// Without them a cluster whose one named broker dies in the middle of a command would be out of reach.
func (c *Client) askable(ctx context.Context) ([]string, error) {
	seeds, err := c.seedAddrs(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(seeds)
	for _, id := range slices.Sorted(maps.Keys(c.addrs)) {
		if addr := c.addrs[id]; !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all, nil
}

// knowsBrokers reports whether a broker has answered before: a question that ends without time then says nothing about them.
func (c *Client) knowsBrokers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.addrs) > 0
}

// answered moves an address to the front of the list, so that the next question goes there first.
func (c *Client) answered(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.seeds, addr); i > 0 {
		c.seeds = slices.Concat([]string{addr}, c.seeds[:i], c.seeds[i+1:])
	}
}

// conn returns the client of one address, made on first use.
func (c *Client) conn(addr string) (*kgo.Client, error) { return c.connNamed(addr, addr) }

// connAside returns a client of one address for what a broker in KRaft mode answers only when the controllers do. It serves a
// connection in order, so a question that waits for them would make all that is asked after it look unanswered.
func (c *Client) connAside(addr string) (*kgo.Client, error) {
	return c.connNamed("aside of "+addr, addr)
}

func (c *Client) connNamed(name, addr string) (*kgo.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.conns[name]; cl != nil {
		return cl, nil
	}
	cl, err := kgo.NewClient(append(c.options([]string{addr}), kgo.Dialer(c.dialed(addr)))...)
	if err != nil {
		return nil, &Error{Kind: BadInput, Msg: "client configuration", Err: err}
	}
	c.conns[name] = cl
	return cl, nil
}

// dialed dials for one address, and remembers that a connection to it was made.
func (c *Client) dialed(addr string) func(ctx context.Context, network, host string) (net.Conn, error) {
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := c.dial(ctx, network, host)
		if err == nil {
			c.reached.Store(addr, true)
		}
		return conn, err
	}
}

// askAddr sends req to one address, within the broker timeout.
func (c *Client) askAddr(ctx context.Context, addr string, req kmsg.Request) (kmsg.Response, error) {
	if err := c.notOffline(); err != nil {
		return nil, err
	}
	connOf := c.conn
	if req.Key() == kmsg.DescribeQuorum.Int16() {
		connOf = c.connAside
	}
	cl, err := connOf(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.brokerTimeout())
	defer cancel()
	resp, err := cl.SeedBrokers()[0].Request(ctx, req)
	return resp, c.explainVersion(ctx, addr, req, err)
}

// learn remembers where brokers are.
func (c *Client) learn(brokers []model.Broker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range brokers {
		if b := &brokers[i]; b.Host != "" {
			c.addrs[b.ID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		}
	}
}

// addrOf returns the address of a broker; an unknown one is looked for once.
func (c *Client) addrOf(ctx context.Context, id cluster.BrokerID) (string, error) {
	look := func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.addrs[id]
	}
	if addr := look(); addr != "" {
		return addr, nil
	}
	if _, err := c.metadata(ctx, []string{}); err != nil {
		return "", err
	}
	if addr := look(); addr != "" {
		return addr, nil
	}
	return "", &Error{Kind: Unreachable, Msg: brokerName(id) + " is not registered"}
}

// askBroker sends req to one broker, within the broker timeout.
func (c *Client) askBroker(ctx context.Context, id cluster.BrokerID, req kmsg.Request) (kmsg.Response, error) {
	addr, err := c.addrOf(ctx, id)
	if err != nil {
		return nil, err
	}
	resp, err := c.askAddr(ctx, addr, req)
	return resp, c.explainAddress(id, addr, err)
}
