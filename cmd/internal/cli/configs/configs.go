// Package configs holds the verbs on the configuration of topics, brokers, loggers, client metrics and groups.
package configs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("configs", "Configuration of topics, brokers, broker defaults and loggers", newGet(f), newSet(f), newDelete(f))
}

// scope says which resources are meant: named ones, and all topics that match an expression.
type scope struct {
	named []model.ConfigResource
	topic string
}

// parse takes the resources from the front of the arguments and returns the rest.
func (s *scope) parse(args []string) (rest []string, err error) {
	for len(args) > 0 && plan.LooksLikeResource(args[0]) {
		rs, err := plan.ParseConfigResources(args[0])
		if err != nil {
			return nil, admin.NewBadInput(err)
		}
		for _, r := range rs {
			if !slices.Contains(s.named, r) {
				s.named = append(s.named, r)
			}
		}
		args = args[1:]
	}
	if _, err := verb.TopicFilter(s.topic); err != nil {
		return nil, err
	}
	if len(s.named) == 0 && s.topic == "" {
		return nil, &exit.Error{Code: exit.Usage, Msg: "name a resource: topic/NAME[,NAME...], broker/ID, broker/default, broker-logger/ID, client-metrics/NAME, group/NAME, or --topic RE"}
	}
	return args, nil
}

// resolve adds the topics that match.
func (s *scope) resolve(ctx context.Context, c *admin.Client) ([]model.ConfigResource, error) {
	out := slices.Clone(s.named)
	re, err := verb.TopicFilter(s.topic)
	if err != nil || re == nil {
		return out, err
	}
	names, err := c.TopicNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if r := (model.ConfigResource{Type: model.TopicResource, Name: n}); re.MatchString(n) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, &exit.Error{Code: exit.Failed, Msg: "no topic matches --topic " + s.topic, Hint: "kctl topics list shows the topics"}
	}
	return out, nil
}

const topicFlag = "all topics whose whole name matches this regular expression"
