// Package elect holds the leader elections.
package elect

import (
	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("elect", "Leader elections", newPreferred(f), newUnclean(f), newLeader(f))
}
