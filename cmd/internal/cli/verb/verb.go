// Package verb holds what the commands of all nouns share: how arguments are checked, how groups answer,
// completion from the cluster, watching, and what a partial answer becomes.
package verb

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
)

// Group is the RunE of a command that only holds others: help, or an error that names the nearest verb.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()), Hint: cmd.CommandPath() + " --help"}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near, ok := plan.Nearest(args[0], names); ok {
		e.Hint = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near)
	}
	return e
}

// NewGroup makes a command that only holds others.
func NewGroup(use, short string, verbs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: Group}
	g.AddCommand(verbs...)
	return g
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// Args demands between low and high arguments; a negative high is no bound.
func Args(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return exit.Usagef("%s needs %s", cmd.CommandPath(), what)
		case high >= 0 && len(args) > high:
			return exit.Usagef("%s takes %s, got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// Targets parses TOPIC[:P,..] arguments.
func Targets(args []string) ([]plan.Target, error) {
	t, err := plan.ParseTargets(args)
	if err != nil {
		return nil, admin.NewBadInput(err)
	}
	return t, nil
}

// TopicFilter compiles --topic: the whole name must match, unless the expression has an anchor of its own.
func TopicFilter(expr string) (*regexp.Regexp, error) {
	if expr == "" {
		return nil, nil
	}
	full := expr
	if !strings.ContainsAny(expr, "^$") {
		full = "^(?:" + expr + ")$"
	}
	re, err := regexp.Compile(full)
	if err != nil {
		return nil, exit.Usagef("--topic %q is not a regular expression: %v", expr, err)
	}
	return re, nil
}

// Partial says on stderr which parts of an answer are missing and makes the error that sets the exit code;
// nil when nothing is missing.
func Partial(f *factory.Factory, problems []model.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	var parts []string
	for _, p := range problems {
		parts = append(parts, p.Object+": "+p.Message)
	}
	return &exit.Error{Code: exit.Partial, Msg: "partly answered: " + strings.Join(parts, "; ")}
}

// PartialRows is Partial for the errors of an answer that holds them.
func PartialRows(errs []rows.ErrorRow) error {
	if len(errs) == 0 {
		return nil
	}
	parts := make([]string, len(errs))
	for i, e := range errs {
		parts[i] = e.Object + ": " + e.Message
	}
	return &exit.Error{Code: exit.Partial, Msg: "partly answered: " + strings.Join(parts, "; ")}
}

// NothingDone is the error when every object has its problem: the first of them behind what is said before it. When an authorizer
// refused all of them it is one of permission, with the hint that helps against that.
func NothingDone(before string, problems []model.Problem, hint string) error {
	e := &exit.Error{Code: exit.Failed, Msg: before + problems[0].Object + ": " + problems[0].Message, Hint: hint}
	if help, ok := admin.Denied(problems); ok {
		e.Code, e.Hint = exit.Unauthorized, help
	}
	return e
}

// List prints rows and reports what is missing.
func List[T any](f *factory.Factory, k rows.Kind[T], items []T, problems []model.Problem) error {
	p, err := f.Printer()
	if err != nil {
		return err
	}
	if err := output.List(p, k, items, rows.Errors(problems)); err != nil {
		return err
	}
	if hint, ok := admin.Denied(problems); ok && len(items) == 0 {
		return &exit.Error{Code: exit.Unauthorized, Msg: problems[0].Object + ": " + problems[0].Message, Hint: hint}
	}
	if len(items) == 0 && (p.Format == output.Table || p.Format == output.Wide) && len(problems) == 0 {
		f.Say("no %s", k.Title)
	}
	return Partial(f, problems)
}

// One prints one row and reports what is missing.
func One[T any](f *factory.Factory, k rows.Kind[T], item T, problems []model.Problem) error {
	p, err := f.Printer()
	if err != nil {
		return err
	}
	if err := output.One(p, k, item); err != nil {
		return err
	}
	return Partial(f, problems)
}

// Watch looks every interval until ctx ends or a look says stop; it returns the error of the last whole look. One that the end of
// ctx cuts off does not count, and must not be shown: a look asks ctx.Err when it has read, for what could not be read since
// is not missing, and rows that say "context canceled" help nobody. When there was no whole one, an interrupt is a good
// end and the end of the time is the error that it made.
func Watch(ctx context.Context, every time.Duration, look func() (stop bool, err error)) error {
	var last error
	for first := true; ; first = false {
		stop, err := look()
		if _, told := errors.AsType[*exit.Error](err); err != nil && ctx.Err() != nil && !told {
			if first && !errors.Is(ctx.Err(), context.Canceled) {
				return err
			}
			return last
		}
		if last = err; stop || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(every):
		}
	}
}

// Fixed offers fixed words.
func Fixed(words ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// DynamicFlags adds completion to the global flags.
func DynamicFlags(f *factory.Factory, root *cobra.Command) {
	register := func(flag string, fn func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)) {
		// The only error is a flag that does not exist, which a test would see.
		_ = root.RegisterFlagCompletionFunc(flag, fn)
	}
	completeCommonFlags(f, root)
	register(factory.FlagOutput, Fixed(output.Formats()...))
	register(factory.FlagBootstrap, Fixed())
	register(factory.FlagZooKeeper, Fixed())
	register(factory.FlagContext, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		file, err := f.ReadFile()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return file.SortedNames(), cobra.ShellCompDirectiveNoFileComp
	})
	register(factory.FlagProperty, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, p := range admin.PropertyNames() {
			out = append(out, p[0]+"=\t"+p[1])
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}
