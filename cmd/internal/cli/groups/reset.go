package groups

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type resetOptions struct {
	f         *factory.Factory
	opts      admin.ResetOptions
	topics    []string
	allTopics bool
	earliest  bool
	latest    bool
	current   bool
	datetime  string
	duration  string
	offset    int64
	shift     int64
	file      string
	expect    string
	expected  []plan.OffsetRow
	export    string
	execute   bool
	change    factory.ChangeFlags
}

func newReset(f *factory.Factory) *cobra.Command {
	o := &resetOptions{f: f}
	cmd := &cobra.Command{
		Use:   "reset-offsets GROUP... (--topic T[:P,..]... | --all-topics) (--to-earliest | --to-latest | ...)",
		Short: "Choose anew where groups go on reading",
		Long: `Choose new committed offsets for groups that have no members, in every way that kafka-consumer-groups.sh knows. The plan
is printed; nothing is written without --execute (or --yes). An offset outside the log becomes the log's nearest end,
and the row says so. A group that is active is refused, with the names of its members.

--from-file reads and --export writes the CSV of kafka-consumer-groups.sh: topic,partition,offset, with the group in
front when there are several. The old offsets are kept in such a file, and kctl history names the command that
brings them back; with --expect it does nothing once the group has read on.`,
		Example: `  kctl groups reset-offsets audit --topic orders --to-earliest
  kctl groups reset-offsets audit --topic orders:0,3 --shift-by -100 --execute
  kctl groups reset-offsets audit --all-topics --to-datetime 2024-05-01T10:00:00.000 --execute
  kctl groups reset-offsets audit --all-topics --by-duration PT2H
  kctl groups reset-offsets audit --all-topics --to-current --export backup.csv
  kctl groups reset-offsets audit --from-file backup.csv --execute`,
		Args: verb.Args(1, -1, "at least one group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(cmd.Flags(), args); err != nil {
				return err
			}
			return runReset(cmd.Context(), o)
		},
		ValidArgsFunction: Complete(f),
	}
	o.flags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("topic", verb.CompleteTopics(f)) // the only error is a flag that does not exist
	return cmd
}

func (o *resetOptions) flags(fl *pflag.FlagSet) {
	fl.StringArrayVar(&o.topics, "topic", nil, "a topic, or some of its partitions (TOPIC:0,1); repeatable")
	fl.BoolVar(&o.allTopics, "all-topics", false, "every partition that the group has an offset of")
	fl.BoolVar(&o.earliest, "to-earliest", false, "the start of the log")
	fl.BoolVar(&o.latest, "to-latest", false, "the end of the log")
	fl.BoolVar(&o.current, "to-current", false, "what is committed now; the end of the log where nothing is")
	fl.StringVar(&o.datetime, "to-datetime", "", "the first record from this time on, such as 2024-05-01T10:00:00.000 (UTC without a zone)")
	fl.StringVar(&o.duration, "by-duration", "", "the first record not older than this, such as PT2H30M, 90m or 7d")
	fl.Int64Var(&o.shift, "shift-by", 0, "so many records further, or back when below 0")
	fl.Int64Var(&o.offset, "to-offset", 0, "this offset in each partition")
	fl.StringVar(&o.file, "from-file", "", "the offsets in this CSV file (- is stdin)")
	fl.StringVar(&o.expect, "expect", "", "only while the offsets are those in this CSV file, or what they are to become")
	fl.StringVar(&o.export, "export", "", "write the new offsets as CSV to this file (- is stdout, instead of the table)")
	fl.BoolVar(&o.execute, "execute", false, "write the new offsets")
	factory.AddChangeFlags(fl, &o.change)
	fl.Lookup("yes").Usage = "the same as --execute"
	fl.Lookup("dry-run").Usage = "print the plan only (the default without --execute)"
}

// strategies are the flags of which one must be given.
var strategies = []plan.ResetStrategy{
	plan.ToEarliest, plan.ToLatest, plan.ToDatetime, plan.ByDuration, plan.ShiftBy, plan.ToOffset, plan.ToCurrent, plan.FromFile,
}

func (o *resetOptions) parse(fl *pflag.FlagSet, args []string) (err error) {
	if o.opts.Groups, err = names(args); err != nil {
		return err
	}
	var given []string
	for _, s := range strategies {
		if fl.Changed(string(s)) && fl.Lookup(string(s)).Value.String() != "false" {
			o.opts.Reset.Strategy = s
			given = append(given, "--"+string(s))
		}
	}
	if len(given) != 1 {
		all := make([]string, len(strategies))
		for i, s := range strategies {
			all[i] = "--" + string(s)
		}
		return exit.Usagef("choose exactly one of %s (given: %d)", strings.Join(all, ", "), len(given))
	}
	switch {
	case len(o.topics) > 0 && o.allTopics:
		return exit.Usagef("--topic excludes --all-topics")
	case len(o.topics) == 0 && !o.allTopics && o.file == "":
		return exit.Usagef("say which topics: --topic T[:P,..], repeatable, or --all-topics")
	}
	if o.opts.Targets, err = verb.Targets(o.topics); err != nil {
		return err
	}
	if err := o.parseValue(); err != nil {
		return err
	}
	if o.expect != "" {
		if o.expected, err = o.readOffsets("--expect", o.expect); err != nil {
			return err
		}
	}
	o.execute = (o.execute || o.change.Yes) && !o.change.DryRun
	if o.execute {
		return o.f.Writable()
	}
	return nil
}

func (o *resetOptions) parseValue() (err error) {
	r := &o.opts.Reset
	switch r.Strategy {
	case plan.ToDatetime:
		o.opts.At, err = plan.ParseTime(o.datetime)
	case plan.ByDuration:
		var d time.Duration
		d, err = plan.ParseDuration(o.duration)
		o.opts.At = o.f.Now().Add(-d)
	case plan.ShiftBy:
		r.Offset = o.shift
	case plan.ToOffset:
		if r.Offset = o.offset; o.offset < 0 {
			return exit.Usagef("--to-offset %d is below 0", o.offset)
		}
	case plan.FromFile:
		return o.readFile()
	}
	if err != nil {
		return exit.Usagef("--%s: %v", r.Strategy, err)
	}
	return nil
}

// offsetsFileMax bounds a file of offsets: a hundred thousand partitions are below 30 MiB.
const offsetsFileMax = 64 << 20

// readOffsets reads the CSV file that a flag names; - is stdin.
func (o *resetOptions) readOffsets(flag, path string) ([]plan.OffsetRow, error) {
	var in io.Reader = o.f.IO.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, exit.Usagef("%s: %v", flag, err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, offsetsFileMax+1))
	if err == nil && len(data) > offsetsFileMax {
		err = fmt.Errorf("it is longer than %d bytes", offsetsFileMax)
	}
	var out []plan.OffsetRow
	if err == nil {
		out, err = plan.ParseOffsets(string(data))
	}
	if err != nil {
		return nil, exit.Usagef("%s %s: %v", flag, path, err)
	}
	return out, nil
}

func (o *resetOptions) readFile() (err error) {
	if o.opts.File, err = o.readOffsets("--from-file", o.file); err != nil {
		return err
	}
	if o.opts.File[0].Group == "" {
		if len(o.opts.Groups) > 1 {
			return exit.Usagef("--from-file %s: with several groups the form is group,topic,partition,offset", o.file)
		}
		return nil
	}
	for _, g := range o.opts.Groups {
		found := false
		for _, r := range o.opts.File {
			found = found || r.Group == g
		}
		if !found {
			return exit.Usagef("--from-file %s: it has no line of group %q", o.file, g)
		}
	}
	return nil
}

func runReset(ctx context.Context, o *resetOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	p, err := c.PlanReset(ctx, o.opts)
	if err != nil {
		return err
	}
	if err := o.known(p); err != nil {
		return err
	}
	if o.execute || o.opts.Reset.Strategy != plan.ToCurrent {
		if err := busy(p.Groups); err != nil {
			return err
		}
	}
	if err := plan.CheckExpectedOffsets(p.Moves, o.expected); err != nil {
		return &exit.Error{Code: exit.Failed, Msg: err.Error(), Hint: "leave --expect out to reset them all the same"}
	}
	return o.changeOf(ctx, c, p).Run(o.f)
}

// changeOf is the change that makes the moves of a plan. --execute is the consent, as in Kafka's tool: without it this is a dry run.
func (o *resetOptions) changeOf(ctx context.Context, c *admin.Client, p *admin.ResetPlan) verb.Change[rows.OffsetReset] {
	out := make([]rows.OffsetReset, len(p.Moves))
	needed := 0
	for i, m := range p.Moves {
		if out[i] = rows.OfOffsetMove(m); m.Changes() {
			needed++
		}
	}
	refused := offsetProblems(out)
	change := verb.Change[rows.OffsetReset]{
		Flags: factory.ChangeFlags{Yes: true, DryRun: !o.execute}, Kind: rows.OffsetResetKind, Plan: out,
		Needed: needed, Fine: len(out) - needed - len(refused), Refused: refused, What: fmt.Sprintf("reset %d of %d offset(s)", needed, len(out)),
		Do:     func() (verb.Outcome[rows.OffsetReset], error) { return o.commit(ctx, c, p, out) },
		Answer: o.answer,
	}
	switch {
	case !o.execute:
		change.What += "; nothing is written without --execute"
	case needed == 0:
		settle(out, nil)
	}
	return change
}

// known refuses a group without anything to reset: its name is most likely mistyped.
func (o *resetOptions) known(p *admin.ResetPlan) error {
	has := map[string]bool{}
	for _, m := range p.Moves {
		has[m.Group] = true
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		switch {
		case g.Type == model.GroupShare:
			return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("group %s is a share group: it commits no offsets", g.ID)}
		case g.State == model.GroupDead && !has[g.ID]:
			return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("group %s does not exist", g.ID), Hint: "kctl groups list shows the groups; with --topic its offsets are made"}
		case !has[g.ID]:
			return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("group %s has no committed offsets", g.ID), Hint: "name topics with --topic"}
		case g.State == model.GroupDead:
			o.f.Say("group %s does not exist yet: a commit makes it", g.ID)
		}
	}
	return nil
}

// commit keeps the old offsets and commits the new ones.
func (o *resetOptions) commit(ctx context.Context, c *admin.Client, p *admin.ResetPlan, out []rows.OffsetReset) (done verb.Outcome[rows.OffsetReset], err error) {
	var changes []admin.OffsetChange
	restore, drop := map[string][]string{}, map[string][]string{} // by group: how changed and new offsets are taken back
	for i := range p.Groups {
		id := p.Groups[i].ID
		var old, next []model.CommittedOffset
		for _, m := range p.Moves {
			if m.Group != id || !m.Changes() {
				continue
			}
			changes = append(changes, admin.OffsetChange{Group: id, Topic: m.Topic, Partition: m.Partition, Offset: m.To})
			if m.From >= 0 {
				old = append(old, model.CommittedOffset{Topic: m.Topic, Partition: m.Partition, Offset: m.From})
				next = append(next, model.CommittedOffset{Topic: m.Topic, Partition: m.Partition, Offset: m.To})
				continue
			}
			if drop[id] == nil {
				drop[id] = []string{"groups", "delete-offsets", id}
			}
			drop[id] = append(drop[id], "--topic", fmt.Sprintf("%s:%d", m.Topic, m.Partition))
		}
		if restore[id], err = keepBoth(o.f, id, old, next); err != nil {
			return done, &exit.Error{Code: exit.Failed, Msg: "nothing was changed: " + err.Error()}
		}
	}
	results := c.CommitOffsets(ctx, changes)
	settle(out, results)
	for i := range p.Groups {
		id := p.Groups[i].ID
		done.Entries = append(done.Entries, entries(p.ClusterID, "groups reset-offsets", id, results, p.Committed[id], restore[id], drop[id])...)
	}
	done.Rows, done.Problems = out, offsetProblems(out)
	return done, nil
}

// settle writes results into the rows. A row that needed no change is done.
func settle(out []rows.OffsetReset, results []admin.OffsetChange) {
	type key struct {
		group, topic string
		partition    int32
	}
	said := map[key]string{}
	for _, r := range results {
		said[key{r.Group, r.Topic, r.Partition}] = r.Err
	}
	for i := range out {
		r := &out[i]
		if err, ok := said[key{r.Group, r.Topic, r.Partition}]; ok {
			r.Error = err
		}
		r.Done = r.Error == ""
	}
}

// entries makes the journal's entries of one group: one for offsets that were there before, one for those that were not, and
// one for what was refused. Each has its own way back.
func entries(clusterID, command, group string, results []admin.OffsetChange, committed []model.CommittedOffset, restore, drop []string) []factory.Change {
	old := map[string]int64{}
	for _, off := range committed {
		old[fmt.Sprintf("%s:%d", off.Topic, off.Partition)] = off.Offset
	}
	made := map[string]*factory.Change{}
	for _, r := range results {
		if r.Group != group {
			continue
		}
		tp := fmt.Sprintf("%s:%d", r.Topic, r.Partition)
		was, had := old[tp]
		key, result := "new", journal.Done
		switch {
		case r.Err != "":
			key, result = "refused", r.Err
		case had:
			key = "changed"
		}
		if made[key] == nil {
			object := "group " + group
			if key != "changed" {
				object += ", offsets " + key // an entry is named by its object
			}
			made[key] = &factory.Change{Cluster: clusterID, Command: command, Object: object, Result: result}
		}
		before, after := "none", "none"
		if had {
			before = fmt.Sprint(was)
		}
		if r.Offset >= 0 {
			after = fmt.Sprint(r.Offset)
		}
		ch := made[key]
		ch.Before, ch.After = joined(ch.Before, tp+"="+before), joined(ch.After, tp+"="+after)
	}
	var out []factory.Change
	for _, e := range []struct {
		key  string
		undo []string
	}{{"changed", restore}, {"new", drop}, {"refused", nil}} {
		if made[e.key] != nil {
			out = append(out, undoable(*made[e.key], e.undo))
		}
	}
	return out
}

func joined(list, item string) string { return strings.TrimPrefix(list+" "+item, " ") }

// answer prints the rows, or the CSV.
func (o *resetOptions) answer(p *output.Printer, out []rows.OffsetReset, errs []rows.ErrorRow) error {
	if o.export != "" {
		if err := o.writeExport(out); err != nil || o.export == "-" {
			return err
		}
	}
	return output.List(p, rows.OffsetResetKind, out, errs)
}

func offsetProblems(out []rows.OffsetReset) []model.Problem {
	var problems []model.Problem
	for _, r := range out {
		if r.Error != "" {
			problems = append(problems, model.Problem{Object: fmt.Sprintf("group %s %s:%d", r.Group, r.Topic, r.Partition), Message: r.Error})
		}
	}
	return problems
}

func (o *resetOptions) writeExport(out []rows.OffsetReset) error {
	var csv []plan.OffsetRow
	for _, r := range out {
		if r.To >= 0 {
			csv = append(csv, plan.OffsetRow{Group: r.Group, Topic: r.Topic, Partition: r.Partition, Offset: r.To})
		}
	}
	text := plan.FormatOffsets(csv, len(o.opts.Groups) > 1)
	if o.export == "-" {
		_, err := io.WriteString(o.f.IO.Out, text)
		return err
	}
	return os.WriteFile(o.export, []byte(text), 0o644)
}
