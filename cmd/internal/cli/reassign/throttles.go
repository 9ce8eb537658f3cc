package reassign

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan/reassign"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
)

// removeThrottles takes back the throttles of a run, which keeps the marks of those that stay. The entries of the journal
// tell what is gone, and what is not and why.
func removeThrottles(ctx context.Context, c *admin.Client, st *store, run *reassign.Run, command string) ([]factory.Change, []model.Problem, error) {
	n := len(run.Marks)
	if n == 0 {
		return nil, nil, nil
	}
	problems, err := c.RemoveThrottles(ctx, run, st.unfinished(run.Plan))
	entry := factory.Change{
		Cluster: st.cluster, Command: command, Object: "replication throttles", Result: journal.Done,
		Before: fmt.Sprintf("%d settings", n), After: fmt.Sprintf("%d settings", len(run.Marks)), Undo: "the next throttled run sets its own",
	}
	var entries []factory.Change
	if len(run.Marks) < n {
		entries = append(entries, entry)
	}
	if failed := errors.Join(err, leftThrottles(problems)); failed != nil {
		entry.Object, entry.Before, entry.Result = "replication throttles that stay", entry.After, failed.Error()
		entries = append(entries, entry)
	}
	return entries, problems, err
}

// leftThrottles is the error of throttles that could not be taken back, nil when there are none.
func leftThrottles(problems []model.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	parts := make([]string, len(problems))
	for i, p := range problems {
		parts[i] = p.Object + ": " + p.Message
	}
	return errors.New(strings.Join(parts, "; "))
}
