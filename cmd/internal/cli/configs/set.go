package configs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type setOptions struct {
	f          *factory.Factory
	command    string
	scope      scope
	ops        []plan.ConfigOp
	appends    []string
	subtracts  []string
	deletes    []string
	expect     []string
	unknown    bool
	breakGlass bool
	change     factory.ChangeFlags
}

func newSet(f *factory.Factory) *cobra.Command {
	o := &setOptions{f: f, command: "configs set"}
	cmd := &cobra.Command{
		Use:   "set (TYPE/NAME[,NAME..]... | --topic RE) KEY=VALUE...",
		Short: "Set configuration values",
		Long: `Set configuration values. Other keys stay as they are. The difference is printed and checked by the cluster first, and
after the write it is read back: a change that does not show is an error.

--append and --subtract add values to a list and take them out. --expect KEY=VALUE (or KEY, for no value of its own)
refuses when the value is another one by now. A key that only takes effect at a broker's next start is refused.

When no broker answers, --break-glass writes /config in ZooKeeper itself, with the notification that brokers wait for:
nothing checks the values then.`,
		Example: `  kctl configs set topic/orders retention.ms=86400000
  kctl configs set topic/orders,invoices cleanup.policy=compact --dry-run
  kctl configs set --topic 'orders.*' min.insync.replicas=2 --yes
  kctl configs set topic/orders --append follower.replication.throttled.replicas=0:1
  kctl configs set broker/default log.cleaner.threads=2
  kctl configs set broker-logger/1 kafka.controller=DEBUG`,
		Args: verb.Args(0, -1, "resources and settings"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args, false); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: complete(f, true),
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&o.appends, "append", nil, "KEY=VALUE[,VALUE..] to add to a list, repeatable")
	fl.StringArrayVar(&o.subtracts, "subtract", nil, "KEY=VALUE[,VALUE..] to take out of a list, repeatable")
	fl.StringArrayVar(&o.deletes, "delete", nil, "KEY to delete in the same change, repeatable")
	o.flags(cmd)
	return cmd
}

func newDelete(f *factory.Factory) *cobra.Command {
	o := &setOptions{f: f, command: "configs delete"}
	cmd := &cobra.Command{
		Use:   "delete (TYPE/NAME[,NAME..]... | --topic RE) KEY...",
		Short: "Delete configuration values, so that the inherited ones hold",
		Example: `  kctl configs delete topic/orders retention.ms
  kctl configs delete broker/1,2,3 follower.replication.throttled.rate --yes
  kctl configs delete topic/orders retention.ms --expect retention.ms=86400000 --dry-run`,
		Args: verb.Args(0, -1, "resources and keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args, true); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: complete(f, false),
	}
	o.flags(cmd)
	return cmd
}

func (o *setOptions) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&o.scope.topic, "topic", "", topicFlag)
	fl.StringArrayVar(&o.expect, "expect", nil, "KEY=VALUE, or KEY for none, that must be there before; repeatable")
	fl.BoolVar(&o.unknown, "unknown-keys", false, "let the cluster judge keys that it does not list")
	fl.BoolVar(&o.breakGlass, "break-glass", false, "when no broker answers, write ZooKeeper directly")
	factory.AddChangeFlags(fl, &o.change)
}

func (o *setOptions) parse(args []string, deletes bool) error {
	rest, err := o.scope.parse(args)
	if err != nil {
		return err
	}
	if deletes {
		o.ops, err = plan.ParseConfigOps(nil, nil, nil, rest)
	} else {
		o.ops, err = plan.ParseConfigOps(rest, o.appends, o.subtracts, o.deletes)
	}
	if err != nil {
		return admin.NewBadInput(err)
	}
	if len(o.ops) == 0 {
		return exit.Usagef("no key is named: nothing to change")
	}
	return o.f.Writable()
}

func (o *setOptions) run(ctx context.Context) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	resources, err := o.scope.resolve(ctx, c)
	var current []model.ResourceConfigs
	if err == nil {
		current, err = c.Configs(ctx, resources, o.keys())
	}
	direct := err != nil && admin.KindOf(err) == admin.Unreachable && c.HasZooKeeper()
	switch {
	case direct && o.breakGlass:
		o.f.Say("no broker answers (%v): ZooKeeper is written directly", err)
		if current, err = c.ConfigsFromZooKeeper(ctx, o.scope.named); err != nil {
			return err
		}
	case direct:
		return &exit.Error{Code: exit.Unreachable, Msg: err.Error() + "; nothing was changed", Hint: "--break-glass writes /config in ZooKeeper directly, with the notification that brokers wait for; nothing checks the values then"}
	case err != nil:
		return err
	}
	changes, err := o.plan(ctx, c, current, direct)
	if err != nil {
		return err
	}
	return o.apply(ctx, c, changes, direct)
}

func (o *setOptions) keys() []string {
	var keys []string
	for _, op := range o.ops {
		keys = append(keys, op.Key)
	}
	for _, x := range o.expect {
		k, _, _ := strings.Cut(x, "=")
		keys = append(keys, k)
	}
	return keys
}

func (o *setOptions) plan(ctx context.Context, c *admin.Client, current []model.ResourceConfigs, direct bool) ([]plan.ConfigChange, error) {
	var out []plan.ConfigChange
	for i := range current {
		if current[i].Err != nil {
			return nil, current[i].Err
		}
		if err := plan.CheckExpected(&current[i], o.expect); err != nil {
			return nil, &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed"}
		}
		changes, err := plan.PlanConfigs(&current[i], o.ops, o.unknown || direct)
		if e, ok := errors.AsType[*plan.UnknownKeyError](err); ok {
			return nil, unknownKey(ctx, c, e)
		}
		if err != nil {
			return nil, &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed"}
		}
		out = append(out, changes...)
	}
	return out, nil
}

func (o *setOptions) apply(ctx context.Context, c *admin.Client, changes []plan.ConfigChange, direct bool) error {
	todo := Needed(changes)
	rs := make([]rows.ConfigChange, len(changes))
	for i := range changes {
		rs[i] = rows.OfConfigChange(&changes[i])
	}
	change := verb.Change[rows.ConfigChange]{
		Flags: o.change, Kind: rows.ConfigChangeKind, Plan: rs, Needed: len(todo), What: "change configuration",
		Question: fmt.Sprintf("change %d configuration value(s)?", len(todo)),
		Check: func() error {
			if direct {
				return nil
			}
			results, err := c.AlterConfigs(ctx, todo, true)
			return firstError(results, err)
		},
		Do: func() (verb.Outcome[rows.ConfigChange], error) { return o.write(ctx, c, changes, todo, rs, direct) },
	}
	return change.Run(o.f)
}

func (o *setOptions) write(ctx context.Context, c *admin.Client, all, todo []plan.ConfigChange, rs []rows.ConfigChange, direct bool) (out verb.Outcome[rows.ConfigChange], err error) {
	var failed map[model.ConfigResource]error
	if direct {
		failed, err = writeDirectly(ctx, c, todo)
	} else {
		failed, err = Write(ctx, c, todo)
	}
	resources, by := plan.ByResource(todo)
	if err != nil {
		for _, r := range resources {
			out.Entries = append(out.Entries, Entry(c.ClusterID(), o.command, by[r], err))
		}
		return out, err
	}
	for i := range all {
		err := failed[all[i].Resource]
		if rs[i].Done = err == nil; err != nil {
			rs[i].Error = err.Error()
		}
		if err != nil && !all[i].None {
			out.Errs = append(out.Errs, err)
		}
	}
	out.Rows = rs
	for _, r := range resources {
		out.Entries = append(out.Entries, Entry(c.ClusterID(), o.command, by[r], failed[r]))
	}
	return out, nil
}
