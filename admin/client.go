package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// Config says how to reach a cluster. At least one of Bootstrap and ZooKeeper must be set.
type Config struct {
	Bootstrap []string         // host:port, as ParseBootstrap returns them
	ZooKeeper ZooKeeperAddress // zero: none
	ClientID  string           // default kctl
	Timeout   time.Duration    // for one whole operation; default 10 s
	TLS       *tls.Config      // nil: plain text
	SASL      sasl.Mechanism   // nil: none
	Security  string           // security.protocol as configured, for messages; default PLAINTEXT
	Logger    *slog.Logger     // nil: silent
	FromDir   string           // a ZooKeeper data directory is read instead of a cluster; set by ReadFromDir

	// ClusterID refuses every answer of another cluster; empty accepts any.
	ClusterID string

	dir *dataDir // what FromDir holds; set by ReadFromDir

	ZooKeeperTLS    *tls.Config   // nil: plain text
	ZooKeeperAuth   []zkutil.Auth // presented on every connection to ZooKeeper
	ZooKeeperSetACL bool          // zookeeper.set.acl: znodes that are made get Kafka's protection

	// ConnectZooKeeper replaces the real connection in tests.
	ConnectZooKeeper func(ctx context.Context, addr ZooKeeperAddress, timeout time.Duration, log *slog.Logger) (zkutil.Client, error)
}

// DefaultTimeout is that of an operation unless configured.
const DefaultTimeout = 10 * time.Second

// Client is a cluster as an operator reaches it. Methods may be called from several goroutines.
type Client struct {
	cfg Config

	mu    sync.Mutex                  // guards what is below; held while the ZooKeeper connection is made
	conns map[string]*kgo.Client      // by address
	seeds []string                    // addresses to start from, the one that answered last first
	addrs map[cluster.BrokerID]string // where brokers are
	zk    zkutil.Client
	zkErr error           // why ZooKeeper could not be reached; kept, so that it is tried once
	id    string          // cluster id, once an answer carried it
	keys  map[int16]int16 // API keys of the first broker that answered, with their highest version

	stored func(string) // set by UseStored: users, quotas and ACLs are ZooKeeper's; told what is odd about them

	reached sync.Map // addresses to which a connection was made, at least once
}

// Open checks the configuration and returns a Client. Nothing is contacted.
func Open(_ context.Context, cfg Config) (*Client, error) {
	if len(cfg.Bootstrap) == 0 && len(cfg.ZooKeeper.Servers) == 0 {
		return nil, badInput("neither a bootstrap server nor a ZooKeeper address is given")
	}
	if cfg.ClientID == "" {
		cfg.ClientID = "kctl"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Security == "" {
		cfg.Security = "PLAINTEXT"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.ConnectZooKeeper == nil {
		cfg.ConnectZooKeeper = cfg.connectZooKeeper
	}
	return &Client{cfg: cfg, conns: map[string]*kgo.Client{}, addrs: map[cluster.BrokerID]string{}}, nil
}

// HasZooKeeper reports whether a ZooKeeper address is configured.
func (c *Client) HasZooKeeper() bool { return len(c.cfg.ZooKeeper.Servers) > 0 }

// ClusterID returns the id of the cluster, empty before anything was read from its brokers.
func (c *Client) ClusterID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// Timeout returns the time allowed for one operation.
func (c *Client) Timeout() time.Duration { return c.cfg.Timeout }

// Close releases all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, cl := range c.conns {
		cl.Close()
		delete(c.conns, addr)
	}
	if c.zk != nil {
		err := c.zk.Close()
		c.zk = nil
		return err
	}
	return nil
}

// brokerTimeout bounds one request to one broker, so that a silent broker leaves time for an answer that
// names it.
func (c *Client) brokerTimeout() time.Duration { return max(c.cfg.Timeout/2, 200*time.Millisecond) }

// options are those of every connection of ours; producers and consumers add to them.
func (c *Client) options(seeds []string) []kgo.Opt {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(1, 12) // Fetch by name: topic ids are optional in ZooKeeper mode
	versions.SetMaxKeyVersion(18, 4) // ApiVersions: a broker that does not know the newest asks for another round trip
	versions.SetMaxKeyVersion(8, 9)  // OffsetCommit by name: old offsets of deleted topics have no id
	versions.SetMaxKeyVersion(9, 9)  // OffsetFetch likewise
	opts := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID(c.cfg.ClientID),
		kgo.MaxVersions(versions),
		kgo.Dialer(c.dial),
		kgo.RequestRetries(3),
		kgo.RetryTimeout(c.cfg.Timeout),
		kgo.RequestTimeoutOverhead(max(c.cfg.Timeout, time.Second)),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.DisableClientMetrics(),
		kgo.WithLogger(kgoLog{c.cfg.Logger}),
	}
	if c.cfg.SASL != nil {
		opts = append(opts, kgo.SASL(c.cfg.SASL))
	}
	return opts
}

// dial opens one connection within the broker timeout.
func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.brokerTimeout())
	defer cancel()
	var d net.Dialer
	if c.cfg.TLS == nil {
		return d.DialContext(ctx, network, addr)
	}
	cfg := c.cfg.TLS.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	return dialTLS(ctx, &d, network, addr, cfg)
}

// zookeeper returns the ZooKeeper connection, made on first use. A failure is final for this Client.
func (c *Client) zookeeper(ctx context.Context) (zkutil.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zookeeperLocked(ctx)
}

func (c *Client) zookeeperLocked(ctx context.Context) (zkutil.Client, error) {
	if c.zk != nil || c.zkErr != nil {
		return c.zk, c.zkErr
	}
	if !c.HasZooKeeper() {
		return nil, &Error{Kind: BadInput, Msg: "this needs ZooKeeper", Hint: "give its address with -z HOST:PORT/chroot"}
	}
	zk, err := c.openZooKeeper(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			c.zkErr = err
		}
		return nil, err
	}
	if err := c.guardZooKeeper(ctx, zk); err != nil {
		c.zkErr = errors.Join(err, zk.Close())
		return nil, c.zkErr
	}
	c.zk = zk
	return zk, nil
}

// zookeeperFailed reports whether ZooKeeper was tried in vain.
func (c *Client) zookeeperFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zkErr != nil
}

// within bounds an operation by the configured timeout.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// kgoLog hands the library's log lines to ours; a silent logger costs it nothing.
type kgoLog struct{ log *slog.Logger }

func (l kgoLog) Level() kgo.LogLevel {
	switch {
	case l.log.Enabled(context.Background(), slog.LevelDebug):
		return kgo.LogLevelDebug
	case l.log.Enabled(context.Background(), slog.LevelError):
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelNone
}

func (l kgoLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	to := map[kgo.LogLevel]slog.Level{
		kgo.LogLevelError: slog.LevelError, kgo.LogLevelWarn: slog.LevelWarn, kgo.LogLevelInfo: slog.LevelInfo, kgo.LogLevelDebug: slog.LevelDebug,
	}[level]
	l.log.Log(context.Background(), to, msg, keyvals...)
}
