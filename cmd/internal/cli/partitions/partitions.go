// Package partitions holds the verbs on partitions.
package partitions

import (
	"context"
	"regexp"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("partitions", "Partitions: who leads, which replicas are in sync", newList(f))
}

type listOptions struct {
	f                                                             *factory.Factory
	targets                                                       []plan.Target
	topic, source                                                 string
	underReplicated, underMinISR, atMinISR, offline, notPreferred bool
	re                                                            *regexp.Regexp
}

func newList(f *factory.Factory) *cobra.Command {
	o := &listOptions{f: f}
	cmd := &cobra.Command{
		Use:   "list [TOPIC[:P,..]...]",
		Short: "List partitions, all or those with a problem",
		Long: `List partitions with leader, epoch, replicas in assignment order and ISR. With several filters a partition is
listed when any of them holds. Every partition that matches is listed: nothing is cut off.`,
		Example: `  kctl partitions list --under-replicated
  kctl partitions list orders:0,1 -o json
  kctl partitions list --offline --under-min-isr --topic 'orders.*'`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.targets, err = verb.Targets(args); err != nil {
				return err
			}
			if o.re, err = verb.TopicFilter(o.topic); err != nil {
				return err
			}
			if o.source != "" && o.source != "protocol" && o.source != "zookeeper" {
				return exit.Usagef("--source %q is not protocol or zookeeper", o.source)
			}
			return runList(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.underReplicated, "under-replicated", false, "fewer in-sync replicas than replicas")
	fl.BoolVar(&o.underMinISR, "under-min-isr", false, "fewer in-sync replicas than min.insync.replicas")
	fl.BoolVar(&o.atMinISR, "at-min-isr", false, "exactly min.insync.replicas in sync")
	fl.BoolVar(&o.offline, "offline", false, "no leader")
	fl.BoolVar(&o.notPreferred, "not-preferred", false, "led by another than the first replica")
	fl.StringVar(&o.topic, "topic", "", "only topics whose whole name matches this regular expression")
	fl.StringVar(&o.source, "source", "", "read from protocol or zookeeper only")
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("source", verb.Fixed("protocol", "zookeeper"))
	return cmd
}

func runList(ctx context.Context, o *listOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	opts := admin.SnapshotOptions{
		MinISR: o.underMinISR || o.atMinISR || o.f.WantsAll(), Reassignments: true, Source: model.Source(o.source),
		NoZooKeeper: o.source == "",
	}
	for _, t := range o.targets {
		opts.Topics = append(opts.Topics, t.Topic)
	}
	s, err := c.Snapshot(ctx, opts)
	if err != nil {
		return err
	}
	return verb.List(o.f, rows.PartitionKind, rows.Partitions(s, o.keep), s.Problems)
}

func (o *listOptions) keep(p *model.Partition) bool {
	if o.re != nil && !o.re.MatchString(p.Topic) || !plan.Match(o.targets, p.Topic, p.Partition) {
		return false
	}
	if !o.underReplicated && !o.underMinISR && !o.atMinISR && !o.offline && !o.notPreferred {
		return true
	}
	return o.underReplicated && p.UnderReplicated() || o.underMinISR && p.UnderMinISR() || o.atMinISR && p.AtMinISR() ||
		o.offline && p.IsOffline() || o.notPreferred && p.NotPreferred()
}
