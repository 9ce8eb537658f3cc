package configs

import (
	"context"
	"fmt"
	"strings"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
)

// Plan computes what operations do to a resource that was read with all its keys, for the verbs of other nouns.
func Plan(current *model.ResourceConfigs, ops []plan.ConfigOp) ([]plan.ConfigChange, error) {
	changes, err := plan.PlanConfigs(current, ops, false)
	if err == nil {
		return changes, nil
	}
	e := &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed"}
	for _, op := range ops {
		if current.Entry(op.Key) == nil {
			e.Code, e.Hint = exit.Usage, nearestKey(current, op.Key)
		}
	}
	return nil, e
}

// Needed leaves out what is as wanted already.
func Needed(changes []plan.ConfigChange) []plan.ConfigChange {
	var out []plan.ConfigChange
	for _, ch := range changes {
		if !ch.None {
			out = append(out, ch)
		}
	}
	return out
}

func firstError(results []admin.ConfigResult, err error) error {
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

// Write makes planned changes and reads them back until they show. It returns why resources were not changed; the error
// is that nothing was attempted.
func Write(ctx context.Context, c *admin.Client, todo []plan.ConfigChange) (map[model.ConfigResource]error, error) {
	results, err := c.AlterConfigs(ctx, todo, false)
	if err != nil {
		return nil, err
	}
	failed := errorsOf(results)
	var written []plan.ConfigChange
	for _, ch := range todo {
		if failed[ch.Resource] == nil {
			written = append(written, ch)
		}
	}
	if len(written) == 0 {
		return failed, nil
	}
	missing, err := c.AwaitConfigs(ctx, written)
	for r, what := range missing {
		failed[r] = &exit.Error{
			Code: exit.Failed, Msg: fmt.Sprintf("%s: the change was accepted but did not take: %s", r, strings.Join(what, "; ")),
			Hint: "the key may be read-only, so that it takes effect at the next start of the broker, or be overridden: kctl configs get " + r.String() + " --synonyms",
		}
	}
	if err != nil && len(missing) == 0 {
		for _, ch := range written {
			failed[ch.Resource] = &exit.Error{Code: exit.Partial, Msg: fmt.Sprintf("%s: the change was accepted, but could not be read back: %v", ch.Resource, err)}
		}
	}
	return failed, nil
}

func writeDirectly(ctx context.Context, c *admin.Client, todo []plan.ConfigChange) (map[model.ConfigResource]error, error) {
	results, err := c.WriteConfigsToZooKeeper(ctx, todo)
	return errorsOf(results), err
}

func errorsOf(results []admin.ConfigResult) map[model.ConfigResource]error {
	out := map[model.ConfigResource]error{}
	for _, r := range results {
		if r.Err != nil {
			out[r.Resource] = r.Err
		}
	}
	return out
}

// Entry is the journal's entry for the changes of one resource, with the command that takes them back. The command
// expects the values that these changes left, so that it is refused when somebody has changed them since.
func Entry(clusterID, command string, changes []plan.ConfigChange, err error) factory.Change {
	e := factory.Change{Cluster: clusterID, Command: command, Object: changes[0].Resource.String(), Result: journal.Done}
	if err != nil {
		e.Result = err.Error()
	}
	var before, after, tail []string
	undo := []string{"configs", "set", e.Object}
	hidden := false
	for _, ch := range changes {
		before, after = append(before, ch.Key+"="+shown(ch.Before, ch)), append(after, ch.Key+"="+shown(ch.After, ch))
		hidden = hidden || ch.Sensitive || ch.HadSecret
		if ch.Before != nil {
			undo = append(undo, ch.Key+"="+*ch.Before)
		} else {
			tail = append(tail, "--delete", ch.Key)
		}
		expect := ch.Key
		if ch.After != nil {
			expect += "=" + *ch.After
		}
		if ch.Resource.Type != model.BrokerLoggerResource || ch.After != nil { // a logger always shows a level
			tail = append(tail, "--expect", expect)
		}
	}
	e.Before, e.After = strings.Join(before, " "), strings.Join(after, " ")
	if hidden {
		e.Undo = "by hand: the value before is a secret"
		return e
	}
	return e.WithUndo(append(undo, tail...)...)
}

func shown(v *string, ch plan.ConfigChange) string {
	switch {
	case ch.Sensitive || ch.HadSecret:
		return rows.Hidden
	case v == nil:
		return "(none)"
	}
	return *v
}
