package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// shortOutput is -o with its value, alone or behind flags without a value.
var shortOutput = regexp.MustCompile(`^-[vyh]*o=?(.*)$`)

// outputOf finds the value of -o among arguments that are not parsed yet, or whose parsing stopped before it, so that an
// error has the form that was asked for. It is empty when there is none.
func outputOf(args []string) string {
	out := ""
	next := func(i int) string {
		if i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	for i, a := range args {
		switch m := shortOutput.FindStringSubmatch(a); {
		case a == "--":
			return out
		case a == "--"+factory.FlagOutput, m != nil && m[1] == "":
			out = next(i)
		case strings.HasPrefix(a, "--"+factory.FlagOutput+"="):
			_, out, _ = strings.Cut(a, "=")
		case m != nil:
			out = m[1]
		}
	}
	return out
}

// strict makes cobra's own commands refuse what they do not know, as all others do.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, verb.Group
		case "help":
			c.Run = nil
			c.RunE = func(_ *cobra.Command, args []string) error { return help(root, args) }
		}
	}
}

func help(root *cobra.Command, args []string) error {
	target, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		e := &exit.Error{Code: exit.Usage, Msg: "there is no command " + strings.Join(append([]string{root.Name()}, args...), " "), Hint: target.CommandPath() + " --help"}
		var names []string
		for _, c := range target.Commands() {
			names = append(names, c.Name())
		}
		if near, ok := plan.Nearest(rest[0], names); ok {
			e.Hint = "did you mean \"" + target.CommandPath() + " " + near + "\"?"
		}
		return e
	}
	target.InitDefaultHelpFlag()
	return target.Help()
}

// flagError makes a usage error of a flag that cannot be read; the one that was meant is named.
func flagError(cmd *cobra.Command, err error) error {
	e := &exit.Error{Code: exit.Usage, Msg: err.Error()}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return e
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near, ok := plan.Nearest(unknown.GetSpecifiedName(), names); ok {
		e.Hint = fmt.Sprintf("did you mean --%s? %s --help", near, cmd.CommandPath())
	}
	return e
}

// withHelp adds to a usage error without a hint where the command is explained.
func withHelp(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*exit.Error](err); ok && cmd != nil && e.Code == exit.Usage && e.Hint == "" && e.Msg != "" {
		return &exit.Error{Code: e.Code, Msg: e.Msg, Hint: cmd.CommandPath() + " --help"}
	}
	return err
}
