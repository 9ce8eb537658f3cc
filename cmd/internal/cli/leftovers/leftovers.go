// Package leftovers finds what tools and failures have left behind, and takes it away.
package leftovers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin/check"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("leftovers", "What tools and failures have left behind: throttles, znodes, configuration, replicas", newList(f), newClean(f), newRestore(f))
}

const kindsText = `Kinds: throttle (replication throttles while nothing is reassigned), admin-znode (/admin/reassign_partitions,
/admin/preferred_replica_election), deletion (marks for topics that do not exist), topic-config and broker-config (settings of what
does not exist), config-change (notifications older than 15 minutes), alert (of decisions that are history), notification (ISR changes and
directory failures that no controller has read), stray-replica (on disk and in no replica list), dead-replica (replica lists that name a
broker that is gone). The last three are only listed: the row says what to do instead.`

type listOptions struct {
	f     *factory.Factory
	kinds []string
	older time.Duration
}

func addOlder(cmd *cobra.Command, into *time.Duration) {
	cmd.Flags().DurationVar(into, "older-than", check.DefaultLeftoverAge, "age from which a znode counts as left behind")
}

func newList(f *factory.Factory) *cobra.Command {
	o := &listOptions{f: f}
	cmd := &cobra.Command{
		Use:   "list [KIND...]",
		Short: "List what is left behind; exit 10 when there is something",
		Long:  kindsText + "\n\nWithout -z only what the brokers know is looked for.",
		Example: `  kctl leftovers list -z zk1:2181/kafka
  kctl leftovers list throttle stray-replica -o json`,
		Args: func(_ *cobra.Command, args []string) error { return knownKinds(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kinds = args
			return runList(cmd.Context(), o)
		},
		ValidArgsFunction: verb.Fixed(check.LeftoverKinds()...),
	}
	addOlder(cmd, &o.older)
	return cmd
}

func knownKinds(args []string) error {
	for _, a := range args {
		if slices.Contains(check.LeftoverKinds(), a) {
			continue
		}
		e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("kind %q is none of %s", a, strings.Join(check.LeftoverKinds(), ", "))}
		if near, ok := plan.Nearest(a, check.LeftoverKinds()); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e
	}
	return nil
}

func ofKinds(items []check.Leftover, kinds []string) []check.Leftover {
	return slices.DeleteFunc(items, func(l check.Leftover) bool { return len(kinds) > 0 && !slices.Contains(kinds, l.Kind) })
}

func runList(ctx context.Context, o *listOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	items, problems, err := c.Leftovers(ctx, o.older, o.f.Now())
	if err != nil {
		return err
	}
	if !c.HasZooKeeper() {
		why := "without -z"
		if kraft, err := c.IsKRaft(ctx); err == nil && kraft { // what is asked was learned already
			why = "in KRaft mode there are no znodes:"
		}
		o.f.Say("%s only throttles, stray and dead replicas are looked for", why)
	}
	items = ofKinds(items, o.kinds)
	out := make([]rows.Leftover, len(items))
	for i, l := range items {
		out[i] = rows.OfLeftover(l)
	}
	err = verb.List(o.f, rows.LeftoverKind, out, problems)
	if len(out) > 0 && (err == nil || exit.CodeOf(err) == exit.Partial) {
		return exit.Silent(exit.Problems)
	}
	return err
}
