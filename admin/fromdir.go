package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkdata"
)

// dataDir is what is known of the directory that stands for the cluster. at is written while the client makes its
// connection, and read after it.
type dataDir struct {
	notice func(string)
	at     time.Time // last change that it holds; zero: unknown
}

// ReadFromDir makes a configuration read the data directory of a ZooKeeper server that does not run, of Apache
// ZooKeeper or of the embedded one, instead of a cluster. Only what is stored in ZooKeeper is known then; no broker
// is asked. dir is one folder, several joined by commas, or one snapshot or log file; see zkdata.Open. Which files the
// answer comes from, and what is damaged or missing in them, is told to notice.
func (cfg *Config) ReadFromDir(dir, chroot string, notice func(string)) error {
	if dir == "" {
		return badInput("the data directory has no name")
	}
	cfg.Bootstrap, cfg.FromDir, cfg.dir = nil, dir, &dataDir{notice: notice}
	cfg.ZooKeeper = ZooKeeperAddress{Servers: []string{dir}, Chroot: chroot}
	state := cfg.dir
	cfg.ConnectZooKeeper = func(_ context.Context, _ ZooKeeperAddress, _ time.Duration, log *slog.Logger) (zkutil.Client, error) {
		zk, r, err := zkdata.Open(dir, chroot)
		if r != nil {
			for _, p := range r.Problems {
				notice(p)
			}
			log.Debug("read the data directory", "server", r.Server, "snapshot", r.Snapshot, "logs", strings.Join(r.Logs, ","), "applied", r.Applied, "zxid", fmt.Sprintf("0x%x", r.Zxid), "at", r.At, "nodes", r.Nodes)
		}
		if err != nil {
			return nil, dirError(dir, chroot, err)
		}
		state.at = r.At
		notice(usedFiles(r))
		return zk, nil
	}
	return nil
}

// usedFiles says in one line where the answer comes from and how old it is.
func usedFiles(r *zkdata.Report) string {
	parts := []string{}
	if r.Snapshot != "" {
		parts = append(parts, filepath.Base(r.Snapshot))
	}
	for _, l := range r.Logs {
		parts = append(parts, filepath.Base(l))
	}
	text := "read from " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		text = "read an empty tree"
	}
	text += fmt.Sprintf(" of %s: %d znodes, last change 0x%x", r.Server, r.Nodes, r.Zxid)
	if !r.At.IsZero() {
		text += " at " + r.At.UTC().Format(time.RFC3339)
	}
	return text
}

func dirError(dir, chroot string, err error) error {
	switch {
	case errors.Is(err, zkdata.ErrNoData):
		return &Error{Kind: BadInput, Msg: err.Error(), Hint: "name dataDir of zoo.cfg (or the version-2 inside it), --data-dir of the embedded server, or one snapshot.* or log.* file"}
	case errors.Is(err, zkutil.ErrNoChroot):
		return &Error{Kind: NotFound, Msg: fmt.Sprintf("%s: the chroot %s does not exist", dir, chroot), Hint: "kctl zk ls / --from-dir " + dir + " shows what is there"}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &Error{Kind: BadInput, Msg: err.Error()}
	}
	return &Error{Kind: Failed, Msg: err.Error()}
}

// offline reports whether the cluster is a data directory.
func (c *Client) offline() bool { return c.cfg.FromDir != "" }

// notOffline refuses to ask a broker when the cluster is a data directory.
func (c *Client) notOffline() error {
	if !c.offline() {
		return nil
	}
	return &Error{
		Kind: Failed, Msg: "no broker is asked: the cluster is read from " + c.cfg.FromDir,
		Hint: "with --from-dir only what ZooKeeper stored is known; name a cluster with -b for the rest",
	}
}

// nothingToWatch refuses to wait for changes of a data directory.
func (c *Client) nothingToWatch() error {
	if !c.offline() {
		return nil
	}
	return badInput("the files of %s do not change: there is nothing to watch", c.cfg.FromDir)
}

// unasked is the reason for what is left out of an answer from a directory.
func (c *Client) unasked() string {
	return "no broker is asked: the cluster is read from " + c.cfg.FromDir
}

// lastMoment is the time by which ages are judged in a directory: that of its last change, since the days that it lay
// on a disk made nothing stuck. Before the directory was read it is the present.
func (c *Client) lastMoment() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.dir == nil || c.cfg.dir.at.IsZero() {
		return time.Now()
	}
	return c.cfg.dir.at
}

// tell says something about what is stored beside the answer.
func (c *Client) tell(format string, args ...any) {
	c.mu.Lock()
	notice := c.stored
	c.mu.Unlock()
	if c.cfg.dir != nil {
		notice = c.cfg.dir.notice
	}
	if notice != nil {
		notice(fmt.Sprintf(format, args...))
	}
}
