// Package users holds the verbs on users whose passwords the cluster keeps (SCRAM).
package users

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/term"
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

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("users", "Users whose SCRAM passwords the cluster keeps", newList(f), newDescribe(f), newSet(f), newDelete(f))
}

func show(ctx context.Context, f *factory.Factory, names []string) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	creds, err := credentials(ctx, f, c, admin.StoredUse{}, names)
	if err != nil {
		return err
	}
	out := make([]rows.User, len(creds))
	for i, cr := range creds {
		out[i] = rows.User{Name: cr.User, Mechanism: cr.Mechanism, Iterations: cr.Iterations}
	}
	return verb.List(f, rows.UserKind, out, nil)
}

// credentials asks the brokers, or ZooKeeper when none answers.
func credentials(ctx context.Context, f *factory.Factory, c *admin.Client, use admin.StoredUse, names []string) ([]model.ScramCredential, error) {
	return verb.OrStored(ctx, f, c, use, func() ([]model.ScramCredential, error) { return c.ScramUsers(ctx, names) })
}

func newList(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List users with their mechanisms", Long: "List users with their mechanisms." + verb.StoredReadHelp, Example: "  kctl users list -o json", Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), f, nil) },
	}
}

func newDescribe(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "describe USER...", Short: "Show the credentials of users; what could be derived from a password is never shown",
		Long:    "Show the credentials of users; what could be derived from a password is never shown." + verb.StoredReadHelp,
		Example: "  kctl users describe alice", Args: verb.Args(1, -1, "at least one user name"),
		RunE:              func(cmd *cobra.Command, args []string) error { return show(cmd.Context(), f, args) },
		ValidArgsFunction: complete(f),
	}
}

func complete(f *factory.Factory) verb.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), verb.CompletionTime)
		defer cancel()
		c, err := f.Admin(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		creds, err := c.ScramUsers(ctx, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, cr := range creds {
			if !slices.Contains(names, cr.User) && !slices.Contains(args, cr.User) {
				names = append(names, cr.User)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// mechanisms reads --mechanism; none means all.
func mechanisms(given []string) ([]string, error) {
	if len(given) == 0 {
		return admin.ScramMechanisms(), nil
	}
	var out []string
	for _, g := range given {
		m, err := plan.ACLWord("--mechanism", g, admin.ScramMechanisms())
		if err != nil {
			return nil, admin.NewBadInput(err)
		}
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out, nil
}

type setOptions struct {
	f          *factory.Factory
	user       string
	mechanisms []string
	iterations int32
	password   string
	file       string
	env        string
	use        admin.StoredUse
	change     factory.ChangeFlags
}

func newSet(f *factory.Factory) *cobra.Command {
	o := &setOptions{f: f, use: admin.StoredUse{Write: true}}
	var given []string
	cmd := &cobra.Command{
		Use:   "set USER",
		Short: "Create a user, or give it a new password",
		Long: `Create a user, or give it a new password, in SCRAM-SHA-256 and SCRAM-SHA-512 or those named by --mechanism. The
password is asked for on a terminal, or read from a file (its first line) or a variable. Only a salted hash is sent.` + verb.StoredHelp + `

So the brokers' own user can be there before the first of them starts.`,
		Example: `  kctl users set alice
  kctl users set alice --password-file /run/secrets/alice --yes
  KAFKA_PW=... kctl users set alice --password-env KAFKA_PW --mechanism SCRAM-SHA-512 --iterations 10000 --yes
  kctl users set broker --password-file /run/secrets/broker -z 127.0.0.1:2181/kafka --yes   # before the first start`,
		Args: verb.Args(1, 1, "one user name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.user = args[0]
			if o.mechanisms, err = mechanisms(given); err != nil {
				return err
			}
			if o.iterations < admin.ScramIterationsMin || o.iterations > admin.ScramIterationsMax {
				return exit.Usagef("--iterations %d is not between %d and %d", o.iterations, admin.ScramIterationsMin, admin.ScramIterationsMax)
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			if o.password, err = o.readPassword(cmd.Flags().Changed("password")); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: complete(f),
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&given, "mechanism", nil, "SCRAM-SHA-256 or SCRAM-SHA-512, repeatable (default both)")
	fl.Int32Var(&o.iterations, "iterations", admin.ScramIterationsDefault, "rounds of hashing, 4096 to 16384")
	fl.StringVar(&o.file, "password-file", "", "read the password from the first line of a file (-: stdin)")
	fl.StringVar(&o.env, "password-env", "", "read the password from this environment variable")
	fl.StringVar(&o.password, "password", "", "the password itself: others can see it in the list of processes")
	verb.AddBreakGlass(fl, &o.use.BreakGlass)
	factory.AddChangeFlags(fl, &o.change)
	_ = cmd.RegisterFlagCompletionFunc("mechanism", verb.Fixed(admin.ScramMechanisms()...)) // the flag exists
	return cmd
}

func (o *setOptions) readPassword(byFlag bool) (string, error) {
	ways := 0
	for _, w := range []bool{byFlag, o.file != "", o.env != ""} {
		if w {
			ways++
		}
	}
	switch {
	case ways > 1:
		return "", exit.Usagef("give the password in one way: --password-file, --password-env or --password")
	case byFlag:
		o.f.Say("warning: a password on the command line can be seen by everybody on this machine and stays in the shell's history")
		return notEmpty(o.password)
	case o.env != "":
		return notEmpty(o.f.Getenv(o.env))
	case o.file != "":
		return o.fromFile()
	}
	return o.prompt()
}

func notEmpty(p string) (string, error) {
	if p == "" {
		return "", exit.Usagef("the password is empty")
	}
	return p, nil
}

// passwordMax bounds what is read of a file, in bytes.
const passwordMax = 4096

func (o *setOptions) fromFile() (string, error) {
	in := o.f.IO.In
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return "", exit.Usagef("--password-file: %v", err)
		}
		defer file.Close()
		in = file
	}
	buf := make([]byte, passwordMax)
	n := 0
	for n < len(buf) {
		m, err := in.Read(buf[n:])
		n += m
		if err != nil || strings.Contains(string(buf[:n]), "\n") {
			break
		}
	}
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return notEmpty(strings.TrimSuffix(line, "\r"))
}

// prompt asks twice without showing what is typed.
func (o *setOptions) prompt() (string, error) {
	file, ok := o.f.IO.In.(*os.File)
	if !ok || !o.f.IO.InTTY || !o.f.IO.ErrTTY {
		return "", &exit.Error{Code: exit.Usage, Msg: "there is no terminal to ask for the password on", Hint: "--password-file FILE (- is stdin) or --password-env VARIABLE"}
	}
	var said [2]string
	for i, text := range []string{"password for " + o.user + ": ", "again: "} {
		fmt.Fprint(o.f.IO.Err, text)
		p, err := term.ReadPassword(file.Fd())
		fmt.Fprintln(o.f.IO.Err)
		if err != nil {
			return "", exit.Usagef("read the password: %v", err)
		}
		said[i] = string(p)
	}
	if said[0] != said[1] {
		return "", exit.Usagef("the two passwords differ; nothing was changed")
	}
	return notEmpty(said[0])
}

func (o *setOptions) run(ctx context.Context) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	have, err := credentials(ctx, o.f, c, o.use, nil)
	if err != nil {
		return err
	}
	var creds []model.ScramCredential
	var rs []rows.UserChange
	replaced := false
	for _, m := range o.mechanisms {
		creds = append(creds, model.ScramCredential{User: o.user, Mechanism: m, Iterations: o.iterations})
		action := "create"
		if slices.ContainsFunc(have, func(h model.ScramCredential) bool { return h.User == o.user && h.Mechanism == m }) {
			action, replaced = "replace", true
		}
		rs = append(rs, rows.UserChange{Name: o.user, Mechanism: m, Action: action, Iterations: o.iterations})
	}
	return verb.Change[rows.UserChange]{
		Flags: o.change, Kind: rows.UserChangeKind, Plan: rs, Needed: len(rs), What: "set the password of " + o.user,
		Question: "set the password of " + o.user + "?",
		Do: func() (out verb.Outcome[rows.UserChange], err error) {
			err = c.SetScramUser(ctx, creds, o.password)
			e := factory.Change{Cluster: c.ClusterID(), Command: "users set", Object: o.user, After: strings.Join(o.mechanisms, " "), Result: journal.Done}
			if replaced {
				e.Before, e.Undo = "another password", "by hand: the password before is not known"
			} else {
				e = e.WithUndo(verb.StoredUndo(c, o.use, undoSet(creds))...)
			}
			return finish(rs, e, err)
		},
	}.Run(o.f)
}

// undoSet deletes what was created and nothing else, as long as it is there as it was made. Whether its password was
// changed since nobody can tell.
func undoSet(creds []model.ScramCredential) []string {
	undo := []string{"users", "delete", creds[0].User}
	for _, cr := range creds {
		undo = append(undo, "--mechanism", cr.Mechanism, "--expect", fmt.Sprintf("%s=%d", cr.Mechanism, cr.Iterations))
	}
	return undo
}

func finish(rs []rows.UserChange, e factory.Change, err error) (verb.Outcome[rows.UserChange], error) {
	if err != nil {
		e.Result = err.Error()
	}
	for i := range rs {
		rs[i].Done = err == nil
	}
	return verb.Outcome[rows.UserChange]{Rows: rs, Entries: []factory.Change{e}}, err
}

func newDelete(f *factory.Factory) *cobra.Command {
	var given, expect []string
	use := admin.StoredUse{Write: true}
	var change factory.ChangeFlags
	cmd := &cobra.Command{
		Use:   "delete USER",
		Short: "Take a user's passwords away, of all mechanisms or the named ones",
		Long: `Take a user's passwords away, of all mechanisms or the named ones. --expect MECHANISM=ITERATIONS refuses, with exit
code 1, unless the user has such credentials now. That a password is another one the cluster does not tell.` + verb.StoredHelp,
		Example: `  kctl users delete alice
  kctl users delete alice --mechanism SCRAM-SHA-256 --yes`,
		Args: verb.Args(1, 1, "one user name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ms, err := mechanisms(given)
			if err == nil {
				err = checkExpectations(expect)
			}
			if err == nil {
				err = f.Writable()
			}
			if err != nil {
				return err
			}
			return runDelete(cmd.Context(), f, args[0], ms, expect, use, change)
		},
		ValidArgsFunction: complete(f),
	}
	cmd.Flags().StringArrayVar(&given, "mechanism", nil, "SCRAM-SHA-256 or SCRAM-SHA-512, repeatable (default all)")
	cmd.Flags().StringArrayVar(&expect, "expect", nil, "MECHANISM=ITERATIONS that must be there, else nothing is deleted; repeatable")
	verb.AddBreakGlass(cmd.Flags(), &use.BreakGlass)
	factory.AddChangeFlags(cmd.Flags(), &change)
	return cmd
}

// checkExpectations refuses what is not MECHANISM=ITERATIONS.
func checkExpectations(expect []string) error {
	for _, x := range expect {
		m, n, _ := strings.Cut(x, "=")
		if _, err := strconv.ParseInt(n, 10, 32); err != nil || !slices.Contains(admin.ScramMechanisms(), m) {
			return exit.Usagef("--expect %q is not MECHANISM=ITERATIONS, such as SCRAM-SHA-512=8192", x)
		}
	}
	return nil
}

func runDelete(ctx context.Context, f *factory.Factory, user string, ms, expect []string, use admin.StoredUse, change factory.ChangeFlags) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	have, err := credentials(ctx, f, c, use, []string{user})
	if err != nil {
		return err
	}
	if err := plan.CheckExpectedScram(user, have, expect); err != nil {
		return &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed", Hint: "leave --expect out to delete them all the same"}
	}
	have = slices.DeleteFunc(have, func(h model.ScramCredential) bool { return !slices.Contains(ms, h.Mechanism) })
	if len(have) == 0 {
		return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("user %s has no credentials of %s", user, strings.Join(ms, ", "))}
	}
	var rs []rows.UserChange
	var gone []string
	for _, h := range have {
		rs = append(rs, rows.UserChange{Name: h.User, Mechanism: h.Mechanism, Action: "delete"})
		gone = append(gone, h.Mechanism)
	}
	return verb.Change[rows.UserChange]{
		Flags: change, Kind: rows.UserChangeKind, Plan: rs, Needed: len(rs), What: "delete credentials of " + user,
		Question: fmt.Sprintf("delete %d credential(s) of %s?", len(rs), user),
		Do: func() (verb.Outcome[rows.UserChange], error) {
			err := c.DeleteScramUser(ctx, have)
			return finish(rs, factory.Change{
				Cluster: c.ClusterID(), Command: "users delete", Object: user, Before: strings.Join(gone, " "), Result: journal.Done,
				Undo: "by hand: kctl users set " + journal.Quote(user) + " with a password (the one before is not known)",
			}, err)
		},
	}.Run(f)
}
