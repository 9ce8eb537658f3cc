package groups

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

type deleteOffsetsOptions struct {
	f         *factory.Factory
	group     string
	topics    []string
	allTopics bool
	targets   []plan.Target
	change    factory.ChangeFlags
}

func newDeleteOffsets(f *factory.Factory) *cobra.Command {
	o := &deleteOffsetsOptions{f: f}
	cmd := &cobra.Command{
		Use:   "delete-offsets GROUP (--topic T[:P,..]... | --all-topics)",
		Short: "Make a group forget committed offsets",
		Long: `Delete committed offsets of a group: of topics that were deleted, or that the group reads no more. The coordinator
refuses topics that a member subscribes to. The old offsets are kept in a file beside the journal (kctl history).`,
		Example: `  kctl groups delete-offsets audit --topic old-orders
  kctl groups delete-offsets audit --topic orders:0,3 --yes`,
		Args: verb.Args(1, 1, "one group"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ids, err := names(args)
			if err != nil {
				return err
			}
			o.group = ids[0]
			if (len(o.topics) > 0) == o.allTopics {
				return exit.Usagef("say which topics: either --topic T[:P,..], repeatable, or --all-topics")
			}
			if o.targets, err = verb.Targets(o.topics); err != nil {
				return err
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runDeleteOffsets(cmd.Context(), o)
		},
		ValidArgsFunction: Complete(f),
	}
	cmd.Flags().StringArrayVar(&o.topics, "topic", nil, "a topic, or some of its partitions (TOPIC:0,1); repeatable")
	cmd.Flags().BoolVar(&o.allTopics, "all-topics", false, "every offset that the group has")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	_ = cmd.RegisterFlagCompletionFunc("topic", verb.CompleteTopics(f)) // the only error is a flag that does not exist
	return cmd
}

func runDeleteOffsets(ctx context.Context, o *deleteOffsetsOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	committed, errs := c.CommittedOffsets(ctx, []string{o.group})
	if err := errs[o.group]; err != nil {
		return err
	}
	old, err := o.choose(committed[o.group])
	if err != nil {
		return err
	}
	out := make([]rows.OffsetReset, len(old))
	changes := make([]admin.OffsetChange, len(old))
	for i, off := range old {
		out[i] = rows.OffsetReset{Group: o.group, Topic: off.Topic, Partition: off.Partition, From: off.Offset, To: -1, LagRecords: -1}
		changes[i] = admin.OffsetChange{Group: o.group, Topic: off.Topic, Partition: off.Partition, Offset: -1}
	}
	return verb.Change[rows.OffsetReset]{
		Flags: o.change, Kind: rows.OffsetResetKind, Plan: out, Needed: len(out), What: "delete these committed offsets",
		Question: fmt.Sprintf("delete %d committed offset(s)?", len(out)),
		Do: func() (verb.Outcome[rows.OffsetReset], error) {
			undo, err := keep(o.f, o.group, old)
			if err != nil {
				return verb.Outcome[rows.OffsetReset]{}, &exit.Error{Code: exit.Failed, Msg: "nothing was changed: " + err.Error()}
			}
			results := c.DeleteOffsets(ctx, changes)
			settle(out, results)
			return verb.Outcome[rows.OffsetReset]{
				Rows: out, Problems: offsetProblems(out),
				Entries: entries(c.ClusterID(), "groups delete-offsets", o.group, results, committed[o.group], undo, nil),
			}, nil
		},
	}.Run(o.f)
}

// choose returns the committed offsets that are to go. Partitions named without one are refused: the name may be wrong.
func (o *deleteOffsetsOptions) choose(committed []model.CommittedOffset) ([]model.CommittedOffset, error) {
	var out []model.CommittedOffset
	topics := map[string]bool{}
	for _, off := range committed {
		topics[off.Topic] = true
		if plan.Match(o.targets, off.Topic, off.Partition) {
			out = append(out, off)
		}
	}
	for _, t := range o.targets {
		if !topics[t.Topic] {
			return nil, &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("group %s has no offset in topic %s", o.group, t.Topic),
				Hint: "it has some in: " + strings.Join(slices.Sorted(maps.Keys(topics)), ", ")}
		}
	}
	if len(out) == 0 {
		return nil, &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("group %s has no such offset", o.group), Hint: "kctl groups describe " + journal.Quote(o.group) + " --offsets"}
	}
	return out, nil
}
