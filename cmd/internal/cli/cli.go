// Package cli is kctl: the root command, its global flags, and how errors become exit codes. Verbs live in
// packages named after their noun, one file per verb.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/acls"
	"kctl/cmd/internal/cli/brokers"
	"kctl/cmd/internal/cli/cluster"
	"kctl/cmd/internal/cli/configs"
	"kctl/cmd/internal/cli/contexts"
	"kctl/cmd/internal/cli/controller"
	"kctl/cmd/internal/cli/doctor"
	"kctl/cmd/internal/cli/dump"
	"kctl/cmd/internal/cli/elect"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/groups"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/lab"
	"kctl/cmd/internal/cli/lag"
	"kctl/cmd/internal/cli/leaderandisr"
	"kctl/cmd/internal/cli/leftovers"
	"kctl/cmd/internal/cli/logdirs"
	"kctl/cmd/internal/cli/meta"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/partitions"
	"kctl/cmd/internal/cli/quotas"
	"kctl/cmd/internal/cli/reassign"
	"kctl/cmd/internal/cli/records"
	"kctl/cmd/internal/cli/topics"
	"kctl/cmd/internal/cli/transactions"
	"kctl/cmd/internal/cli/transitions"
	"kctl/cmd/internal/cli/tuicmd"
	"kctl/cmd/internal/cli/users"
	"kctl/cmd/internal/cli/verb"
	"kctl/cmd/internal/cli/zk"
	"kctl/tui/quiet"
)

// Main runs kctl with the process' arguments, streams and environment and returns the exit code.
// An interrupt ends the command in order; a second one kills it. So does the end of the terminal, as when a connection to the
// machine breaks, unless it is ignored (nohup): a change between two steps takes the first one back. A reader of stdout or
// stderr that goes away kills nothing either: a change goes on to its end.
func Main() int {
	quiet.Restore()
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // writes then fail with EPIPE instead of ending the process
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, os.Args[1:], iostreams.System(), os.Getenv)
}

// Run runs kctl once. It may be called by tests, any number of times in one process.
func Run(ctx context.Context, args []string, streams *iostreams.IOStreams, getenv func(string) string) int {
	f := factory.New(streams, getenv)
	f.EarlyOutput = outputOf(args)
	root := NewRoot(f)
	root.SetArgs(args)
	if wantsSettingsList(args) {
		return int(report(f, meta.ListSettings(f)))
	}
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		started = true
		if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
			return nil // the flags of the line that is typed are parsed behind this
		}
		_, err := f.Settings() // bad settings are refused before anything is contacted
		return err
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		err = usage(cmd, err)
	}
	if _, told := errors.AsType[*exit.Error](err); errors.Is(err, context.Canceled) && ctx.Err() != nil && !told {
		err = &exit.Error{Code: exit.Failed, Msg: "interrupted"}
	}
	err = withHelp(cmd, err)
	if cerr := f.Close(); err == nil && cerr != nil && ctx.Err() == nil {
		err = cerr
	}
	return int(report(f, err))
}

// NewRoot builds the command tree.
func NewRoot(f *factory.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "kctl",
		Short: "Look into and mend Kafka clusters that are coordinated through ZooKeeper",
		Long: `kctl looks into and mends Kafka-protocol clusters: leaderAndISR, elections, reassignments, the high watermark and
log end of every follower, leadership transitions that are stuck, and everything else an operator changes. doctor runs
every check and names one command for each finding; history undo takes changes back.

It speaks the wire protocol (-b) and ZooKeeper (-z). With one of them it does all that this one can tell. Apache Kafka
is served in ZooKeeper and in KRaft mode.`,
		Example: `  kctl cluster health                              # exit 0 healthy, 10 with findings, 5 unreachable
  kctl doctor -z zk1:2181/kafka                    # every finding, and the command that mends it
  kctl -b broker1:9092 partitions list --under-replicated
  kctl -z zk1:2181/kafka leader-and-isr get orders:0
  kctl lag replicas orders -o json`,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs,
		RunE: verb.Group,
	}
	root.SetIn(f.IO.In)
	root.SetOut(f.IO.Out)
	root.SetErr(f.IO.Err)
	root.SetGlobalNormalizationFunc(factory.Aliases)
	factory.AddGlobalFlags(root.PersistentFlags())
	f.Flags = root.PersistentFlags()
	root.SetFlagErrorFunc(flagError)
	root.SetHelpTemplate(root.HelpTemplate() + exitCodes(root))
	for _, c := range []*cobra.Command{
		cluster.New(f), controller.New(f), brokers.New(f), topics.New(f), partitions.New(f), leaderandisr.New(f),
		elect.New(f), reassign.New(f), lag.New(f), transitions.New(f), records.NewProduce(f), records.NewConsume(f), zk.New(f), acls.New(f), users.New(f), quotas.New(f), configs.New(f), dump.New(f),
		doctor.New(f), leftovers.New(f), lab.New(f),
		groups.New(f), transactions.New(f),
		logdirs.New(f),
		tuicmd.New(f), contexts.New(f), meta.NewHistory(f), meta.NewSchema(f), meta.NewDocs(f, root), meta.NewVersion(f),
	} {
		root.AddCommand(c)
	}
	addCompletion(f, root)
	strict(root)
	return root
}

// exitCodes is printed below the help of the root command only.
func exitCodes(root *cobra.Command) string {
	var b strings.Builder
	for _, e := range exit.Table() {
		fmt.Fprintf(&b, "  %2d  %s\n", e.Code, e.Meaning)
	}
	return "{{if not .HasParent}}\nExit codes:\n" + b.String() + "{{end}}"
}

// wantsSettingsList finds -X list, which needs no verb.
func wantsSettingsList(args []string) bool {
	for i, a := range args {
		// help is what rpk calls it.
		if a == "-X" && i+1 < len(args) && (args[i+1] == "list" || args[i+1] == "help") || a == "-Xlist" || a == "-Xhelp" || a == "--property=list" {
			return true
		}
	}
	return false
}

// usage turns an error of parsing into a usage error that names the command's help.
func usage(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Hint != "" {
		return err
	}
	msg := strings.TrimSpace(err.Error())
	hint := ""
	if cmd != nil {
		hint = fmt.Sprintf("%s --help", cmd.CommandPath())
	}
	return &exit.Error{Code: exit.Usage, Msg: msg, Hint: hint}
}

// unreachableHint is said where nothing better is known.
const unreachableHint = "check the addresses (-b, -z, their variables or the context) and that the servers run; --timeout gives them more time"

// report prints an error once, to stderr, and returns its code. It is the only printer of errors.
func report(f *factory.Factory, err error) exit.Code {
	code := exit.CodeOf(err)
	if err == nil || err.Error() == "" {
		return code
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(pe.Err, syscall.EPIPE) {
		return exit.Failed // the reader of our output went away; an EPIPE of a connection is another thing, and is said
	}
	hint := exit.HintOf(err)
	if hint == "" && code == exit.Unreachable {
		hint = unreachableHint
	}
	if f.Machine() {
		enc := json.NewEncoder(f.IO.Err)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(exit.Document{APIVersion: rows.APIVersion, Kind: "Error", Code: code, Error: err.Error(), Hint: hint}) // stderr is all there is
		return code
	}
	fmt.Fprintf(f.IO.Err, "kctl: %s\n", output.Clean(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if hint != "" {
		fmt.Fprintf(f.IO.Err, "  hint: %s\n", hint)
	}
	return code
}
