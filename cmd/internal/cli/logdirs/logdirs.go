// Package logdirs holds the verbs on log directories: what is in them, and moving replicas between those of one
// broker.
package logdirs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("log-dirs", "Log directories: sizes and replicas, moves within a broker", newDescribe(f), newMove(f))
}

type describeOptions struct {
	f        *factory.Factory
	brokers  []int
	topic    string
	replicas bool
}

func newDescribe(f *factory.Factory) *cobra.Command {
	o := &describeOptions{f: f}
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the log directories of brokers, their volumes and the replicas in them",
		Long: `Show one row per log directory: its replicas with their size, and what is usable of its volume (brokers from 3.3
on tell). Each broker is asked once, all at the same time. A broker that does not answer and a directory that is
offline are rows with their error; the exit code is 3 then.

With --replicas there is one row per replica. A future replica is the copy that a move to another directory is
making. JSON and YAML always carry the replicas.`,
		Example: `  kctl log-dirs describe
  kctl log-dirs describe --broker 1,2 --topic 'orders.*' --replicas
  kctl log-dirs describe -o json`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDescribe(cmd.Context(), o) },
	}
	cmd.Flags().IntSliceVar(&o.brokers, "broker", nil, "only these brokers")
	cmd.Flags().StringVar(&o.topic, "topic", "", "only replicas of topics that match this regular expression")
	cmd.Flags().BoolVar(&o.replicas, "replicas", false, "one row per replica")
	return cmd
}

func runDescribe(ctx context.Context, o *describeOptions) error {
	re, err := verb.TopicFilter(o.topic)
	if err != nil {
		return err
	}
	ids, err := brokerIDs(o.brokers)
	if err != nil {
		return err
	}
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	dirs, problems, err := c.LogDirs(ctx, admin.LogDirOptions{Brokers: ids, Topic: re})
	if err != nil {
		return err
	}
	if o.replicas {
		err = verb.List(o.f, rows.DirReplicaKind, rows.DirReplicas(dirs), problems)
	} else {
		err = verb.List(o.f, rows.LogDirKind, rows.LogDirs(dirs), problems)
	}
	if len(dirs) > 0 && !slices.ContainsFunc(dirs, func(d model.LogDir) bool { return d.Path != "" }) {
		if _, denied := admin.Denied(problems); denied {
			return verb.NothingDone("", problems, "")
		}
		return &exit.Error{Code: exit.Unreachable, Msg: "no broker answered: " + problems[0].Object + ": " + problems[0].Message}
	}
	return err
}

func brokerIDs(in []int) ([]cluster.BrokerID, error) {
	var out []cluster.BrokerID
	for _, id := range in {
		if id < 0 || id > 1<<31-1 {
			return nil, exit.Usagef("--broker %d is not a broker id", id)
		}
		if !slices.Contains(out, cluster.BrokerID(id)) {
			out = append(out, cluster.BrokerID(id))
		}
	}
	slices.Sort(out)
	return out, nil
}
