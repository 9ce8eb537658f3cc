// Package brokers holds the verbs on brokers.
package brokers

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("brokers", "Brokers: list them, describe one", newList(f), newDescribe(f))
}

func newList(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all brokers, also those that replica lists name but nobody registered",
		Example: `  kctl brokers list
  kctl brokers list -z zk1:2181 -o wide`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), f) },
	}
}

func runList(ctx context.Context, f *factory.Factory) error {
	s, err := read(ctx, f)
	if err != nil {
		return err
	}
	return verb.List(f, rows.BrokerKind, rows.Brokers(s), withSilent(s))
}

func read(ctx context.Context, f *factory.Factory) (*model.Snapshot, error) {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil, err
	}
	return c.Snapshot(ctx, admin.SnapshotOptions{Probe: true, Controller: true})
}

// withSilent adds registered brokers that did not answer to what is missing.
func withSilent(s *model.Snapshot) []model.Problem {
	problems := s.Problems
	for i := range s.Brokers {
		if b := &s.Brokers[i]; b.Live && b.Err != "" {
			problems = append(problems, model.Problem{Object: "broker " + strconv.Itoa(int(b.ID)), Message: b.Err})
		}
	}
	return problems
}

func newDescribe(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "describe ID",
		Short:   "Show one broker with its listeners and counts",
		Example: "  kctl brokers describe 2 -z zk1:2181",
		Args:    verb.Args(1, 1, "one broker id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 32)
			if err != nil || id < 0 {
				return exit.Usagef("broker id %q is not a number from 0 up", args[0])
			}
			return runDescribe(cmd.Context(), f, int32(id))
		},
		ValidArgsFunction: verb.CompleteBrokers(f),
	}
}

func runDescribe(ctx context.Context, f *factory.Factory, id int32) error {
	s, err := read(ctx, f)
	if err != nil {
		return err
	}
	for i, r := range rows.Brokers(s) {
		if r.ID == id {
			return verb.One(f, rows.BrokerDetailKind, rows.OfBrokerDetail(r, &s.Brokers[i]), s.Problems)
		}
	}
	return admin.ErrNoBroker(id, s)
}
