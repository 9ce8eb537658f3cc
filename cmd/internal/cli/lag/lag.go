// Package lag holds the verbs that show how far behind somebody is.
package lag

import (
	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("lag", "How far followers and groups are behind", newReplicas(f), newGroups(f))
}
