// Package controller holds the verbs on the active controller.
package controller

import (
	"context"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("controller", "The active controller: describe it, have a new one elected", newDescribe(f), newMove(f))
}

func newDescribe(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "describe",
		Short: "Show which broker is the controller, its epoch and since when",
		Long: `Show which broker is the controller. Epoch and time are read from ZooKeeper and need -z. In KRaft mode the controllers
are asked: the leader of their quorum, which need not be a broker, and its epoch.`,
		Example: `  kctl controller describe
  kctl controller describe -z zk1:2181 -o json`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDescribe(cmd.Context(), f) },
	}
}

func runDescribe(ctx context.Context, f *factory.Factory) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{NoTopics: true, Controller: true})
	if err != nil {
		return err
	}
	if hint, ok := admin.Denied(s.Problems); ok && s.Controller.ID < 0 {
		return &exit.Error{Code: exit.Unauthorized, Msg: s.Problems[0].Object + ": " + s.Problems[0].Message, Hint: hint}
	}
	return verb.One(f, rows.ControllerKind, rows.OfController(s), s.Problems)
}
