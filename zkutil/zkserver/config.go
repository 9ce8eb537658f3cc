package zkserver

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config configures Start. The zero value of every field but DataDir has a default.
type Config struct {
	// Addr is the TCP address to listen on; default "127.0.0.1:0", a free port.
	Addr string
	// DataDir holds the log and snapshots; it is created when missing and locked while the server runs. Empty
	// keeps everything in memory only.
	DataDir string
	// Fsync makes every answered write survive a crash of the machine. Without it writes survive a crash of
	// the process only; for throw-away clusters.
	Fsync bool
	// TickTime is ZooKeeper's unit of time; default 2 s. Session deadlines round up to it.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what clients may ask for; defaults 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// JuteMaxBuffer is the largest request in bytes; default 1 MiB - 1, as in ZooKeeper. A larger one closes the
	// connection.
	JuteMaxBuffer int
	// MaxConnections is the number of client connections; default 10,000. Further ones are closed at once.
	MaxConnections int
	// MaxWatches is the number of watches of all sessions together; default 1,000,000. A connection that
	// wants more is closed.
	MaxWatches int
	// SnapshotEvery is the number of transactions after which a snapshot is written and the log rolls; default
	// 100,000. A log file also rolls at 64 MiB.
	SnapshotEvery int
	// KeepSnapshots is how many snapshots, with the logs since, survive a purge; default 3.
	KeepSnapshots int
	// SuperDigest is "user:base64(sha1(user:password))" of a user who may do anything; empty: none.
	SuperDigest string
	// Logger gets what happens; default: nothing is logged.
	Logger *slog.Logger
}

// The errors of Start, and what the server fails with.
var (
	// ErrForeignDir says that the data directory holds files that are not this server's.
	ErrForeignDir = errors.New("not a data directory of this server")
	// ErrCorrupt says that the log or a snapshot is damaged before its end, so that acknowledged writes could
	// be missing.
	ErrCorrupt = errors.New("data directory is damaged")
	// ErrLocked says that another process uses the data directory.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrClosed says that the server was closed.
	ErrClosed = errors.New("zkserver: closed")
)

func (c *Config) setDefaults() error {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	setDefault(&c.TickTime, 2*time.Second)
	setDefault(&c.MinSessionTimeout, 2*c.TickTime)
	setDefault(&c.MaxSessionTimeout, max(20*c.TickTime, c.MinSessionTimeout))
	setDefault(&c.JuteMaxBuffer, 1<<20-1)
	setDefault(&c.MaxConnections, 10_000)
	setDefault(&c.MaxWatches, 1_000_000)
	setDefault(&c.SnapshotEvery, 100_000)
	setDefault(&c.KeepSnapshots, 3)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.TickTime < time.Millisecond:
		return fmt.Errorf("zkserver: TickTime %v is below 1ms", c.TickTime)
	case c.MinSessionTimeout < 0 || c.MaxSessionTimeout < c.MinSessionTimeout:
		return fmt.Errorf("zkserver: session timeouts from %v to %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	case c.JuteMaxBuffer < 1024 || c.JuteMaxBuffer > 1<<30:
		return fmt.Errorf("zkserver: JuteMaxBuffer %d is not within 1 KiB and 1 GiB", c.JuteMaxBuffer)
	case c.MaxConnections < 0 || c.MaxWatches < 0 || c.SnapshotEvery < 0 || c.KeepSnapshots < 0:
		return errors.New("zkserver: a limit is negative")
	}
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
