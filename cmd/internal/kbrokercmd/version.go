package kbrokercmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/version"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := version.Get()
			_, err := fmt.Fprintf(a.stdout, "kbroker %s (commit %s, built %s, %s)\n", v.Version, orNone(v.Commit), orNone(v.Date), v.Go)
			return err
		},
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
