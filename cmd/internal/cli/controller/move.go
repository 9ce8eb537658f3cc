package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type moveOptions struct {
	f      *factory.Factory
	wait   time.Duration
	change factory.ChangeFlags
}

func newMove(f *factory.Factory) *cobra.Command {
	o := &moveOptions{f: f}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Have a new controller elected; needs -z",
		Long: `Remove /controller, fenced by the controller epoch, so that the brokers elect a controller anew, and wait until
one of a later epoch is there. The new controller reads every state node from ZooKeeper and sends it to the brokers:
this frees decisions that the old one does not know of. The same broker may win again. No partition changes its leader.`,
		Example: `  kctl controller move -z zk1:2181/kafka
  kctl controller move -z zk1:2181/kafka --yes --wait 1m`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.wait < 0 {
				return exit.Usagef("--wait %s is below zero", o.wait)
			}
			if err := f.Writable(); err != nil {
				return err
			}
			return runMove(cmd.Context(), o)
		},
	}
	cmd.Flags().DurationVar(&o.wait, "wait", 30*time.Second, "time to wait for the new controller")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func runMove(ctx context.Context, o *moveOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	if kraft, err := c.IsKRaft(ctx); !c.HasZooKeeper() && err == nil && kraft {
		return &exit.Error{
			Code: exit.Usage, Msg: "this is a KRaft cluster: its controllers elect one of them, and no request makes them do it anew",
			Hint: "restart the controller that is active: kctl controller describe",
		}
	}
	if !c.HasZooKeeper() {
		return &exit.Error{Code: exit.Usage, Msg: "this needs ZooKeeper", Hint: "give its address with -z HOST:PORT/chroot or KCTL_ZOOKEEPER"}
	}
	from, err := c.ReadController(ctx)
	if err != nil {
		return err
	}
	plan := fmt.Sprintf("end the controllership of broker %d (epoch %d)", from.ID, from.Epoch)
	if o.change.DryRun {
		o.f.Say("dry run: would %s", plan)
		return o.answer(ctx, c)
	}
	o.f.Say("will %s and have a new controller elected", plan)
	err = o.f.Commit(o.change, "go on?", func() ([]factory.Change, error) { return o.move(ctx, c, from) })
	if err != nil {
		return err
	}
	return o.answer(ctx, c)
}

// move ends the controllership and waits for the next.
func (o *moveOptions) move(ctx context.Context, c *admin.Client, from *admin.ControllerNode) ([]factory.Change, error) {
	to, err := c.MoveController(ctx, from, o.wait)
	id, _ := c.VerifyCluster(ctx) // the journal does without where nobody tells it
	ch := factory.Change{
		Cluster: id, Command: "controller move", Object: "controller", Before: fmt.Sprintf("broker %d, epoch %d", from.ID, from.Epoch), Result: "done",
		Undo: "none needed: every broker can be the controller",
	}
	if err != nil {
		ch.Result = err.Error()
		return []factory.Change{ch}, err
	}
	ch.After = fmt.Sprintf("broker %d, epoch %d", to.ID, to.Epoch)
	return []factory.Change{ch}, nil
}

// answer prints the controller as it is now.
func (o *moveOptions) answer(ctx context.Context, c *admin.Client) error {
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{NoTopics: true})
	if err != nil {
		return err
	}
	return verb.One(o.f, rows.ControllerKind, rows.OfController(s), s.Problems)
}
