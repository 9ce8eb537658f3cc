// Package topics holds the verbs on topics.
package topics

import (
	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("topics", "Topics: list, describe, create, alter, delete", newList(f), newDescribe(f), newCreate(f), newAlter(f), newDelete(f))
}
