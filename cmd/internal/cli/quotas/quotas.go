// Package quotas holds the verbs on client quotas: limits of users, client ids, both together, and addresses.
package quotas

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	return verb.NewGroup("quotas", "Limits of users, client ids and addresses", newList(f), newDescribe(f), newSet(f), newDelete(f))
}

// entity is the flags that name what a quota applies to.
type entity struct {
	user, client, ip                        string
	userDefault, clientDefault, addrDefault bool
}

func (e *entity) add(fl *pflag.FlagSet) {
	fl.StringVar(&e.user, "user", "", "a user (the name of its principal)")
	fl.StringVar(&e.client, "client-id", "", "a client id; with --user: of that user")
	fl.StringVar(&e.ip, "ip", "", "an address")
	fl.BoolVar(&e.userDefault, "user-defaults", false, "the default of all users")
	fl.BoolVar(&e.clientDefault, "client-defaults", false, "the default of all client ids")
	fl.BoolVar(&e.addrDefault, "ip-defaults", false, "the default of all addresses")
}

func (e *entity) parse() (model.QuotaEntity, error) {
	var out model.QuotaEntity
	for _, p := range []struct {
		flag, name string
		def        bool
		to         *string
	}{{"user", e.user, e.userDefault, &out.User}, {"client-id", e.client, e.clientDefault, &out.ClientID}, {"ip", e.ip, e.addrDefault, &out.IP}} {
		if p.def && p.name != "" {
			return out, exit.Usagef("--%s excludes its default", p.flag)
		}
		if *p.to = p.name; p.def {
			*p.to = model.QuotaDefault
		}
	}
	return out, nil
}

// args is the reverse of parse.
func args(e model.QuotaEntity) []string {
	var out []string
	for _, p := range [][3]string{{"--user", "--user-defaults", e.User}, {"--client-id", "--client-defaults", e.ClientID}, {"--ip", "--ip-defaults", e.IP}} {
		switch p[2] {
		case "":
		case model.QuotaDefault:
			out = append(out, p[1])
		default:
			out = append(out, p[0], p[2])
		}
	}
	return out
}

func newList(f *factory.Factory) *cobra.Command {
	var e entity
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List quotas, all or those that name an entity",
		Long:  "List quotas, all or those that name an entity." + verb.StoredReadHelp,
		Example: `  kctl quotas list
  kctl quotas list --user alice -o json
  kctl quotas list --ip-defaults`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := e.parse()
			if err != nil {
				return err
			}
			all, err := read(cmd.Context(), f)
			if err != nil {
				return err
			}
			var out []rows.Quota
			for _, q := range all {
				has := func(want, got string) bool { return want == "" || want == got }
				if has(want.User, q.Entity.User) && has(want.ClientID, q.Entity.ClientID) && has(want.IP, q.Entity.IP) {
					out = append(out, rows.OfQuota(q))
				}
			}
			return verb.List(f, rows.QuotaKind, out, nil)
		},
	}
	e.add(cmd.Flags())
	return cmd
}

func read(ctx context.Context, f *factory.Factory) ([]model.Quota, error) {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil, err
	}
	return quotas(ctx, f, c, admin.StoredUse{})
}

// quotas asks the brokers, or ZooKeeper when none answers.
func quotas(ctx context.Context, f *factory.Factory, c *admin.Client, use admin.StoredUse) ([]model.Quota, error) {
	return verb.OrStored(ctx, f, c, use, func() ([]model.Quota, error) { return c.Quotas(ctx) })
}

func newDescribe(f *factory.Factory) *cobra.Command {
	var e entity
	cmd := &cobra.Command{
		Use:   "describe (--user NAME | --client-id NAME | both | --ip ADDRESS)",
		Short: "Show the limits that apply to a client, and which entity each comes from",
		Long: `Show the limits that apply to a client. Where several entities fit, Kafka takes the most specific one that has the
limit: user and client id together, then the user, then the client id, a name before the default.` + verb.StoredReadHelp,
		Example: `  kctl quotas describe --user alice --client-id app1
  kctl quotas describe --ip 10.0.0.7`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := e.parse()
			if err == nil {
				err = badInput(plan.CheckQuotaEntity(want))
			}
			if err != nil {
				return err
			}
			all, err := read(cmd.Context(), f)
			if err != nil {
				return err
			}
			var out []rows.Quota
			for _, q := range plan.EffectiveQuotas(all, want.User, want.ClientID, want.IP) {
				row := rows.OfQuota(q)
				row.Effective = true
				out = append(out, row)
			}
			return verb.List(f, rows.QuotaKind, out, nil)
		},
	}
	e.add(cmd.Flags())
	return cmd
}

func badInput(err error) error {
	if err == nil {
		return nil
	}
	return admin.NewBadInput(err)
}

type setOptions struct {
	f       *factory.Factory
	command string
	flags   entity
	entity  model.QuotaEntity
	sets    []model.Quota
	deletes []string
	all     bool // delete every limit of the entity
	expect  []string
	use     admin.StoredUse
	change  factory.ChangeFlags
}

func newSet(f *factory.Factory) *cobra.Command {
	o := &setOptions{f: f, command: "quotas set", use: admin.StoredUse{Write: true}}
	var deletes []string
	cmd := &cobra.Command{
		Use:   "set (--user NAME | --client-id NAME | both | --ip ADDRESS) KEY=VALUE...",
		Short: "Set limits of an entity",
		Long:  "Set limits of an entity; its other limits stay as they are.\n\nKeys:\n" + keyHelp() + verb.StoredHelp,
		Example: `  kctl quotas set --user alice producer_byte_rate=1048576 consumer_byte_rate=2097152
  kctl quotas set --user alice --client-id app1 request_percentage=50 --dry-run
  kctl quotas set --ip-defaults connection_creation_rate=100 --yes`,
		Args: verb.Args(0, -1, "limits"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.entity, err = o.flags.parse(); err != nil {
				return err
			}
			if o.sets, err = plan.ParseQuotas(o.entity, args); err != nil {
				return badInput(err)
			}
			o.deletes = deletes
			if len(o.sets)+len(o.deletes) == 0 {
				return exit.Usagef("no limit is named: nothing to change")
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return keys(o.flags, "="), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
	}
	cmd.Flags().StringArrayVar(&deletes, "delete", nil, "KEY to take away in the same change, repeatable")
	o.add(cmd)
	return cmd
}

func keyHelp() string {
	var b strings.Builder
	for _, k := range append(plan.QuotaKeys(false), plan.QuotaKeys(true)...) {
		fmt.Fprintf(&b, "  %-26s %s\n", k[0], k[1])
	}
	return strings.TrimRight(b.String(), "\n")
}

func keys(e entity, suffix string) []string {
	var out []string
	for _, k := range plan.QuotaKeys(e.ip != "" || e.addrDefault) {
		out = append(out, k[0]+suffix+"\t"+k[1])
	}
	return out
}

func newDelete(f *factory.Factory) *cobra.Command {
	o := &setOptions{f: f, command: "quotas delete", use: admin.StoredUse{Write: true}}
	cmd := &cobra.Command{
		Use:   "delete (--user NAME | --client-id NAME | both | --ip ADDRESS) [KEY...]",
		Short: "Take limits of an entity away: the named ones, or all of them",
		Long:  "Take limits of an entity away: the named ones, or all of them." + verb.StoredHelp,
		Example: `  kctl quotas delete --user alice producer_byte_rate
  kctl quotas delete --client-defaults --yes`,
		Args: verb.Args(0, -1, "keys"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.entity, err = o.flags.parse(); err != nil {
				return err
			}
			o.deletes, o.all = args, len(args) == 0
			return o.run(cmd.Context())
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return keys(o.flags, ""), cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.add(cmd)
	return cmd
}

func (o *setOptions) add(cmd *cobra.Command) {
	o.flags.add(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.expect, "expect", nil, "KEY=VALUE, or KEY for none, that must be there before; repeatable")
	verb.AddBreakGlass(cmd.Flags(), &o.use.BreakGlass)
	factory.AddChangeFlags(cmd.Flags(), &o.change)
}

func (o *setOptions) run(ctx context.Context) error {
	if err := plan.CheckQuotaEntity(o.entity); err != nil {
		return admin.NewBadInput(err)
	}
	for _, k := range o.deletes {
		if err := plan.CheckQuotaKey(o.entity, k); err != nil {
			return admin.NewBadInput(err)
		}
	}
	if err := o.f.Writable(); err != nil {
		return err
	}
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	current, err := quotas(ctx, o.f, c, o.use)
	if err != nil {
		return err
	}
	if err := plan.CheckExpectedQuotas(current, o.entity, o.expect); err != nil {
		return &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed"}
	}
	changes := plan.PlanQuotas(current, o.entity, o.sets, o.deletes, o.all)
	var rs []rows.QuotaChange
	for i := range changes {
		rs = append(rs, rows.OfQuotaChange(&changes[i]))
	}
	todo := slices.DeleteFunc(slices.Clone(changes), func(ch plan.QuotaChange) bool { return ch.None() })
	return verb.Change[rows.QuotaChange]{
		Flags: o.change, Kind: rows.QuotaChangeKind, Plan: rs, Needed: len(todo), What: "change quotas",
		Question: fmt.Sprintf("change %d quota(s) of %s?", len(todo), o.entity),
		Check:    func() error { return c.AlterQuotas(ctx, o.entity, todo, true) },
		Do: func() (out verb.Outcome[rows.QuotaChange], err error) {
			err = c.AlterQuotas(ctx, o.entity, todo, false)
			out.Entries = []factory.Change{o.entry(c, todo, err)}
			for i := range rs {
				rs[i].Done = err == nil
			}
			out.Rows = rs
			return out, err
		},
	}.Run(o.f)
}

// entry tells the change with the command that takes it back.
func (o *setOptions) entry(c *admin.Client, changes []plan.QuotaChange, err error) factory.Change {
	text := func(v *float64) string {
		if v == nil {
			return "(none)"
		}
		return plan.QuotaValue(*v)
	}
	var before, after, sets, tail []string
	for _, ch := range changes {
		before, after = append(before, ch.Key+"="+text(ch.Before)), append(after, ch.Key+"="+text(ch.After))
		if ch.Before != nil {
			sets = append(sets, ch.Key+"="+text(ch.Before))
		} else {
			tail = append(tail, "--delete", ch.Key)
		}
		expect := ch.Key
		if ch.After != nil {
			expect += "=" + text(ch.After)
		}
		tail = append(tail, "--expect", expect)
	}
	e := factory.Change{
		Cluster: c.ClusterID(), Command: o.command, Object: o.entity.String(), Before: strings.Join(before, " "), After: strings.Join(after, " "), Result: "done",
	}
	if err != nil {
		e.Result = err.Error()
	}
	return e.WithUndo(verb.StoredUndo(c, o.use, slices.Concat([]string{"quotas", "set"}, args(o.entity), sets, tail))...)
}
