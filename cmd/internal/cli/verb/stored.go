package verb

import (
	"context"

	"github.com/spf13/pflag"

	"kctl/admin"
	"kctl/cmd/internal/cli/factory"
)

// AddBreakGlass declares --break-glass of the verbs that change users, quotas and ACLs.
func AddBreakGlass(fl *pflag.FlagSet, to *bool) {
	fl.BoolVar(to, "break-glass", false, "when no broker answers, write ZooKeeper although brokers are registered")
}

// StoredHelp is what the help of those verbs says of it.
const StoredHelp = `

When no broker answers, ZooKeeper (-z) is written itself, with the notification that brokers wait for: without more ado
while no broker is registered, as before the first start, else with --break-glass.`

// StoredReadHelp is what the help of the verbs that list says.
const StoredReadHelp = `

When no broker answers, it is read from ZooKeeper (-z), which is said on stderr.`

// OrStored asks the brokers about users, quotas or ACLs, and ZooKeeper when none answers; from then on the client changes
// them there too. Where the answer comes from is said on stderr.
func OrStored[T any](ctx context.Context, f *factory.Factory, c *admin.Client, use admin.StoredUse, read func() (T, error)) (T, error) {
	got, err := read()
	if err == nil {
		return got, nil
	}
	use.Notice = f.Note
	turned, useErr := c.UseStored(ctx, err, use)
	switch {
	case useErr != nil:
		return got, useErr
	case !turned:
		return got, err
	}
	return read()
}

// StoredUndo adds what a command needs that takes a change of users, quotas or ACLs back in the way it was made.
func StoredUndo(c *admin.Client, use admin.StoredUse, args []string) []string {
	if c.Stored() && use.BreakGlass {
		return append(args, "--break-glass")
	}
	return args
}
