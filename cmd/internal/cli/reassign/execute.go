package reassign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan/reassign"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

// runFlags are those of every verb that executes a plan.
type runFlags struct {
	throttle, batchBytes string
	batch                int
	via                  string
	interval             time.Duration
	change               factory.ChangeFlags

	rate, bytes int64
}

func (r *runFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.throttle, "throttle", "", "bytes per second that each broker may copy, such as 50M; removed at the end")
	fs.IntVar(&r.batch, "batch-size", 0, "most partitions at once (0: all)")
	fs.StringVar(&r.batchBytes, "batch-bytes", "", "most bytes to copy at once, such as 100G")
	fs.StringVar(&r.via, "via", admin.ViaAuto, viaUsage)
	fs.DurationVar(&r.interval, "interval", 500*time.Millisecond, "time between looks at the cluster")
	factory.AddChangeFlags(fs, &r.change)
}

func (r *runFlags) parse() (err error) {
	if r.rate, err = sizeFlag("throttle", r.throttle); err != nil {
		return err
	}
	if r.bytes, err = sizeFlag("batch-bytes", r.batchBytes); err != nil {
		return err
	}
	if r.throttle != "" && r.rate == 0 {
		return exit.Usagef("--throttle 0 would stop replication; leave it out for no throttle")
	}
	if r.batch < 0 {
		return exit.Usagef("--batch-size %d is below zero", r.batch)
	}
	if r.interval <= 0 {
		return exit.Usagef("--interval %s is not above zero", r.interval)
	}
	return checkVia(r.via)
}

type executeOptions struct {
	runFlags
	f            *factory.Factory
	command      string // for the journal
	file         string
	entries      []reassign.Entry
	resume       bool
	override     bool
	allowOffline bool
	rollback     string
	first        func() error // before a new run starts
}

func newExecute(f *factory.Factory) *cobra.Command {
	o := &executeOptions{f: f, command: "reassign execute"}
	cmd := &cobra.Command{
		Use:   "execute [FILE]",
		Short: "Carry out a plan in batches; the same command again resumes it",
		Long: `Carry out a plan file, that of reassign generate or of Kafka's tool. Before anything is sent the whole plan is checked:
topics, partitions and brokers exist, no new replica goes to a dead broker, no reassignment is under way that would be
replaced (--override does). Then a rollback file is written, with the replicas as they are, their order and their
directories, and the plan is printed.

A batch is asked for, watched until each of its partitions is as wanted, and only then the next. How far the run is
stands in a state file: after Ctrl-C, kill -9 or a lost connection the same command goes on where it was, and
--resume without a file goes on with the only run that was interrupted.

--throttle adds the moving replicas to leader. and follower.replication.throttled.replicas of their topics, and sets the
rates on the live brokers. What others have set there stays. At the end exactly what this run has set is removed.

A bar on a terminal, lines elsewhere, show bytes, rate and time left. Exit code 3: some partitions are not as wanted.`,
		Example: `  kctl reassign execute plan.json --throttle 50M --batch-size 20
  kctl reassign execute plan.json --dry-run
  kctl reassign execute --resume`,
		Args: verb.Args(0, 1, "a plan file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseArgs(args); err != nil {
				return err
			}
			return runExecute(cmd.Context(), o)
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.resume, "resume", false, "go on with a run that was interrupted; it must exist")
	cmd.Flags().BoolVar(&o.override, "override", false, "replace reassignments that are under way")
	cmd.Flags().BoolVar(&o.allowOffline, "allow-offline", false, "keep replicas on brokers that are down")
	cmd.Flags().StringVar(&o.rollback, "rollback-file", "", "where the way back is written (default: beside the plan)")
	return cmd
}

func (o *executeOptions) parseArgs(args []string) (err error) {
	if len(args) == 0 && !o.resume {
		return exit.Usagef("kctl reassign execute needs a plan file, or --resume")
	}
	if err := o.parse(); err != nil {
		return err
	}
	if len(args) > 0 {
		o.file = args[0]
		if o.entries, err = readPlan(o.file); err != nil {
			return err
		}
	}
	return o.f.Writable()
}

func runExecute(ctx context.Context, o *executeOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	via, _, err := c.ReassignVia(ctx, o.via)
	if err != nil {
		return err
	}
	view, s, copies, problems, err := c.ReassignSnapshot(ctx, via, o.topics())
	if err != nil {
		return err
	}
	for _, p := range problems {
		o.f.Say("warning: sizes on %s are not known: %s", p.Object, p.Message)
	}
	st := openStore(o.f, s.ClusterID)
	run, err := o.interrupted(st)
	if err != nil {
		return err
	}
	resumed := run != nil
	if !resumed {
		if run, err = o.start(st, view, copies); err != nil || run == nil {
			return err
		}
		run.Via = via
	}
	o.settings(run, resumed)
	left := len(run.Left())
	what := fmt.Sprintf("reassign %d partition(s)", left)
	return verb.Change[rows.ReassignmentStep]{
		Flags: o.change, Kind: rows.ReassignmentStepKind, Plan: stepRows(run.Steps), Fine: len(run.Steps) - left,
		Needed:   max(left, 1), // a run that died behind its last step still has its throttles to remove
		Question: what + "?",
		ShowPlan: func() error { return o.showPlan(run, resumed) },
		Do:       func() (verb.Outcome[rows.ReassignmentStep], error) { return o.do(ctx, c, st, run, resumed) },
	}.Run(o.f)
}

// do begins the run, or takes it up again, and carries it out while it holds its lock.
func (o *executeOptions) do(ctx context.Context, c *admin.Client, st *store, run *reassign.Run, resumed bool) (out verb.Outcome[rows.ReassignmentStep], err error) {
	unlock, err := st.lock(run.Plan)
	if err != nil {
		return out, err
	}
	defer unlock()
	if o.first != nil {
		if err := o.first(); err != nil {
			return out, err
		}
	}
	if !resumed {
		if err := o.begin(st, run); err != nil {
			return out, err
		}
	}
	return o.carryOut(ctx, c, st, run, resumed), nil
}

// topics of the plan; all when the plan comes from a state.
func (o *executeOptions) topics() []string {
	if o.entries == nil {
		return nil
	}
	return topicsOf(o.entries)
}

// interrupted finds the run to go on with, nil when a new one starts.
func (o *executeOptions) interrupted(st *store) (*reassign.Run, error) {
	if o.file != "" {
		run, err := st.load(identity(o.entries))
		if err != nil {
			return nil, err
		}
		if run != nil && run.Outcome == reassign.Unfinished {
			run.Reset()
			return run, nil
		}
		if o.resume {
			return nil, exit.Usagef("no run of %s was interrupted", o.file)
		}
		return nil, nil
	}
	var open []*reassign.Run
	var files []string
	for _, r := range st.unfinished("") {
		if r.Outcome == reassign.Unfinished {
			open = append(open, r)
			files = append(files, r.File)
		}
	}
	switch len(open) {
	case 0:
		return nil, exit.Usagef("no run on this cluster was interrupted")
	case 1:
		open[0].Reset()
		o.file = open[0].File
		return open[0], nil
	}
	return nil, exit.Usagef("several runs were interrupted, name one: %s", strings.Join(files, ", "))
}

// start checks the plan and makes a new run; nil when there is nothing to do.
func (o *executeOptions) start(st *store, view *reassign.View, copies admin.Copies) (*reassign.Run, error) {
	checked := reassign.Check(settled(o.entries, view, copies), *view, reassign.Options{Override: o.override, AllowOffline: o.allowOffline})
	if n := len(checked.Refused); n > 0 {
		const shown = 10
		list := checked.Refused[:min(n, shown)]
		msg := fmt.Sprintf("%s: nothing was changed: %s", o.file, strings.Join(list, "; "))
		if n > shown {
			msg += fmt.Sprintf("; and %d more", n-shown)
		}
		e := &exit.Error{Code: exit.Usage, Msg: msg}
		if strings.Contains(msg, "being reassigned") {
			e.Hint = "kctl reassign status shows what is under way; --override replaces it"
		}
		return nil, e
	}
	for _, w := range checked.Warnings {
		o.f.Say("warning: %s", w)
	}
	if n := len(checked.Unchanged); n > 0 {
		o.f.Say("%d partition(s) are as wanted already, %s first", n, reassign.Name(checked.Unchanged[0]))
	}
	if n := len(checked.Busy); n > 0 {
		o.f.Say("%d reassignment(s) that are under way will be replaced, %s first", n, reassign.Name(checked.Busy[0]))
	}
	if len(checked.Steps) == 0 {
		return nil, verb.List(o.f, rows.ReassignmentStepKind, nil, nil)
	}
	run := reassign.NewRun(checked.Steps, func(tp cluster.TopicPartition, id cluster.BrokerID) string { return copies.Dir(tp, id) })
	run.Cluster, run.Plan, run.File = st.cluster, identity(o.entries), absolute(o.file)
	old, err := st.load(run.Plan)
	if err != nil {
		return nil, err
	}
	if old != nil {
		run.Marks = old.Marks // throttles that an earlier run could not remove
	}
	return run, nil
}

// settled leaves out the directories of entries whose replicas are all there and in place.
func settled(entries []reassign.Entry, view *reassign.View, copies admin.Copies) []reassign.Entry {
	out := slices.Clone(entries)
	for i := range out {
		e := &out[i]
		seen := view.PartOf(e.TP())
		inPlace := slices.Equal(seen.Replicas, e.Replicas)
		for _, id := range e.Replicas {
			c := copies[e.TP()][id]
			inPlace = inPlace && (e.Dir(id) == reassign.AnyDir || c.Dir == e.Dir(id) && c.Future == "")
		}
		if inPlace {
			e.LogDirs = nil
		}
	}
	return out
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// settings puts the flags into a run; of a resumed one only those that were given.
func (o *executeOptions) settings(run *reassign.Run, resumed bool) {
	if !resumed || o.rate > 0 {
		run.Throttle = o.rate
	}
	if !resumed || o.batch > 0 {
		run.BatchParts = o.batch
	}
	if !resumed || o.bytes > 0 {
		run.BatchBytes = o.bytes
	}
}

func stepRows(steps []reassign.RunStep) []rows.ReassignmentStep {
	out := make([]rows.ReassignmentStep, len(steps))
	for i := range steps {
		out[i] = stepRow(&steps[i])
	}
	return out
}

// showPlan says what will be done, of a run that is taken up again what is left of it.
func (o *executeOptions) showPlan(run *reassign.Run, resumed bool) error {
	left := run.Left()
	if o.change.DryRun {
		o.f.Say("dry run: %d partition(s) would be reassigned", len(left))
		return nil
	}
	if o.f.Machine() {
		return nil
	}
	if resumed {
		o.f.Say("resuming the run of %s: %d of %d partition(s) are done", run.File, len(run.Steps)-len(left), len(run.Steps))
	}
	o.f.Say("will reassign:")
	open := slices.DeleteFunc(slices.Clone(run.Steps), func(s reassign.RunStep) bool { return s.Done })
	steps := stepRows(open)
	p, uncounted := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}, ""
	if slices.ContainsFunc(steps, func(s rows.ReassignmentStep) bool { return len(s.LogDirs) > 0 }) {
		p.Format, uncounted = output.Wide, " (and what moves between directories of one broker)"
	}
	if err := output.List(p, rows.ReassignmentStepKind, steps, nil); err != nil {
		return err
	}
	var bytes int64
	for i := range left {
		bytes += left[i].Bytes
	}
	throttle := "no throttle"
	if run.Throttle > 0 {
		throttle = "throttle " + reassign.Size(run.Throttle) + "/s"
	}
	o.f.Say("%s to copy%s in %d batch(es), %s", reassign.Size(bytes), uncounted, len(reassign.Batches(left, run.BatchParts, run.BatchBytes)), throttle)
	return nil
}

// begin writes the rollback file and the first state, and notes the change in the journal.
func (o *executeOptions) begin(st *store, run *reassign.Run) error {
	path, err := writeRollback(o.rollback, run)
	if err != nil {
		return exit.Usagef("write the rollback file, nothing was changed: %v", err)
	}
	run.Rollback, run.Started = path, o.f.Now().UTC()
	o.f.Say("the way back is in %s", path)
	if err := st.save(run); err != nil {
		return exit.Usagef("write the state of the run, nothing was changed: %v", err)
	}
	o.f.Record(o.entry(st, run))
	return nil
}

// entry tells of a run in the journal. It stands there before the first step, since the way back is open from then on.
func (o *executeOptions) entry(st *store, run *reassign.Run) factory.Change {
	return factory.Change{
		Cluster: st.cluster, Command: o.command, Object: run.File, Before: "as in " + run.Rollback,
		After: fmt.Sprintf("%d partition(s) reassigned", len(run.Steps)), Result: journal.Done,
	}.WithUndo("reassign", "rollback", run.File)
}

// writeRollback writes the way back beside the plan, never over a file that is there.
func writeRollback(path string, run *reassign.Run) (string, error) {
	data := append(reassign.Encode(run.RollbackEntries()), '\n')
	given := path != ""
	base := strings.TrimSuffix(run.File, ".json")
	for n := 1; ; n++ {
		if !given {
			path = base + ".rollback.json"
			if n > 1 {
				path = base + ".rollback-" + strconv.Itoa(n) + ".json"
			}
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) && !given {
			continue
		}
		if err != nil {
			return "", err
		}
		_, werr := file.Write(data)
		return absolute(path), errors.Join(werr, file.Sync(), file.Close())
	}
}

// carryOut executes a run. The entry that it began with is not the last word where it did not end well, nor where it was
// taken up again after that.
func (o *executeOptions) carryOut(ctx context.Context, c *admin.Client, st *store, run *reassign.Run, resumed bool) (out verb.Outcome[rows.ReassignmentStep]) {
	bar := &progress{f: o.f}
	err := c.ExecuteReassign(ctx, run, admin.ReassignOptions{
		Save: st.save, Report: bar.show, Warn: bar.warn, Others: st.unfinished(run.Plan), Override: o.override, Interval: o.interval,
	})
	bar.end()
	done := len(run.Steps) - len(run.Left())
	for i := range run.Steps {
		if s := &run.Steps[i]; s.Error != "" {
			out.Problems = append(out.Problems, model.Problem{Object: reassign.Name(s.TP()), Message: s.Error})
		}
	}
	out.Rows = stepRows(run.Steps)
	entry := o.entry(st, run)
	switch {
	case err == nil && resumed:
		out.Entries = []factory.Change{entry}
	case errors.Is(err, admin.ErrReassignPartly):
		entry.Result = fmt.Sprintf("%d of %d partition(s) are as wanted: %v", done, len(run.Steps), err)
		out.Entries = []factory.Change{entry}
		if done == 0 {
			out.Ended = verb.NothingDone("no partition is as wanted: ", out.Problems, "")
		}
	case err != nil:
		out.Ended = o.stopped(ctx, run, done, err)
		entry.Result = out.Ended.Error()
		out.Entries = []factory.Change{entry}
	}
	return out
}

// stopped explains a run that did not come to its end.
func (o *executeOptions) stopped(ctx context.Context, run *reassign.Run, done int, err error) error {
	e := &exit.Error{Code: exit.CodeOf(err), Msg: err.Error(), Hint: exit.HintOf(err)}
	if ctx.Err() != nil {
		e.Code = exit.Partial
		e.Msg = fmt.Sprintf("stopped with %d of %d partition(s) done; the cluster goes on with those under way", done, len(run.Steps))
		if len(run.Marks) > 0 {
			e.Msg += ", and the throttle stays"
		}
	}
	if e.Hint == "" && done < len(run.Steps) {
		e.Hint = "kctl reassign execute --resume goes on; kctl reassign cancel " + run.File + " stops it"
	}
	return e
}
