package configs

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// complete offers resources first, then the keys of the first resource that was named. A shell gets nothing when the
// cluster does not answer in time.
func complete(f *factory.Factory, set bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), verb.CompletionTime)
		defer cancel()
		if len(args) == 0 {
			return completeResources(ctx, f, typed)
		}
		rs, err := plan.ParseConfigResources(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		suffix, directive := "", cobra.ShellCompDirectiveNoFileComp
		if set {
			suffix, directive = "=", directive|cobra.ShellCompDirectiveNoSpace
		}
		return completeKeys(ctx, f, rs[0], args, suffix), directive
	}
}

func completeResources(ctx context.Context, f *factory.Factory, typed string) ([]string, cobra.ShellCompDirective) {
	kind, _, ok := strings.Cut(typed, "/")
	if !ok {
		return []string{"topic/", "broker/", "broker-logger/", "client-metrics/", "group/"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	var names []string
	switch model.ConfigResourceType(strings.TrimSuffix(kind, "s")) {
	case model.TopicResource:
		names = verb.TopicNames(ctx, f)
	case model.BrokerResource:
		names = append(verb.BrokerIDs(ctx, f), model.DefaultName+"\tall brokers")
	case model.BrokerLoggerResource:
		names = verb.BrokerIDs(ctx, f)
	case model.GroupResource:
		names = verb.GroupNames(ctx, f)
	}
	for i := range names {
		names[i] = kind + "/" + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeKeys(ctx context.Context, f *factory.Factory, r model.ConfigResource, args []string, suffix string) []string {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil
	}
	found, err := c.Configs(ctx, []model.ConfigResource{r}, nil)
	if err != nil || found[0].Err != nil {
		return nil
	}
	var out []string
	for i := range found[0].Entries {
		e := &found[0].Entries[i]
		if suffix != "" && e.ReadOnly || slices.ContainsFunc(args, func(a string) bool { k, _, _ := strings.Cut(a, "="); return k == e.Name }) {
			continue
		}
		hint := ""
		if e.Value != nil && *e.Value != "" && !e.Sensitive {
			hint = "\t" + *e.Value + " (" + e.Source + ")"
		}
		out = append(out, e.Name+suffix+hint)
	}
	return out
}
