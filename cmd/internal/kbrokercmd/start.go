package kbrokercmd

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"kctl/broker"
	"kctl/broker/config"
)

func (a *app) startCmd() *cobra.Command {
	var sets []string
	cmd := &cobra.Command{
		Use:   "start [server.properties]",
		Short: "Run one broker",
		Long: `Run one broker. The file has Kafka's keys; --set adds to it or overrides it. An unknown key is a warning, a bad
value ends the command with exit code 2. Prints ready when the broker is registered and serves metadata.`,
		Example: `  kbroker start config/server.properties
  kbroker start --set broker.id=1 --set zookeeper.connect=127.0.0.1:2181 --set log.dirs=/var/lib/kbroker`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := a.logger()
			if err != nil {
				return err
			}
			static, err := loadConfig(args, sets, log)
			if err != nil {
				return usageError{err}
			}
			return a.runBroker(cmd.Context(), broker.New(static, broker.Options{Logger: log}))
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "configuration as key=value; may be repeated")
	return cmd
}

// loadConfig reads the file, if any, and the --set values, and logs the warnings.
func loadConfig(files, sets []string, log *slog.Logger) (*config.Broker, error) {
	var props []config.Property
	for _, f := range files {
		p, err := config.ParseFile(f)
		if err != nil {
			return nil, err
		}
		props = append(props, p...)
	}
	for _, s := range sets {
		p, err := config.ParseSet(s)
		if err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
		props = append(props, p)
	}
	static, warnings, err := config.Load(config.Merge(props))
	for _, w := range warnings {
		log.Warn(w)
	}
	return static, err
}

// runBroker runs b until ctx ends and prints ready once.
func (a *app) runBroker(ctx context.Context, b *broker.Broker) error {
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-b.Ready():
		fmt.Fprintln(a.stdout, "ready")
	}
	return <-done
}
