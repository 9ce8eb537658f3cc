package acls

import (
	"context"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type createOptions struct {
	f *factory.Factory
	selection
	allow, deny           []string
	allowHosts, denyHosts []string
	producer, consumer    bool
	idempotent            bool
	file                  string
	prune                 bool
	expect                int
	use                   admin.StoredUse
	change                factory.ChangeFlags
}

func newCreate(f *factory.Factory) *cobra.Command {
	o := &createOptions{f: f, use: admin.StoredUse{Write: true}}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create rules, from flags or a file; those that are there already stay",
		Long: `Create rules. Each principal gets each operation on each resource from each host. --producer is Write, Describe and
Create on the topics (and Write and Describe on the transactional ids), --consumer is Read and Describe on the topics
and Read on the groups.

--from-file reads rules in YAML and creates those that are missing; --prune also deletes the rules of the principals in
the file that it does not hold. Rules of other principals are never touched. The difference is printed first.

    acls:
      - principal: User:alice
        topic: orders            # or group, cluster: true, transactionalId, delegationToken, user
        pattern: prefixed        # literal
        permission: allow
        operations: [Read, Describe]
        hosts: ["*"]` + verb.StoredHelp,
		Example: `  kctl acls create --allow-principal User:alice --operation Read --topic orders
  kctl acls create --allow-principal User:app --producer --topic orders --pattern prefixed --yes
  kctl acls create --allow-principal User:app --consumer --topic orders --group app
  kctl acls create --deny-principal User:eve --deny-host 10.0.0.9 --operation All --topic '*'
  kctl acls create --from-file acls.yaml --prune --dry-run
  kctl acls create --allow-principal User:broker --operation ClusterAction --cluster -z 127.0.0.1:2181/kafka   # before the first start`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := o.wanted()
			if err == nil {
				err = f.Writable()
			}
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), wanted)
		},
	}
	fl := cmd.Flags()
	o.selection.add(fl, "literal (default) or prefixed")
	fl.StringArrayVar(&o.allow, "allow-principal", nil, "who is allowed, such as User:alice (User:* is everybody), repeatable")
	fl.StringArrayVar(&o.deny, "deny-principal", nil, "who is denied, repeatable")
	fl.StringArrayVar(&o.allowHosts, "allow-host", nil, "hosts from which it is allowed (default *), repeatable")
	fl.StringArrayVar(&o.denyHosts, "deny-host", nil, "hosts from which it is denied (default *), repeatable")
	fl.BoolVar(&o.producer, "producer", false, "what a producer needs on --topic and --transactional-id")
	fl.BoolVar(&o.consumer, "consumer", false, "what a consumer needs on --topic and --group")
	fl.BoolVar(&o.idempotent, "idempotent", false, "with --producer: IdempotentWrite on the cluster, which brokers before 2.8 need")
	fl.StringVar(&o.file, "from-file", "", "rules in YAML (-: stdin)")
	fl.BoolVar(&o.prune, "prune", false, "with --from-file: delete what the file's principals have beyond it")
	addExpect(fl, &o.expect)
	verb.AddBreakGlass(fl, &o.use.BreakGlass)
	factory.AddChangeFlags(fl, &o.change)
	completeFlags(f, cmd)
	return cmd
}

// grant is one operation on one resource.
type grant struct{ resource, name, operation string }

func (o *createOptions) grants() ([]grant, error) {
	var out []grant
	on := func(kind string, names []string, ops ...string) {
		for _, n := range names {
			for _, op := range ops {
				out = append(out, grant{kind, n, op})
			}
		}
	}
	if o.producer {
		if len(o.topics) == 0 {
			return nil, exit.Usagef("--producer needs --topic")
		}
		on("Topic", o.topics, "Write", "Describe", "Create")
		on("TransactionalId", o.txnIDs, "Write", "Describe")
		if o.idempotent {
			on("Cluster", []string{plan.ClusterName}, "IdempotentWrite")
		}
	}
	if o.consumer {
		if len(o.topics) == 0 || len(o.groups) == 0 {
			return nil, exit.Usagef("--consumer needs --topic and --group")
		}
		on("Topic", o.topics, "Read", "Describe")
		on("Group", o.groups, "Read")
	}
	for _, r := range o.resources() {
		for _, word := range o.operations {
			op, err := plan.ACLWord("--operation", word, plan.ACLOperations(r[0]))
			if err != nil {
				return nil, admin.NewBadInput(err)
			}
			on(r[0], []string{r[1]}, op)
		}
	}
	switch {
	case len(o.resources()) == 0:
		return nil, exit.Usagef("no resource is named: --topic, --group, --cluster, --transactional-id, --delegation-token or --user-principal, or --from-file")
	case len(out) == 0:
		return nil, exit.Usagef("no operation is named: --operation, --producer or --consumer")
	}
	return out, nil
}

// wanted multiplies the flags out, or reads the file.
func (o *createOptions) wanted() ([]model.ACL, error) {
	if o.file != "" {
		if len(o.resources())+len(o.allow)+len(o.deny)+len(o.operations) > 0 || o.producer || o.consumer {
			return nil, exit.Usagef("--from-file excludes the flags that name rules")
		}
		return readFile(o.f, o.file)
	}
	if o.prune {
		return nil, exit.Usagef("--prune needs --from-file")
	}
	if len(o.allow)+len(o.deny) == 0 {
		return nil, exit.Usagef("no principal is named: --allow-principal or --deny-principal")
	}
	pattern := plan.LiteralPattern
	var err error
	if o.pattern != "" {
		if pattern, err = plan.ACLWord("--pattern", o.pattern, []string{plan.LiteralPattern, plan.PrefixedPattern}); err != nil {
			return nil, admin.NewBadInput(err)
		}
	}
	grants, err := o.grants()
	if err != nil {
		return nil, err
	}
	var out []model.ACL
	for _, who := range []struct {
		permission        string
		principals, hosts []string
	}{{plan.AllowRule, o.allow, o.allowHosts}, {plan.DenyRule, o.deny, o.denyHosts}} {
		hosts := who.hosts
		if len(hosts) == 0 {
			hosts = []string{"*"}
		}
		for _, p := range who.principals {
			for _, h := range hosts {
				for _, g := range grants {
					a := model.ACL{ResourceType: g.resource, ResourceName: g.name, PatternType: pattern, Principal: p, Host: h, Operation: g.operation, Permission: who.permission}
					if g.resource == "Cluster" {
						a.PatternType = plan.LiteralPattern
					}
					if err := plan.CheckACL(a); err != nil {
						return nil, admin.NewBadInput(err)
					}
					out = append(out, a)
				}
			}
		}
	}
	return out, nil
}

func (o *createOptions) run(ctx context.Context, wanted []model.ACL) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	have, err := find(ctx, o.f, c, o.use, []model.ACLFilter{{}})
	if err != nil {
		return err
	}
	diff := plan.DiffACLs(have, wanted, o.prune)
	if err := checkExpect(o.expect, len(diff.Keep)); err != nil {
		return err
	}
	return apply(ctx, o.f, c, "acls create", diff, o.use, o.change)
}

func newDelete(f *factory.Factory) *cobra.Command {
	var o filterFlags
	var file string
	var all bool
	var expect int
	use := admin.StoredUse{Write: true}
	var change factory.ChangeFlags
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete the rules that flags select, or those of a file; they are listed first",
		Long:  "Delete the rules that flags select, or those of a file; they are listed first." + verb.StoredHelp,
		Example: `  kctl acls delete --principal User:alice --topic orders
  kctl acls delete --topic orders --pattern match --dry-run
  kctl acls delete --from-file old.yaml --yes`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filters, empty, err := o.filters()
			switch {
			case err != nil:
				return err
			case file != "" && (!empty || all):
				return exit.Usagef("--from-file excludes the flags that select rules")
			case file == "" && empty && !all:
				return exit.Usagef("no rule is selected: name a principal, a resource or an operation; --all deletes every rule")
			}
			var named []model.ACL
			if file != "" {
				if named, err = readFile(f, file); err != nil {
					return err
				}
			}
			if err := f.Writable(); err != nil {
				return err
			}
			return runDelete(cmd.Context(), f, filters, named, expect, use, change)
		},
	}
	o.add(cmd.Flags())
	cmd.Flags().StringVar(&file, "from-file", "", "exactly the rules of a file in YAML (-: stdin)")
	cmd.Flags().BoolVar(&all, "all", false, "every rule")
	addExpect(cmd.Flags(), &expect)
	verb.AddBreakGlass(cmd.Flags(), &use.BreakGlass)
	factory.AddChangeFlags(cmd.Flags(), &change)
	completeFlags(f, cmd)
	return cmd
}

func runDelete(ctx context.Context, f *factory.Factory, filters []model.ACLFilter, named []model.ACL, expect int, use admin.StoredUse, change factory.ChangeFlags) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	if named != nil {
		filters = []model.ACLFilter{{}}
	}
	found, err := find(ctx, f, c, use, filters)
	if err != nil {
		return err
	}
	if named != nil {
		found = plan.DiffACLs(found, named, false).Keep
	}
	if err := checkExpect(expect, len(found)); err != nil {
		return err
	}
	return apply(ctx, f, c, "acls delete", plan.ACLDiff{Delete: found}, use, change)
}
