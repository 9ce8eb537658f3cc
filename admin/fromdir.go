package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkdata"
)

// ReadFromDir makes a configuration read the data directory of a ZooKeeper server that does not run, of Apache
// ZooKeeper or of the embedded one, instead of a cluster. Only what is stored in ZooKeeper is known then; no broker
// is asked. dir is one folder, several joined by commas, or one snapshot file; see zkdata.Open. What is damaged or
// missing in it is told to problem.
func (cfg *Config) ReadFromDir(dir, chroot string, problem func(string)) error {
	if dir == "" {
		return badInput("the data directory has no name")
	}
	cfg.Bootstrap, cfg.FromDir = nil, dir
	cfg.ZooKeeper = ZooKeeperAddress{Servers: []string{dir}, Chroot: chroot}
	cfg.ConnectZooKeeper = func(_ context.Context, _ ZooKeeperAddress, _ time.Duration, log *slog.Logger) (zkutil.Client, error) {
		zk, r, err := zkdata.Open(dir, chroot)
		if r != nil {
			for _, p := range r.Problems {
				problem(p)
			}
			log.Debug("read the data directory", "server", r.Server, "snapshot", r.Snapshot, "logs", strings.Join(r.Logs, ","), "applied", r.Applied, "zxid", fmt.Sprintf("0x%x", r.Zxid), "at", r.At, "nodes", r.Nodes)
		}
		if err != nil {
			return nil, dirError(dir, chroot, err)
		}
		return zk, nil
	}
	return nil
}

func dirError(dir, chroot string, err error) error {
	switch {
	case errors.Is(err, zkdata.ErrNoData):
		return &Error{Kind: BadInput, Msg: err.Error(), Hint: "name dataDir of zoo.cfg (or the version-2 inside it), or --data-dir of the embedded server"}
	case errors.Is(err, zkutil.ErrNoChroot):
		return &Error{Kind: NotFound, Msg: fmt.Sprintf("%s: the chroot %s does not exist", dir, chroot), Hint: "kctl zk ls / --from-dir " + dir + " shows what is there"}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &Error{Kind: BadInput, Msg: err.Error()}
	}
	return &Error{Kind: Failed, Msg: err.Error()}
}

// notOffline refuses to ask a broker when the cluster is a data directory.
func (c *Client) notOffline() error {
	if c.cfg.FromDir == "" {
		return nil
	}
	return &Error{
		Kind: Failed, Msg: "no broker is asked: the cluster is read from " + c.cfg.FromDir,
		Hint: "with --from-dir only what ZooKeeper stored is known; name a cluster with -b for the rest",
	}
}
