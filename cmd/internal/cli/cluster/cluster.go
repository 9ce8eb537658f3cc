// Package cluster holds the verbs on the cluster as a whole.
package cluster

import (
	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("cluster", "The cluster as a whole: describe it, check its health, compare its sources", newDescribe(f, nil), newHealth(f, nil), newDiff(f))
}
