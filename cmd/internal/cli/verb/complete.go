package verb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/cmd/internal/cli/factory"
)

// Completer is what cobra calls for the words of an argument or flag.
type Completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// CompletionTime bounds what a shell waits for. Nothing is said when the cluster does not answer in it.
const CompletionTime = 1500 * time.Millisecond

// TopicNames are the names of all topics, none when nobody answers.
func TopicNames(ctx context.Context, f *factory.Factory) []string {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil
	}
	names, err := c.TopicNames(ctx)
	if err != nil {
		return nil
	}
	return names
}

// BrokerIDs are the ids of the registered brokers with their addresses as descriptions.
func BrokerIDs(ctx context.Context, f *factory.Factory) []string {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{NoTopics: true, NoZooKeeper: true})
	if err != nil {
		return nil
	}
	var ids []string
	for i := range s.Brokers {
		ids = append(ids, fmt.Sprintf("%d\t%s:%d", s.Brokers[i].ID, s.Brokers[i].Host, s.Brokers[i].Port))
	}
	return ids
}

// GroupNames are the names of all consumer groups.
func GroupNames(ctx context.Context, f *factory.Factory) []string {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil
	}
	names, err := c.GroupNames(ctx)
	if err != nil {
		return nil
	}
	return names
}

// limited runs a completion within its time.
func limited(fn func(ctx context.Context, args []string, typed string) ([]string, cobra.ShellCompDirective)) Completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTime)
		defer cancel()
		return fn(ctx, args, typed)
	}
}

// CompleteTopics offers topic names from the cluster, and behind TOPIC: the partitions of that topic with their leaders.
func CompleteTopics(f *factory.Factory) Completer {
	return limited(func(ctx context.Context, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if topic, list, ok := strings.Cut(typed, ":"); ok {
			return partitionWords(ctx, f, topic, list), cobra.ShellCompDirectiveNoFileComp
		}
		names := slices.DeleteFunc(TopicNames(ctx, f), func(n string) bool { return slices.Contains(args, n) })
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// partitionWords are the ways to go on with TOPIC:list by one more partition.
func partitionWords(ctx context.Context, f *factory.Factory, topic, list string) []string {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: []string{topic}, NoZooKeeper: true})
	if err != nil || len(s.Topics) != 1 {
		return nil
	}
	head := topic + ":"
	var given []string
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		head += list[:i+1]
		given = strings.Split(list[:i], ",")
	}
	var out []string
	for i := range s.Topics[0].Partitions {
		p := &s.Topics[0].Partitions[i]
		if n := fmt.Sprint(p.Partition); !slices.Contains(given, n) {
			out = append(out, fmt.Sprintf("%s%s\tleader %d", head, n, p.Leader))
		}
	}
	return out
}

// CompleteBrokers offers broker ids from the cluster.
func CompleteBrokers(f *factory.Factory) Completer {
	return limited(func(ctx context.Context, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return BrokerIDs(ctx, f), cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteGroups offers the names of consumer groups from the cluster.
func CompleteGroups(f *factory.Factory) Completer {
	return limited(func(ctx context.Context, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		names := slices.DeleteFunc(GroupNames(ctx, f), func(n string) bool { return slices.Contains(args, n) })
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeCommonFlags gives completion to flags that mean the same in every command and have none of their own.
func completeCommonFlags(f *factory.Factory, cmd *cobra.Command) {
	for flag, fn := range map[string]Completer{"group": CompleteGroups(f), "broker": CompleteBrokers(f)} {
		if cmd.LocalNonPersistentFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, fn) // refused where the command has its own
		}
	}
	for _, sub := range cmd.Commands() {
		completeCommonFlags(f, sub)
	}
}
