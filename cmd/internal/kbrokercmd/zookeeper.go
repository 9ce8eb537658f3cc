package kbrokercmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kctl/zkutil/zkserver"
)

func (a *app) zookeeperCmd() *cobra.Command {
	var cfg zkserver.Config
	cmd := &cobra.Command{
		Use:   "zookeeper --data-dir DIR",
		Short: "Run the embedded ZooKeeper-protocol server",
		Long: `Run the embedded ZooKeeper-protocol server alone: a single node, for development, tests and demos. Use a
ZooKeeper ensemble in production. Every acknowledged write survives a crash.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger()
			if err != nil {
				return err
			}
			if cfg.DataDir == "" {
				return usageError{fmt.Errorf("--data-dir is required")}
			}
			cfg.Logger = log
			srv, err := zkserver.Start(context.WithoutCancel(cmd.Context()), cfg)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "ready")
			select {
			case <-cmd.Context().Done():
				return srv.Close()
			case <-srv.Done():
				return srv.Err()
			}
		},
	}
	cmd.Flags().StringVar(&cfg.DataDir, "data-dir", "", "folder of the log and snapshots")
	cmd.Flags().StringVar(&cfg.Addr, "listen", "127.0.0.1:2181", "host:port to listen on")
	cmd.Flags().DurationVar(&cfg.TickTime, "tick-time", 2*time.Second, "unit of session time-outs")
	cmd.Flags().BoolVar(&cfg.Fsync, "fsync", true, "sync every write to the disk before it is answered")
	return cmd
}
