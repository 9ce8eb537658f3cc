package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/config"
	"kctl/broker/topicadmin"
)

// DescribeConfigs tells the configurations of topics and of this broker.
//
//	v1      sources and synonyms (KIP-226); v3 types and documentation (KIP-569)
var describeConfigsAPI = definition{key: 32, min: 0, max: 4, handle: (*Service).describeConfigs}

func (s *Service) describeConfigs(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.DescribeConfigsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	overrides, failed := s.askedOverrides(ctx, req)
	for i := range req.Resources {
		r := &req.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		out.Configs = []kmsg.DescribeConfigsResponseResourceConfig{}
		entries, err := s.describeResource(r, overrides, failed)
		out.ErrorCode, out.ErrorMessage = s.codeOf(err)
		for j := range entries {
			if r.ConfigNames == nil || slices.Contains(r.ConfigNames, entries[j].Name) {
				out.Configs = append(out.Configs, describeEntry(&entries[j], req))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// overridesTimeout is how long the answer waits for ZooKeeper: while there is none, the caller learns so instead of
// taking a live broker for a dead one.
const overridesTimeout = time.Second

// askedOverrides reads the overrides of all topics of the request at once.
func (s *Service) askedOverrides(ctx context.Context, req *kmsg.DescribeConfigsRequest) (map[string]map[string]string, error) {
	var topics []string
	for i := range req.Resources {
		if r := &req.Resources[i]; r.ResourceType == kmsg.ConfigResourceTypeTopic && s.checkTopic(r.ResourceName) == nil {
			topics = append(topics, r.ResourceName)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, overridesTimeout)
	defer cancel()
	overrides, err := s.Dynamic.TopicOverrides(ctx, topics)
	if errors.Is(err, context.DeadlineExceeded) {
		err = topicadmin.Refuse(kerr.RequestTimedOut, "the configuration of topics is in ZooKeeper, which did not answer")
	}
	return overrides, err
}

func (s *Service) checkTopic(name string) error {
	if err := topicadmin.ValidateName(name); err != nil {
		return err
	}
	if _, ok := s.Metadata.Snapshot().Topic(name); !ok {
		return kerr.UnknownTopicOrPartition
	}
	return nil
}

// describeResource answers for one resource; failed is why the overrides of topics are not known.
func (s *Service) describeResource(r *kmsg.DescribeConfigsRequestResource, overrides map[string]map[string]string, failed error) ([]config.Entry, error) {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if err := s.checkTopic(r.ResourceName); err != nil {
			return nil, err
		}
		if failed != nil {
			return nil, failed
		}
		return s.Dynamic.DescribeTopic(overrides[r.ResourceName], r.ConfigNames), nil
	case kmsg.ConfigResourceTypeBroker:
		switch r.ResourceName {
		case "":
			return s.Dynamic.DescribeBrokerDefault(), nil
		case config.BrokerEntity(s.BrokerID):
			return s.Dynamic.DescribeBroker(), nil
		}
		return nil, topicadmin.Refuse(kerr.InvalidRequest, "Unexpected broker id, expected "+config.BrokerEntity(s.BrokerID)+" or empty string, but received "+r.ResourceName)
	}
	return nil, topicadmin.Refuse(kerr.InvalidRequest, "Unsupported resource type: "+r.ResourceType.String())
}

func describeEntry(e *config.Entry, req *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value = e.Name, e.Value
	out.ReadOnly, out.IsSensitive = e.ReadOnly, e.Sensitive
	out.IsDefault = e.Source == config.Default
	out.Source, out.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	out.ConfigSynonyms = []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{}
	if req.IncludeSynonyms {
		for _, syn := range e.Synonyms {
			k := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			k.Name, k.Value, k.Source = syn.Name, syn.Value, kmsg.ConfigSource(syn.Source)
			out.ConfigSynonyms = append(out.ConfigSynonyms, k)
		}
	}
	if req.IncludeDocumentation {
		out.Documentation = &e.Doc
	}
	return out
}
