package kbrokercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kctl/broker"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 5
)

// usageError marks what the user got wrong before anything was done.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// app carries the streams and the log level of one invocation.
type app struct {
	stdout, stderr io.Writer
	logLevel       string
	logFormat      string
}

// Main runs one command line and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signalContext()
	defer stop()
	tuneRuntime()
	return run(ctx, args, stdout, stderr)
}

// run is Main without process-wide state, for tests.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr}
	cmd := a.root()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "kbroker: %v\n", err)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, broker.ErrUnreachable):
		return exitUnreachable
	}
	return exitFailed
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kbroker",
		Short:         "A Kafka-protocol broker coordinated through ZooKeeper",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.PersistentFlags().StringVar(&a.logLevel, "log-level", "info", "least severe messages that are logged: debug, info, warn or error")
	cmd.PersistentFlags().StringVar(&a.logFormat, "log-format", "text", "form of the log: text or json")
	cmd.AddCommand(a.startCmd(), a.zookeeperCmd(), a.devCmd(), a.versionCmd(), a.docsCmd())
	return cmd
}

// usageArgs turns cobra's complaints about arguments into usage errors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// logger writes to stderr.
func (a *app) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, usageError{fmt.Errorf("invalid --log-level %q: must be debug, info, warn or error", a.logLevel)}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.stderr, opts)), nil
	}
	return nil, usageError{fmt.Errorf("invalid --log-format %q: must be text or json", a.logFormat)}
}

// impatience is how long after the first signal another one means it: supervisors and shells send one stop to a
// process and to its group, which arrives twice.
const impatience = time.Second

// signalContext ends with the first SIGINT or SIGTERM; a later one ends the process.
func signalContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		first := time.Now()
		cancel()
		for range signals {
			if time.Since(first) > impatience {
				os.Exit(exitFailed)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// heapLimitBytes is the soft limit of the heap when GOMEMLIMIT is unset: the page cache needs the rest.
const heapLimitBytes = 2 << 30

// tuneRuntime lets the small heap of a broker grow a little between collections, unless the user decides
// otherwise: most garbage is short-lived and the live heap is tiny next to the page cache.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimitBytes)
	}
}
