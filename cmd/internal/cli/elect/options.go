package elect

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// options are those of the verbs that elect many partitions.
type options struct {
	f          *factory.Factory
	command    string // "elect preferred" or "elect unclean", for the journal
	targets    []plan.Target
	all        bool
	file       string
	imbalanced bool
	via        string
	waitGiven  bool
	elect      admin.ElectOptions
	change     factory.ChangeFlags
}

// defaultWait is the time for elected leaders to answer. Given explicitly, the wait is also for partitions
// that cannot be elected yet.
const defaultWait = 30 * time.Second

func (o *options) newCommand(use, short, long, example string, run func(context.Context, *options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.waitGiven = cmd.Flags().Changed("wait")
			if err := o.parse(args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(o.f),
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.all, "all", false, "all partitions of all topics")
	fs.StringVar(&o.file, "file", "", "partitions in Kafka's JSON; - is standard input")
	fs.BoolVar(&o.imbalanced, "imbalanced-only", false, "leave out the partitions that need no election")
	fs.IntVar(&o.elect.Batch, "batch-size", admin.DefaultElectionBatch, "partitions per request; each batch is confirmed before the next")
	fs.DurationVar(&o.elect.Wait, "wait", defaultWait, "time for the new leaders to answer (0: do not wait); when given, also for replicas to come back")
	factory.AddChangeFlags(fs, &o.change)
	return cmd
}

func (o *options) parse(args []string) (err error) {
	ways := min(len(args), 1)
	if o.all {
		ways++
	}
	if o.file != "" {
		ways++
	}
	if ways != 1 {
		return exit.Usagef("name partitions in exactly one way: TOPIC[:P,..]..., --all or --file FILE")
	}
	if o.file != "" {
		o.targets, err = readElectionFile(o.file, o.f.IO.In)
	} else {
		o.targets, err = verb.Targets(args)
	}
	if err != nil {
		return err
	}
	if o.elect.Wait < 0 {
		return exit.Usagef("--wait %s is below zero", o.elect.Wait)
	}
	if o.elect.Batch < 1 {
		return exit.Usagef("--batch-size %d is below one", o.elect.Batch)
	}
	if o.elect.Via, err = parseVia(o.via); err != nil {
		return err
	}
	return o.f.Writable()
}

func parseVia(s string) (admin.ElectVia, error) {
	switch v := admin.ElectVia(s); v {
	case "":
		return admin.ElectAuto, nil
	case admin.ElectAuto, admin.ElectViaProtocol, admin.ElectViaZooKeeper:
		return v, nil
	}
	return "", exit.Usagef("--via %q is not one of %s, %s, %s", s, admin.ElectAuto, admin.ElectViaProtocol, admin.ElectViaZooKeeper)
}

func name(e *plan.Election) string { return fmt.Sprintf("%s:%d", e.Topic, e.Partition) }
