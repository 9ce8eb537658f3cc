package zk

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type watchOptions struct {
	f         *factory.Factory
	recursive bool
	watch     verb.Follow
}

func newWatch(f *factory.Factory) *cobra.Command {
	o := &watchOptions{f: f}
	cmd := &cobra.Command{
		Use:   "watch PATH...",
		Short: "Show changes of znodes as they happen",
		Long: `Print one line for each change of the named znodes: created, changed (its data), deleted, children (names that came or went);
with --recursive of everything below them too. With -o json one object a line. A node need not exist yet.

ZooKeeper's own watches are used; nothing is polled. A watch tells once, and the node is read and watched again, so that changes that
follow each other faster are one line, with their number. A lost connection and an expired session end nothing: everything
is read again then, compared with what was seen, and said (a line of stderr, or an object with event "gap").

Ends with exit 0 on Ctrl-C, after --count changes, or after --for.`,
		Example: `  kctl zk watch /controller /controller_epoch -z zk1:2181/kafka
  kctl zk watch /brokers/ids --recursive -z zk1:2181/kafka -o json | jq -r 'select(.event=="deleted")|.path'`,
		Args: verb.Args(1, -1, "paths"),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths := make([]string, len(args))
			for i, a := range args {
				p, err := admin.ZnodePath(a)
				if err != nil {
					return err
				}
				paths[i] = p
			}
			if err := o.watch.Check(); err != nil {
				return err
			}
			return runWatch(cmd.Context(), o, paths)
		},
		ValidArgsFunction: complete(f),
	}
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "r", false, "watch everything below, too")
	o.watch.AddFlags(cmd.Flags())
	return cmd
}

func runWatch(ctx context.Context, o *watchOptions, paths []string) error {
	c, err := client(ctx, o.f)
	if err != nil {
		return err
	}
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	var broken error // an output that takes no more ends the watch with the next change
	opts := admin.ZnodeWatchOptions{
		Paths: paths, Recursive: o.recursive,
		Armed: func(n int) { o.f.Say("kctl: watching %d znodes", n); o.watch.Armed() },
		Gap: func(why string) {
			o.f.Say("kctl: %s", why)
			if p.Format.Machine() {
				gap := rows.ZnodeEvent{Time: timeText(o.f.Now()), Event: "gap", Encoding: "null", Added: []string{}, Removed: []string{}, Why: why}
				broken = verb.Event(p, rows.ZnodeEventKind, gap, "")
			}
		},
		Changed: func(e admin.ZnodeEvent) error {
			r := eventRow(&e, o.f.Now())
			if err := errors.Join(broken, verb.Event(p, rows.ZnodeEventKind, r, r.Line())); err != nil {
				return err
			}
			return o.watch.Seen()
		},
	}
	ctx, stop := o.f.IO.UntilReaderGone(ctx)
	defer stop()
	return o.watch.Run(ctx, func(ctx context.Context) error { return c.WatchZnodes(ctx, opts) })
}

func timeText(t time.Time) string {
	if s := rows.TimeText(t); s != nil {
		return *s
	}
	return ""
}

func eventRow(e *admin.ZnodeEvent, at time.Time) rows.ZnodeEvent {
	r := rows.ZnodeEvent{
		Time: timeText(at), Event: e.Event, Path: e.Path, Encoding: "null", Skipped: e.Skipped,
		Added: append([]string{}, e.Added...), Removed: append([]string{}, e.Removed...),
	}
	if e.Znode == nil {
		return r
	}
	now := row(e.Znode)
	r.Version = &now.Version
	zxid := now.Mzxid
	switch e.Event {
	case admin.ZnodeCreated:
		zxid = now.Czxid
	case admin.ZnodeChildren:
		zxid = now.Pzxid
	}
	r.Zxid = &zxid
	if e.Event == admin.ZnodeCreated || e.Event == admin.ZnodeChanged {
		r.Data, r.Encoding = now.Data, now.Encoding
	}
	return r
}
