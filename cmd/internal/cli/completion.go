package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// bashWords stands in for a function of the package bash-completion where that is not installed, as on a rescue system:
// it joins the words that bash broke at = and :, of which TOPIC:PARTITION and key=value are made.
const bashWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE} i w blanks
    words=() cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        w=${COMP_WORDS[i]}
        blanks=${line%%[![:space:]]*}
        line=${line#"$blanks"}
        if ((${#words[@]} > 0)) && [[ -z $blanks && ($w == [=:]* || ${words[${#words[@]} - 1]} == *[=:]) ]]; then
            words[${#words[@]} - 1]+=$w
        else
            words+=("$w")
        fi
        line=${line#"$w"}
        if ((i == COMP_CWORD)); then
            cword=$((${#words[@]} - 1))
        fi
    done
    cur=${words[cword]}
    prev=
    if ((cword > 0)); then
        prev=${words[cword - 1]}
    fi
`

// bashFixes are changes to the generated script. Besides bashWords they keep commas, which printf %q would escape: lists
// such as TOPIC:0,1 would never match what was typed.
var bashFixes = [][2]string{
	{"    _get_comp_words_by_ref \"$@\" cur prev words cword\n", bashWords},
	{"comp=$(printf \"%q\" \"${compline%%$tab*}\")\n", "comp=$(printf \"%q\" \"${compline%%$tab*}\")\n        comp=${comp//\\\\,/,}\n"},
	{"COMPREPLY[0]=$(printf \"%q\" \"${COMPREPLY[0]%%$tab*}\")\n", "COMPREPLY[0]=$(printf \"%q\" \"${COMPREPLY[0]%%$tab*}\")\n        COMPREPLY[0]=${COMPREPLY[0]//\\\\,/,}\n"},
	{"COMPREPLY[0]=$(printf \"%q\" \"${COMPREPLY[0]}\")\n", "COMPREPLY[0]=$(printf \"%q\" \"${COMPREPLY[0]}\")\n            COMPREPLY[0]=${COMPREPLY[0]//\\\\,/,}\n"},
}

// bashScript is the generated script with bashFixes.
func bashScript(root *cobra.Command, describe bool) (string, error) {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, describe); err != nil {
		return "", err
	}
	s := b.String()
	for _, fix := range bashFixes {
		if strings.Count(s, fix[0]) != 1 {
			return "", fmt.Errorf("the generated script has another form than expected: no %q", fix[0])
		}
		s = strings.Replace(s, fix[0], fix[1], 1)
	}
	return s, nil
}

// addCompletion adds the verb that writes completion scripts, and what every command completes in the same way.
func addCompletion(f *factory.Factory, root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	if bash, _, err := root.Find([]string{"completion", "bash"}); err == nil {
		bash.RunE = func(*cobra.Command, []string) error {
			short, err := bash.Flags().GetBool("no-descriptions")
			if err != nil {
				return err
			}
			script, err := bashScript(root, !short)
			if err != nil {
				return err
			}
			_, err = io.WriteString(f.IO.Out, script)
			return err
		}
	}
	_ = root.RegisterFlagCompletionFunc(factory.FlagTimeout, verb.Fixed("1s", "10s", "30s", "1m")) // the flag exists
	verb.DynamicFlags(f, root)
	completeTree(f, root)
}

// completeTree gives every command what it lacks: no names of files where none is taken, topics and brokers where a
// flag wants them, and only what begins with what was typed, so that a shell is not handed 40,000 topics.
func completeTree(f *factory.Factory, c *cobra.Command) {
	switch {
	case c.ValidArgsFunction != nil:
		c.ValidArgsFunction = beginning(c.ValidArgsFunction)
	case !strings.Contains(c.Use, "FILE") && !strings.Contains(c.Use, "DIR"):
		c.ValidArgsFunction = verb.Fixed()
	}
	c.LocalNonPersistentFlags().VisitAll(func(fl *pflag.Flag) {
		if _, ok := c.GetFlagCompletionFunc(fl.Name); !ok && !takesFile(c, fl) {
			_ = c.RegisterFlagCompletionFunc(fl.Name, flagWords(f, fl)) // the flag exists and has none
		}
	})
	for _, sub := range c.Commands() {
		if sub.Name() != "completion" {
			completeTree(f, sub)
		}
	}
}

// beginning keeps a completion within its time and to words that begin with what was typed.
func beginning(fn verb.Completer) verb.Completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), verb.CompletionTime)
		defer cancel()
		cmd.SetContext(ctx)
		words, directive := fn(cmd, args, typed)
		return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, typed) }), directive
	}
}

// takesFile tells the flags whose value names a file.
func takesFile(c *cobra.Command, fl *pflag.Flag) bool {
	switch name := fl.Name; {
	case strings.HasSuffix(name, "file"), slices.Contains([]string{"out", "log", "backup", "export"}, name):
		return true
	case name == "expect":
		return strings.Contains(fl.Usage, "file") // of the verb that compares with one
	}
	return strings.Contains(c.CommandPath(), " docs ")
}

// oneOf finds the words of a flag in its description, as in "asked: auto|protocol|zookeeper".
var oneOf = regexp.MustCompile(`[a-z]+(?:\|[a-z]+)+`)

// flagWords completes a flag by what its name or its description says.
func flagWords(f *factory.Factory, fl *pflag.Flag) verb.Completer {
	switch fl.Name {
	case "topic":
		return verb.CompleteTopics(f)
	case "leader", "expect-leader", "broker-id":
		return brokerList(f, false)
	case "isr", "order", "drain", "to":
		if fl.Value.Type() != "string" || fl.Name == "isr" {
			return brokerList(f, true)
		}
	case "via":
		if !strings.Contains(fl.Usage, "|") {
			return verb.Fixed("auto", "api", "znode")
		}
	case "source":
		return verb.Fixed("protocol", "zookeeper")
	case "mechanism":
		return verb.Fixed("SCRAM-SHA-256", "SCRAM-SHA-512")
	}
	if words := oneOf.FindString(fl.Usage); words != "" {
		return verb.Fixed(strings.Split(words, "|")...)
	}
	return verb.Fixed()
}

// brokerList offers broker ids; where a list is taken, also behind a comma those that are not in it yet.
func brokerList(f *factory.Factory, list bool) verb.Completer {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), verb.CompletionTime)
		defer cancel()
		head, given := "", []string(nil)
		if i := strings.LastIndexByte(typed, ','); list && i >= 0 {
			head, given = typed[:i+1], strings.Split(typed[:i], ",")
		}
		var out []string
		for _, word := range verb.BrokerIDs(ctx, f) {
			if id, _, _ := strings.Cut(word, "\t"); !slices.Contains(given, id) {
				out = append(out, head+word)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
