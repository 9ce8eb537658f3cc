// Package acls holds the verbs on the authorizer's rules.
package acls

import (
	"context"
	"fmt"
	"os"
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
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("acls", "Rules on who may do what", newList(f), newCreate(f), newDelete(f))
}

// selection is the flags that name resources, principals, hosts and operations.
type selection struct {
	topics, groups, txnIDs, tokens, users []string
	cluster                               bool
	pattern                               string
	operations                            []string
}

func (s *selection) add(fl *pflag.FlagSet, patterns string) {
	fl.StringArrayVar(&s.topics, "topic", nil, "a topic, * for all, repeatable")
	fl.StringArrayVar(&s.groups, "group", nil, "a consumer group, repeatable")
	fl.BoolVar(&s.cluster, "cluster", false, "the cluster itself")
	fl.StringArrayVar(&s.txnIDs, "transactional-id", nil, "a transactional id, repeatable")
	fl.StringArrayVar(&s.tokens, "delegation-token", nil, "a delegation token, repeatable")
	fl.StringArrayVar(&s.users, "user-principal", nil, "a user whose tokens are meant, repeatable")
	fl.StringVar(&s.pattern, "pattern", "", "how names are meant: "+patterns)
	fl.StringArrayVar(&s.operations, "operation", nil, "an operation: "+strings.Join(plan.ACLOperations(""), ", "))
}

// resources lists what is named as type and name.
func (s *selection) resources() [][2]string {
	var out [][2]string
	for _, g := range []struct {
		kind  string
		names []string
	}{{"Topic", s.topics}, {"Group", s.groups}, {"TransactionalId", s.txnIDs}, {"DelegationToken", s.tokens}, {"User", s.users}} {
		for _, n := range g.names {
			out = append(out, [2]string{g.kind, n})
		}
	}
	if s.cluster {
		out = append(out, [2]string{"Cluster", plan.ClusterName})
	}
	return out
}

// filterFlags are those of list and delete.
type filterFlags struct {
	selection
	principals, hosts []string
	permission        string
}

func (o *filterFlags) add(fl *pflag.FlagSet) {
	o.selection.add(fl, "any (default), literal, prefixed, or match: every rule that applies to the name")
	fl.StringArrayVar(&o.principals, "principal", nil, "a principal, such as User:alice, repeatable")
	fl.StringArrayVar(&o.hosts, "host", nil, "a host, repeatable")
	fl.StringVar(&o.permission, "permission", "", "allow or deny")
}

// filters multiplies the flags out; empty tells that no flag was given.
func (o *filterFlags) filters() (out []model.ACLFilter, empty bool, err error) {
	var base model.ACLFilter
	if o.pattern != "" {
		if base.PatternType, err = plan.ACLWord("--pattern", o.pattern, []string{"Any", "Match", plan.LiteralPattern, plan.PrefixedPattern}); err != nil {
			return nil, false, admin.NewBadInput(err)
		}
	}
	if o.permission != "" {
		if base.Permission, err = plan.ACLWord("--permission", o.permission, []string{plan.AllowRule, plan.DenyRule}); err != nil {
			return nil, false, admin.NewBadInput(err)
		}
	}
	resources := o.resources()
	empty = base == model.ACLFilter{} && len(resources)+len(o.principals)+len(o.hosts)+len(o.operations) == 0
	for _, r := range orEmpty(resources) {
		for _, p := range orBlank(o.principals) {
			for _, h := range orBlank(o.hosts) {
				for _, op := range orBlank(o.operations) {
					f := base
					if f.ResourceType, f.ResourceName, f.Principal, f.Host = r[0], r[1], p, h; op != "" {
						if f.Operation, err = plan.ACLWord("--operation", op, plan.ACLOperations(r[0])); err != nil {
							return nil, false, admin.NewBadInput(err)
						}
					}
					out = append(out, f)
				}
			}
		}
	}
	return out, empty, nil
}

func orEmpty(r [][2]string) [][2]string {
	if len(r) == 0 {
		return [][2]string{{}}
	}
	return r
}

func orBlank(s []string) []string {
	if len(s) == 0 {
		return []string{""}
	}
	return s
}

// find reads what the filters select, each rule once, from the brokers or, when none answers, from ZooKeeper.
func find(ctx context.Context, f *factory.Factory, c *admin.Client, use admin.StoredUse, filters []model.ACLFilter) ([]model.ACL, error) {
	return verb.OrStored(ctx, f, c, use, func() ([]model.ACL, error) { return findNow(ctx, c, filters) })
}

func findNow(ctx context.Context, c *admin.Client, filters []model.ACLFilter) ([]model.ACL, error) {
	var out []model.ACL
	seen := map[model.ACL]bool{}
	for _, f := range filters {
		acls, err := c.ACLs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, a := range acls {
			if !seen[a] {
				seen[a] = true
				out = append(out, a)
			}
		}
	}
	plan.SortACLs(out)
	return out, nil
}

func newList(f *factory.Factory) *cobra.Command {
	var o filterFlags
	var export bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List rules, all or those that flags select",
		Long: `List rules. --pattern match finds every rule that applies to a name: literal, prefixed and wildcard ones. --export
prints them in the form that acls create --from-file reads.` + verb.StoredReadHelp,
		Example: `  kctl acls list
  kctl acls list --topic orders --pattern match
  kctl acls list --principal User:alice -o json
  kctl acls list --export > acls.yaml`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filters, _, err := o.filters()
			if err != nil {
				return err
			}
			c, err := f.Admin(cmd.Context())
			if err != nil {
				return err
			}
			acls, err := find(cmd.Context(), f, c, admin.StoredUse{}, filters)
			if err != nil {
				return err
			}
			if export {
				data, err := plan.EncodeACLFile(acls)
				if err == nil {
					_, err = f.IO.Out.Write(data)
				}
				return err
			}
			out := make([]rows.ACL, len(acls))
			for i, a := range acls {
				out[i] = rows.OfACL(a)
			}
			return verb.List(f, rows.ACLKind, out, nil)
		},
	}
	o.add(cmd.Flags())
	cmd.Flags().BoolVar(&export, "export", false, "print the form that acls create --from-file reads")
	completeFlags(f, cmd)
	return cmd
}

func completeFlags(f *factory.Factory, cmd *cobra.Command) {
	for flag, fn := range map[string]verb.Completer{
		"topic": verb.CompleteTopics(f), "group": verb.CompleteGroups(f), "operation": verb.Fixed(plan.ACLOperations("")...),
		"pattern": verb.Fixed("literal", "prefixed", "match", "any"), "permission": verb.Fixed("allow", "deny"),
	} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, fn) // the flag exists
		}
	}
}

// readFile reads the declarative form; - is stdin.
func readFile(f *factory.Factory, path string) ([]model.ACL, error) {
	var data []byte
	var err error
	if path == "-" {
		var b strings.Builder
		buf := make([]byte, 64<<10)
		for {
			n, rerr := f.IO.In.Read(buf)
			b.Write(buf[:n])
			if rerr != nil {
				break
			}
		}
		data = []byte(b.String())
	} else if data, err = os.ReadFile(path); err != nil {
		return nil, exit.Usagef("--from-file: %v", err)
	}
	acls, err := plan.ParseACLFile(data)
	if err != nil {
		return nil, exit.Usagef("--from-file %s: %v", path, err)
	}
	return acls, nil
}

// noExpectation is --expect when it is not given.
const noExpectation = -1

// addExpect declares --expect, and checkExpect holds the rules that are there against it.
func addExpect(fl *pflag.FlagSet, n *int) {
	fl.IntVar(n, "expect", noExpectation, "so many of these rules must be there now, else nothing is changed")
}

func checkExpect(expect, there int) error {
	if expect == noExpectation || expect == there {
		return nil
	}
	return &exit.Error{
		Code: exit.Failed, Msg: fmt.Sprintf("of these rules %d are there, expected were %d: somebody changed them; nothing was changed", there, expect),
		Hint: "leave --expect out to change them all the same",
	}
}

// apply creates and deletes rules through the steps of every change.
func apply(ctx context.Context, f *factory.Factory, c *admin.Client, command string, d plan.ACLDiff, use admin.StoredUse, flags factory.ChangeFlags) error {
	var rs []rows.ACLChange
	for _, g := range []struct {
		action string
		acls   []model.ACL
	}{{"create", d.Create}, {"delete", d.Delete}, {"none", d.Keep}} {
		for _, a := range g.acls {
			rs = append(rs, rows.ACLChange{Action: g.action, ACL: rows.OfACL(a)})
		}
	}
	return verb.Change[rows.ACLChange]{
		Flags: flags, Kind: rows.ACLChangeKind, Plan: rs, Needed: len(d.Create) + len(d.Delete), What: "change ACLs",
		Question: fmt.Sprintf("create %d and delete %d rule(s)?", len(d.Create), len(d.Delete)),
		Do:       func() (verb.Outcome[rows.ACLChange], error) { return write(ctx, c, command, d, use, rs) },
	}.Run(f)
}

// write creates, then deletes; what fails as a whole ends it. Its rules go into the journal too: whether they were changed all the
// same is not known when the answer was lost.
func write(ctx context.Context, c *admin.Client, command string, d plan.ACLDiff, use admin.StoredUse, rs []rows.ACLChange) (out verb.Outcome[rows.ACLChange], err error) {
	tried := 0
	try := func(acls []model.ACL, change func(context.Context, []model.ACL) ([]error, error)) error {
		if len(acls) == 0 {
			return nil
		}
		errs, err := change(ctx, acls)
		whole := errs == nil
		for i, a := range acls {
			r := &rs[tried+i]
			failed := err
			if !whole {
				failed = errs[i]
			}
			if r.Done = failed == nil; !r.Done {
				r.Error = failed.Error()
			}
			if !whole && failed != nil {
				out.Errs = append(out.Errs, failed)
			}
			out.Entries = append(out.Entries, entry(c, use, command, a, r.Action == "create", failed))
		}
		tried += len(acls)
		if !whole && err != nil { // they are made, and do not show yet
			out.Errs = append(out.Errs, err)
			err = nil
		}
		return err
	}
	if err := try(d.Create, c.CreateACLs); err != nil {
		return out, err
	}
	if err := try(d.Delete, c.DeleteACLs); err != nil {
		if len(d.Create) == 0 {
			return out, err
		}
		out.Errs = append(out.Errs, err)
	}
	out.Rows = rs
	return out, nil
}

// entry tells one rule's change with the command that takes it back.
func entry(c *admin.Client, use admin.StoredUse, command string, a model.ACL, created bool, err error) factory.Change {
	text := fmt.Sprintf("%s %s on %s %s from %s", a.Permission, a.Operation, strings.ToLower(a.PatternType), a.ResourceType+":"+a.ResourceName, a.Host)
	e := factory.Change{Cluster: c.ClusterID(), Command: command, Object: a.Principal, Result: journal.Done}
	name := map[string][]string{
		"Topic": {"--topic", a.ResourceName}, "Group": {"--group", a.ResourceName}, "Cluster": {"--cluster"}, "TransactionalId": {"--transactional-id", a.ResourceName},
		"DelegationToken": {"--delegation-token", a.ResourceName}, "User": {"--user-principal", a.ResourceName},
	}[a.ResourceType]
	common := slices.Concat(name, []string{"--pattern", strings.ToLower(a.PatternType), "--operation", a.Operation})
	if created {
		e.After = text
		undo := slices.Concat([]string{"acls", "delete"}, common, []string{"--principal", a.Principal, "--host", a.Host, "--permission", strings.ToLower(a.Permission), "--expect", "1"})
		e = e.WithUndo(verb.StoredUndo(c, use, undo)...)
	} else {
		who := strings.ToLower(a.Permission)
		e.Before = text
		undo := slices.Concat([]string{"acls", "create"}, common, []string{"--" + who + "-principal", a.Principal, "--" + who + "-host", a.Host, "--expect", "0"})
		e = e.WithUndo(verb.StoredUndo(c, use, undo)...)
	}
	if err != nil {
		e.Result = err.Error()
	}
	return e
}
