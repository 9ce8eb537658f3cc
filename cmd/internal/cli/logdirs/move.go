package logdirs

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type moveOptions struct {
	f       *factory.Factory
	targets []plan.Target
	broker  int
	to      string
	expect  string
	wait    time.Duration
	change  factory.ChangeFlags
}

func newMove(f *factory.Factory) *cobra.Command {
	o := &moveOptions{f: f, broker: -1}
	cmd := &cobra.Command{
		Use:   "move TOPIC[:P,..]... --broker ID --to DIR",
		Short: "Move replicas of one broker to another of its log directories",
		Long: `Have a broker copy replicas to another of its log directories and switch over when the copy is level. The
partitions stay available, leaders and replicas stay where they are. A topic without partitions means those of it
that the broker has. The plan is printed first; what would not fit on the volume is refused.

Naming the directory in which a replica is ends a move under way. For a replica that the broker does not have yet
the directory is kept in mind, until the broker restarts, for when it is made.

The broker copies in its own time, bounded by replica.alter.log.dirs.io.max.bytes.per.second. --wait waits for it;
Ctrl-C ends the waiting, not the move, and the same command waits again.`,
		Example: `  kctl log-dirs move orders:0 --broker 2 --to /data/b --dry-run
  kctl log-dirs move orders:0,3 --broker 2 --to /data/b --yes --wait 10m`,
		Args: verb.Args(1, -1, "partitions"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return runMove(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().IntVar(&o.broker, "broker", -1, "broker whose replicas move")
	cmd.Flags().StringVar(&o.to, "to", "", "log directory, as log-dirs describe shows it")
	cmd.Flags().StringVar(&o.expect, "expect", "", "directory in which the replicas must be, or on their way to, else nothing is moved")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "time to wait until the replicas are there (0: do not)")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	_ = cmd.RegisterFlagCompletionFunc("broker", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return verb.CompleteBrokers(f)(cmd, nil, word)
	})
	_ = cmd.RegisterFlagCompletionFunc("to", o.completeDirs)
	_ = cmd.RegisterFlagCompletionFunc("expect", o.completeDirs)
	return cmd
}

// completeDirs offers the directories of the broker that --broker names.
func (o *moveOptions) completeDirs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(cmd.Context(), patience)
	defer cancel()
	c, err := o.f.Admin(ctx)
	if err != nil || o.broker < 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dirs, _, err := c.LogDirs(ctx, admin.LogDirOptions{Brokers: []cluster.BrokerID{cluster.BrokerID(o.broker)}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for i := range dirs {
		if dirs[i].Online() {
			out = append(out, dirs[i].Path)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (o *moveOptions) parse(args []string) (err error) {
	switch {
	case o.broker < 0 || o.broker > 1<<31-1:
		return exit.Usagef("name the broker whose replicas move: --broker ID")
	case o.to == "":
		return exit.Usagef("name the directory to move to: --to DIR (log-dirs describe --broker %d shows them)", o.broker)
	case !path.IsAbs(o.to):
		return exit.Usagef("--to %s: the directories of brokers are absolute paths", o.to)
	case o.expect != "" && !path.IsAbs(o.expect):
		return exit.Usagef("--expect %s: the directories of brokers are absolute paths", o.expect)
	case o.wait < 0:
		return exit.Usagef("--wait %s is below zero", o.wait)
	}
	if o.targets, err = verb.Targets(args); err != nil {
		return err
	}
	return o.f.Writable()
}

func runMove(ctx context.Context, o *moveOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	moves, s, err := c.PlanDirMoves(ctx, cluster.BrokerID(o.broker), o.targets, o.to)
	if err != nil {
		return err
	}
	if o.expect != "" {
		if err := plan.ExpectDir(moves, o.expect); err != nil {
			return &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed"}
		}
	}
	writes, bytes := 0, int64(0)
	for i := range moves {
		if moves[i].Action.Writes() {
			writes, bytes = writes+1, bytes+moves[i].Size
		}
	}
	if writes == 0 && o.wait > 0 && !o.change.DryRun && slices.ContainsFunc(moves, func(m plan.DirMove) bool { return m.UnderWay() }) {
		return o.awaitEarlier(ctx, c, moves)
	}
	planned, refused := report(unsent(moves))
	return verb.Change[rows.DirMove]{
		Flags: o.change, Kind: rows.DirMoveKind, Plan: planned, Needed: writes,
		Fine: len(moves) - writes - len(refused), Refused: refused,
		What:     fmt.Sprintf("move %d of %d replicas of broker %d, %s", writes, len(moves), o.broker, rows.SizeText(bytes)),
		Question: fmt.Sprintf("move %d replica(s), %s?", writes, rows.SizeText(bytes)),
		Do: func() (verb.Outcome[rows.DirMove], error) {
			results, err := c.MoveDirs(ctx, moves)
			if err != nil {
				results = unsent(moves)
				for i := range results {
					results[i].Err = err.Error()
				}
				return verb.Outcome[rows.DirMove]{Entries: changes(s, results)}, err
			}
			o.f.Record(changes(s, results)...) // before the waiting, which may be cut short
			if o.wait > 0 {
				c.AwaitDirMoves(ctx, results, o.wait, o.progress())
			}
			out, problems := report(results)
			return verb.Outcome[rows.DirMove]{Rows: out, Problems: problems, Ended: o.open(results)}, nil
		},
	}.Run(o.f)
}

// awaitEarlier waits for moves that were all ordered before.
func (o *moveOptions) awaitEarlier(ctx context.Context, c *admin.Client, moves []plan.DirMove) error {
	o.f.Say("an earlier order moves the replicas: waiting for it")
	results, err := c.MoveDirs(ctx, moves) // sends nothing
	if err != nil {
		return err
	}
	c.AwaitDirMoves(ctx, results, o.wait, o.progress())
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	out, problems := report(results)
	if err := output.List(p, rows.DirMoveKind, out, rows.Errors(problems)); err != nil {
		return err
	}
	if err := o.open(results); err != nil || len(problems) == 0 {
		return err
	}
	return verb.NothingDone("", problems, "")
}

func unsent(moves []plan.DirMove) []admin.DirMoveResult {
	out := make([]admin.DirMoveResult, len(moves))
	for i := range moves {
		out[i].DirMove = moves[i]
	}
	return out
}

// open tells which moves go on after the waiting: they were ordered, so that nothing failed; exit code 3. Nil when one failed for
// good, which is the verdict then.
func (o *moveOptions) open(results []admin.DirMoveResult) error {
	var names []string
	for i := range results {
		r := &results[i]
		if r.Open {
			names = append(names, fmt.Sprintf("%s:%d", r.Topic, r.Partition))
		} else if r.Err != "" || r.Action == plan.DirRefused {
			return nil
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &exit.Error{
		Code: exit.Partial, Msg: fmt.Sprintf("%d of %d not done within %s, the moves go on: %s", len(names), len(results), o.wait, strings.Join(names, ", ")),
		Hint: "the same command waits again; kctl log-dirs describe --replicas shows how far they are",
	}
}

// progress says how far the copies are, at most every few seconds and only when something has changed.
func (o *moveOptions) progress() func(admin.DirProgress) {
	const every = 2 * time.Second
	var said time.Time
	var last admin.DirProgress
	return func(p admin.DirProgress) {
		now := o.f.Now()
		if p == last || now.Sub(said) < every {
			return
		}
		said, last = now, p
		o.f.Say("%d of %d replicas moved, %s of %s copied", p.Done, p.Moves, rows.SizeText(p.Copied), rows.SizeText(p.Bytes))
	}
}

// report is what became of every replica, and what is wrong with some.
func report(results []admin.DirMoveResult) (out []rows.DirMove, problems []model.Problem) {
	out = make([]rows.DirMove, len(results))
	for i := range results {
		r := &results[i]
		out[i] = rows.OfDirMove(&r.DirMove)
		out[i].Accepted, out[i].Done = r.Accepted, r.Done
		if r.Err != "" {
			out[i].Error = r.Err
		}
		if out[i].Error != "" {
			problems = append(problems, model.Problem{Object: fmt.Sprintf("%s:%d", r.Topic, r.Partition), Message: out[i].Error})
		}
	}
	return out, problems
}

// changes are the entries of the journal. The order that the broker took is the change: the copy may still go on.
func changes(s *model.Snapshot, results []admin.DirMoveResult) []factory.Change {
	var out []factory.Change
	for i := range results {
		r := &results[i]
		if !r.Action.Writes() {
			continue
		}
		object := fmt.Sprintf("%s:%d", r.Topic, r.Partition)
		ch := factory.Change{
			Cluster: s.ClusterID, Command: "log-dirs move", Object: fmt.Sprintf("%s on broker %d", object, r.Broker),
			Before: r.From, After: r.To, Result: journal.Done,
		}
		if r.Moving != "" {
			ch.Before += ", on its way to " + r.Moving
		}
		switch back := r.Bound(); {
		case r.Err != "":
			ch.Result = r.Err
		case back == "":
			ch.Undo = "none needed: the broker only keeps the directory in mind, until it restarts"
		default:
			ch = ch.WithUndo("log-dirs", "move", object, "--broker", fmt.Sprint(int32(r.Broker)), "--to", back, "--expect", r.To)
		}
		out = append(out, ch)
	}
	return out
}
