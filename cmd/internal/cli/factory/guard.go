package factory

import (
	"context"
	"errors"
	"fmt"

	"kctl/admin"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/journal"
)

// guard refuses a cluster that is not the one the context remembers.
func (f *Factory) guard(ctx context.Context, s *Settings, c *admin.Client) error {
	if s.ClusterID == "" {
		return nil
	}
	_, err := c.VerifyCluster(ctx)
	if !errors.Is(err, admin.ErrOtherCluster) {
		return err
	}
	return &exit.Error{
		Code: exit.Failed, Msg: fmt.Sprintf("context %q: %v", s.Context, err),
		Hint: fmt.Sprintf("nothing was read or changed; if this is the right one now: kctl context set %s --cluster-id ID (none forgets it)", journal.Quote(s.Context)),
	}
}

// remember writes the id of the cluster into the context that led to it, once, like the known hosts of ssh. A context of
// a file that is not the user's own is left alone, and so is one whose addresses were overruled.
func (f *Factory) remember(id string) {
	s := f.settings
	if id == "" || s == nil || s.Context == "" || s.ClusterID != "" || s.Origin[FlagBootstrap] != "context" {
		return
	}
	file, path, err := f.readFile()
	if err != nil || path != f.ConfigPath() {
		return
	}
	ctx, err := file.Find(s.Context)
	if err != nil || ctx.ClusterID != "" {
		return
	}
	ctx.ClusterID = id
	if f.WriteFile(file) == nil {
		f.Say("context %s: remembered cluster %s; another one behind its addresses will be refused", s.Context, id)
	}
}
