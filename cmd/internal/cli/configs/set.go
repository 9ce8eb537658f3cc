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
	"kctl/cmd/internal/cli/journal"
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
  kctl configs delete topic/orders retention.ms --expect retention.ms=1000 --dry-run`,
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

// needed leaves out what is as wanted already.
func needed(changes []plan.ConfigChange) []plan.ConfigChange {
	var out []plan.ConfigChange
	for _, ch := range changes {
		if !ch.None {
			out = append(out, ch)
		}
	}
	return out
}

func (o *setOptions) apply(ctx context.Context, c *admin.Client, changes []plan.ConfigChange, direct bool) error {
	todo := needed(changes)
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

func firstError(results []admin.ConfigResult, err error) error {
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

func (o *setOptions) write(ctx context.Context, c *admin.Client, all, todo []plan.ConfigChange, rs []rows.ConfigChange, direct bool) (out verb.Outcome[rows.ConfigChange], err error) {
	var results []admin.ConfigResult
	if direct {
		results, err = c.WriteConfigsToZooKeeper(ctx, todo)
	} else {
		results, err = c.AlterConfigs(ctx, todo, false)
	}
	if err != nil {
		return out, err
	}
	failed := map[model.ConfigResource]error{}
	var written []plan.ConfigChange
	for _, r := range results {
		failed[r.Resource] = r.Err
	}
	for _, ch := range todo {
		if failed[ch.Resource] == nil {
			written = append(written, ch)
		}
	}
	if !direct && len(written) > 0 {
		o.confirm(ctx, c, written, failed)
	}
	for i := range all {
		err := failed[all[i].Resource]
		if rs[i].Done = err == nil; !rs[i].Done {
			rs[i].Error = err.Error()
		}
		if err != nil && !all[i].None {
			out.Errs = append(out.Errs, err)
		}
	}
	out.Rows, out.Entries = rs, o.entries(c.ClusterID(), todo, failed)
	return out, nil
}

// confirm reads the changes back.
func (o *setOptions) confirm(ctx context.Context, c *admin.Client, written []plan.ConfigChange, failed map[model.ConfigResource]error) {
	missing, err := c.AwaitConfigs(ctx, written)
	if err != nil && len(missing) == 0 {
		o.f.Say("the change was accepted, but could not be read back: %v", err)
		return
	}
	for r, what := range missing {
		failed[r] = &exit.Error{
			Code: exit.Failed, Msg: fmt.Sprintf("%s: the change was accepted but did not take: %s", r, strings.Join(what, "; ")),
			Hint: "the key may be read-only, so that it takes effect at the next start of the broker, or be overridden: kctl configs get " + r.String() + " --synonyms",
		}
	}
}

// entries are one per resource, each with the command that takes it back.
func (o *setOptions) entries(clusterID string, todo []plan.ConfigChange, failed map[model.ConfigResource]error) []factory.Change {
	var out []factory.Change
	at := map[model.ConfigResource]int{}
	by := map[model.ConfigResource][]plan.ConfigChange{}
	for _, ch := range todo {
		if _, ok := at[ch.Resource]; !ok {
			at[ch.Resource] = len(out)
			out = append(out, factory.Change{Cluster: clusterID, Command: o.command, Object: ch.Resource.String(), Result: journal.Done})
		}
		by[ch.Resource] = append(by[ch.Resource], ch)
	}
	for r, i := range at {
		out[i] = describe(out[i], by[r])
		if err := failed[r]; err != nil {
			out[i].Result = err.Error()
		}
	}
	return out
}

func describe(e factory.Change, changes []plan.ConfigChange) factory.Change {
	var before, after []string
	undo := []string{"configs", "set", e.Object}
	var tail []string
	hidden := false
	for _, ch := range changes {
		before, after = append(before, ch.Key+"="+shown(ch.Before, ch)), append(after, ch.Key+"="+shown(ch.After, ch))
		hidden = hidden || ch.Sensitive || ch.HadSecret
		if ch.Before != nil {
			undo = append(undo, ch.Key+"="+*ch.Before)
		} else {
			tail = append(tail, "--delete", ch.Key)
		}
		expect := ch.Key
		if ch.After != nil {
			expect += "=" + *ch.After
		}
		if ch.Resource.Type != model.BrokerLoggerResource {
			tail = append(tail, "--expect", expect)
		}
	}
	e.Before, e.After = strings.Join(before, " "), strings.Join(after, " ")
	if hidden {
		e.Undo = "by hand: the value before is a secret"
		return e
	}
	return e.WithUndo(append(undo, tail...)...)
}

func shown(v *string, ch plan.ConfigChange) string {
	switch {
	case ch.Sensitive || ch.HadSecret:
		return rows.Hidden
	case v == nil:
		return "(none)"
	}
	return *v
}
