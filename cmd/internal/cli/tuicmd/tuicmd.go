// Package tuicmd starts the terminal interface.
package tuicmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/tui"
)

// New returns the verb.
func New(f *factory.Factory) *cobra.Command {
	var refresh time.Duration
	cmd := &cobra.Command{
		Use:   "tui",
		Short: "Watch brokers, partitions and follower lag, transitions and groups live",
		Long: `Watch the cluster live: brokers, partitions and the lag of each follower on the first page, leadership transitions
that are not finished on the second (t), consumer groups with their lag on the third (c). ? shows all keys. Nothing is
changed from here. A picture that is older than it should be says so in the first line.`,
		Example: `  kctl tui
  kctl tui -z zk1:2181/kafka --refresh 5s`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if refresh < 100*time.Millisecond {
				return exit.Usagef("--refresh %s is below 100ms", refresh)
			}
			if !f.IO.InTTY || !f.IO.OutTTY {
				return &exit.Error{
					Code: exit.Usage, Msg: "tui needs a terminal: standard input and output must both be one",
					Hint: "kctl cluster health --watch and kctl lag replicas --watch work everywhere",
				}
			}
			return run(cmd.Context(), f, refresh)
		},
	}
	cmd.Flags().DurationVar(&refresh, "refresh", time.Second, "time between two readings")
	return cmd
}

func run(ctx context.Context, f *factory.Factory, refresh time.Duration) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := f.Settings()
	if err != nil {
		return err
	}
	return tui.Run(ctx, tui.Options{
		Source: c, In: f.IO.In, Out: f.IO.Out, Color: f.IO.Color, Refresh: refresh, Now: f.Now, Context: s.Context, ReadOnly: s.ReadOnly,
	})
}
