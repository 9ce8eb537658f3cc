package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/config"
)

// IncrementalAlterConfigs sets, deletes, appends to and subtracts from single configurations (KIP-339).
var incrementalAlterConfigsAPI = definition{key: 44, min: 0, max: 1, handle: (*Service).incrementalAlterConfigs}

func (s *Service) incrementalAlterConfigs(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.IncrementalAlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	times := make(map[resource]int, len(req.Resources))
	for i := range req.Resources {
		times[resource{req.Resources[i].ResourceType, req.Resources[i].ResourceName}]++
	}
	for i := range req.Resources {
		r := &req.Resources[i]
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		if times[resource{r.ResourceType, r.ResourceName}] > 1 {
			out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, ptr("Each resource must appear at most once in the request.")
		} else {
			out.ErrorCode, out.ErrorMessage = s.codeOf(s.alterResource(ctx, r.ResourceType, r.ResourceName, req.ValidateOnly, incrementalChange(r)))
		}
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

func incrementalChange(r *kmsg.IncrementalAlterConfigsRequestResource) config.ChangeFunc {
	find := config.TopicKey
	if r.ResourceType == kmsg.ConfigResourceTypeBroker {
		find = config.BrokerKey
	}
	ops := make([]config.Op, len(r.Configs))
	for i, kv := range r.Configs {
		ops[i] = config.Op{Kind: config.OpKind(kv.Op), Name: kv.Name, Value: kv.Value}
	}
	return func(current map[string]string) (map[string]string, error) { return config.ApplyOps(current, ops, find) }
}
