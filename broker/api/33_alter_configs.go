package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/config"
	"kctl/broker/topicadmin"
)

// AlterConfigs replaces all overrides of a resource at once; IncrementalAlterConfigs is the better call.
var alterConfigsAPI = definition{key: 33, min: 0, max: 2, handle: (*Service).alterConfigs}

func (s *Service) alterConfigs(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.AlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	for i := range req.Resources {
		r := &req.Resources[i]
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		change := func(map[string]string) (map[string]string, error) {
			next := make(map[string]string, len(r.Configs))
			for _, kv := range r.Configs {
				if kv.Value == nil {
					return nil, topicadmin.Refuse(kerr.InvalidRequest, "Null value not supported for : "+kv.Name)
				}
				next[kv.Name] = *kv.Value
			}
			return next, nil
		}
		out.ErrorCode, out.ErrorMessage = s.codeOf(s.alterResource(ctx, r.ResourceType, r.ResourceName, req.ValidateOnly, change))
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// alterResource applies change to a topic's or a broker's configuration, after checking what comes out of it.
func (s *Service) alterResource(ctx context.Context, kind kmsg.ConfigResourceType, name string, dry bool, change config.ChangeFunc) error {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		if err := topicadmin.ValidateName(name); err != nil {
			return err
		}
		if _, ok := s.Metadata.Snapshot().Topic(name); !ok {
			return kerr.UnknownTopicOrPartition
		}
		return s.Dynamic.AlterTopic(ctx, name, dry, checked(change, config.ValidateTopic))
	case kmsg.ConfigResourceTypeBroker:
		own := config.BrokerEntity(s.BrokerID)
		entity := name
		switch name {
		case "":
			entity = config.DefaultEntity
		case own:
		default:
			return topicadmin.Refuse(kerr.InvalidRequest, "Unexpected broker id, expected "+own+", but received "+name)
		}
		return s.Dynamic.AlterBroker(ctx, entity, dry, checked(change, func(v map[string]string) error {
			return config.ValidateBroker(v, name != "")
		}))
	}
	return topicadmin.Refuse(kerr.InvalidRequest, "AlterConfigs is only supported for topics and brokers, but resource type is "+kind.String())
}

func checked(change config.ChangeFunc, valid func(map[string]string) error) config.ChangeFunc {
	return func(current map[string]string) (map[string]string, error) {
		next, err := change(current)
		if err != nil {
			return nil, err
		}
		return next, valid(next)
	}
}
