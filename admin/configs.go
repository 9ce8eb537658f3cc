package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// configBatch is how many resources one request names: enough for one round trip on most clusters, few enough that an
// answer with all synonyms stays below some megabytes.
const configBatch = 500

var configTypes = map[model.ConfigResourceType]kmsg.ConfigResourceType{
	model.TopicResource: kmsg.ConfigResourceTypeTopic, model.BrokerResource: kmsg.ConfigResourceTypeBroker,
	model.BrokerLoggerResource: kmsg.ConfigResourceTypeBrokerLogger, model.ClientMetricsResource: kmsg.ConfigResourceTypeClientMetrics,
	model.GroupResource: kmsg.ConfigResourceTypeGroupConfig,
}

// configPart is the resources that one broker is asked about; any tells that every broker can answer.
type configPart struct {
	any       bool
	broker    cluster.BrokerID
	resources []int // positions in the caller's list
}

// configParts splits resources by who has to be asked: a broker for its own settings and loggers, anyone for the rest.
func configParts(resources []model.ConfigResource) []configPart {
	var parts []configPart
	open := -1
	for i, r := range resources {
		if (r.Type == model.BrokerResource || r.Type == model.BrokerLoggerResource) && r.Name != "" {
			id, _ := strconv.ParseInt(r.Name, 10, 32) // plan.ParseConfigResources has checked it
			at := slices.IndexFunc(parts, func(p configPart) bool { return !p.any && p.broker == cluster.BrokerID(id) })
			if at < 0 {
				parts = append(parts, configPart{broker: cluster.BrokerID(id)})
				at = len(parts) - 1
			}
			parts[at].resources = append(parts[at].resources, i)
			continue
		}
		if open < 0 || len(parts[open].resources) == configBatch {
			parts = append(parts, configPart{any: true})
			open = len(parts) - 1
		}
		parts[open].resources = append(parts[open].resources, i)
	}
	return parts
}

// Configs reads the configuration of resources with its synonyms: one request for many topics, one to each broker whose
// own settings are asked for. keys nil means all. What could not be read has its error in its place; the error
// returned is that nobody could be asked.
func (c *Client) Configs(ctx context.Context, resources []model.ConfigResource, keys []string) ([]model.ResourceConfigs, error) {
	if c.offline() {
		return c.configsFromDir(ctx, resources)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if _, err := c.metadata(ctx, []string{}); err != nil {
		return nil, err
	}
	out := make([]model.ResourceConfigs, len(resources))
	var g errgroup.Group
	g.SetLimit(parallelBrokers)
	for _, p := range configParts(resources) {
		g.Go(func() error { c.readConfigs(ctx, p, resources, keys, out); return nil })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, c.fillDefaults(ctx, keys, out)
}

// fillDefaults completes the default of all brokers: Apache Kafka lists only what is set there, so what holds without it,
// and whether a key exists and can be changed, is taken from a broker.
func (c *Client) fillDefaults(ctx context.Context, keys []string, out []model.ResourceConfigs) error {
	i := slices.IndexFunc(out, func(r model.ResourceConfigs) bool {
		return r.Resource == model.ConfigResource{Type: model.BrokerResource}
	})
	if i < 0 || out[i].Err != nil || len(keys) == 0 || !slices.ContainsFunc(keys, func(k string) bool { return out[i].Entry(k) == nil }) {
		return nil
	}
	m, err := c.metadata(ctx, []string{})
	if err != nil {
		return err
	}
	example := make([]model.ResourceConfigs, 1)
	for _, b := range m.Brokers {
		r := model.ConfigResource{Type: model.BrokerResource, Name: strconv.Itoa(int(b.NodeID))}
		c.readConfigs(ctx, configParts([]model.ConfigResource{r})[0], []model.ConfigResource{r}, keys, example)
		if example[0].Err == nil {
			break
		}
	}
	for _, e := range example[0].Entries {
		if out[i].Entry(e.Name) != nil {
			continue
		}
		if e.Source == "dynamic-broker" { // its own value is not what holds for the others
			inherited, ok := e.Inherited(example[0].Resource)
			if e.Value, e.Source = inherited.Value, inherited.Source; !ok {
				e.Source = model.DefaultSource
			}
		}
		e.Synonyms = nil
		out[i].Entries = append(out[i].Entries, e)
	}
	slices.SortFunc(out[i].Entries, func(a, b model.ConfigEntry) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// readConfigs fills the places of one part.
func (c *Client) readConfigs(ctx context.Context, p configPart, resources []model.ConfigResource, keys []string, out []model.ResourceConfigs) {
	request := func() kmsg.Request {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.IncludeSynonyms = true
		for _, i := range p.resources {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName, r.ConfigNames = configTypes[resources[i].Type], resources[i].Name, keys
			req.Resources = append(req.Resources, r)
		}
		return req
	}
	var resp kmsg.Response
	var err error
	if p.any {
		resp, err = c.askAny(ctx, request)
	} else {
		resp, err = c.askBroker(ctx, p.broker, request())
	}
	for _, i := range p.resources {
		out[i] = model.ResourceConfigs{Resource: resources[i], Source: model.SourceProtocol, Err: wrap(err, "read the configuration of %s", resources[i])}
		if err == nil {
			out[i].Err = c.noAnswer(resources[i])
		}
	}
	if err != nil {
		return
	}
	for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
		for _, i := range p.resources {
			if configTypes[resources[i].Type] == r.ResourceType && resources[i].Name == r.ResourceName {
				out[i].Entries, out[i].Err = configEntries(&r), c.configErr(ctx, kmsg.DescribeConfigs, resources[i], r.ErrorCode, r.ErrorMessage)
			}
		}
	}
}

func (c *Client) noAnswer(r model.ConfigResource) error {
	return &Error{Kind: Failed, Msg: fmt.Sprintf("the broker's answer does not hold %s", r)}
}

func (c *Client) configErr(ctx context.Context, key kmsg.Key, r model.ConfigResource, code int16, message *string) error {
	err := brokerErr(key, code, message)
	if err == nil {
		return nil
	}
	if r.Type == model.TopicResource && errors.Is(err, kerr.UnknownTopicOrPartition) {
		return c.noTopic(ctx, r.Name)
	}
	e := &Error{Kind: classify(err), Msg: fmt.Sprintf("configuration of %s", r), Err: err}
	if r.Type == model.BrokerLoggerResource || r.Type == model.ClientMetricsResource || r.Type == model.GroupResource {
		if errors.Is(err, kerr.InvalidRequest) || errors.Is(err, kerr.UnsupportedVersion) {
			e.Hint = "this kind of resource may not exist on these brokers: broker-logger is Apache Kafka's, client-metrics came with 3.7 and group with 4.0, in KRaft mode"
		}
	}
	return e
}

// noTopic names the topic that is missing, and one that may be meant.
func (c *Client) noTopic(ctx context.Context, name string) error {
	e := &Error{Kind: NotFound, Msg: fmt.Sprintf("topic %s does not exist", name), Hint: "kctl topics list shows the topics"}
	if names, err := c.TopicNames(ctx); err == nil {
		if near, ok := plan.Nearest(name, names); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return e
}

func configEntries(r *kmsg.DescribeConfigsResponseResource) []model.ConfigEntry {
	out := make([]model.ConfigEntry, 0, len(r.Configs))
	for i := range r.Configs {
		cfg := &r.Configs[i]
		e := model.ConfigEntry{Name: cfg.Name, Value: cfg.Value, Source: configSource(cfg.Source), ReadOnly: cfg.ReadOnly, Sensitive: cfg.IsSensitive}
		if cfg.IsSensitive {
			e.Value = nil
		}
		if cfg.ConfigType != 0 {
			e.Type = strings.ToLower(cfg.ConfigType.String())
		}
		for _, s := range cfg.ConfigSynonyms {
			syn := model.ConfigSynonym{Name: s.Name, Value: s.Value, Source: configSource(s.Source)}
			if cfg.IsSensitive {
				syn.Value = nil
			}
			e.Synonyms = append(e.Synonyms, syn)
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b model.ConfigEntry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ConfigResult is what became of the changes of one resource.
type ConfigResult struct {
	Resource model.ConfigResource
	Err      error
}

// AlterConfigs makes planned changes, or has the cluster check them only when validateOnly is set. Each resource is
// changed as a whole or not at all. Brokers without IncrementalAlterConfigs get the old request, which replaces
// everything: the whole set is then read first, so that no other key is dropped.
func (c *Client) AlterConfigs(ctx context.Context, changes []plan.ConfigChange, validateOnly bool) ([]ConfigResult, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	incremental, err := c.supports(ctx, kmsg.IncrementalAlterConfigs.Int16())
	if err != nil {
		return nil, err
	}
	resources, byResource := plan.ByResource(changes)
	full := map[model.ConfigResource]map[string]string{}
	if !incremental {
		if full, err = c.fullConfigs(ctx, resources, byResource); err != nil {
			return nil, err
		}
	}
	out := make([]ConfigResult, len(resources))
	var wg sync.WaitGroup
	for _, p := range configParts(resources) {
		wg.Go(func() {
			var part []plan.ConfigChange
			for _, i := range p.resources {
				part = append(part, byResource[resources[i]]...)
			}
			var said map[model.ConfigResource]error
			var err error
			if incremental {
				said, err = c.alterIncrementally(ctx, p, part, validateOnly)
			} else {
				said, err = c.alterWhole(ctx, p, resources, full, validateOnly)
			}
			for _, i := range p.resources {
				out[i] = ConfigResult{Resource: resources[i], Err: wrap(err, "change the configuration of %s", resources[i])}
				if refusal, answered := said[resources[i]]; err == nil && answered {
					out[i].Err = refusal
				} else if err == nil {
					out[i].Err = c.noAnswer(resources[i])
				}
			}
		})
	}
	wg.Wait()
	return out, nil
}

// fullConfigs reads what the old request must repeat.
func (c *Client) fullConfigs(ctx context.Context, resources []model.ConfigResource, changes map[model.ConfigResource][]plan.ConfigChange) (map[model.ConfigResource]map[string]string, error) {
	current, err := c.Configs(ctx, resources, nil)
	if err != nil {
		return nil, err
	}
	out := map[model.ConfigResource]map[string]string{}
	for i := range current {
		if current[i].Err != nil {
			return nil, current[i].Err
		}
		r := current[i].Resource
		if out[r], err = plan.FullConfigs(&current[i], changes[r]); err != nil {
			return nil, &Error{Kind: Failed, Msg: err.Error()}
		}
	}
	return out, nil
}

var configOps = map[plan.ConfigOpKind]kmsg.IncrementalAlterConfigOp{
	plan.SetConfig: kmsg.IncrementalAlterConfigOpSet, plan.DeleteConfig: kmsg.IncrementalAlterConfigOpDelete,
	plan.AppendConfig: kmsg.IncrementalAlterConfigOpAppend, plan.SubtractConfig: kmsg.IncrementalAlterConfigOpSubtract,
}

func (c *Client) alterIncrementally(ctx context.Context, p configPart, changes []plan.ConfigChange, validateOnly bool) (map[model.ConfigResource]error, error) {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = validateOnly
	resources, by := plan.ByResource(changes)
	for _, r := range resources {
		rr := kmsg.NewIncrementalAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = configTypes[r.Type], r.Name
		for _, ch := range by[r] {
			rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			rc.Name, rc.Op = ch.Key, configOps[ch.Kind]
			if ch.Kind != plan.DeleteConfig {
				rc.Value = kmsg.StringPtr(ch.Value)
			}
			rr.Configs = append(rr.Configs, rc)
		}
		req.Resources = append(req.Resources, rr)
	}
	resp, err := c.askForConfigs(ctx, p, req, func(r kmsg.Response) bool {
		rs := r.(*kmsg.IncrementalAlterConfigsResponse).Resources
		return len(rs) > 0 && rs[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	out := map[model.ConfigResource]error{}
	for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		id := resourceOf(r.ResourceType, r.ResourceName)
		out[id] = c.configErr(ctx, kmsg.IncrementalAlterConfigs, id, r.ErrorCode, r.ErrorMessage)
	}
	return out, nil
}

func (c *Client) alterWhole(ctx context.Context, p configPart, resources []model.ConfigResource, full map[model.ConfigResource]map[string]string, validateOnly bool) (map[model.ConfigResource]error, error) {
	req := kmsg.NewPtrAlterConfigsRequest()
	req.ValidateOnly = validateOnly
	for _, i := range p.resources {
		rr := kmsg.NewAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = configTypes[resources[i].Type], resources[i].Name
		for k, v := range full[resources[i]] {
			rc := kmsg.NewAlterConfigsRequestResourceConfig()
			rc.Name, rc.Value = k, kmsg.StringPtr(v)
			rr.Configs = append(rr.Configs, rc)
		}
		req.Resources = append(req.Resources, rr)
	}
	resp, err := c.askForConfigs(ctx, p, req, func(r kmsg.Response) bool {
		rs := r.(*kmsg.AlterConfigsResponse).Resources
		return len(rs) > 0 && rs[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	out := map[model.ConfigResource]error{}
	for _, r := range resp.(*kmsg.AlterConfigsResponse).Resources {
		id := resourceOf(r.ResourceType, r.ResourceName)
		out[id] = c.configErr(ctx, kmsg.AlterConfigs, id, r.ErrorCode, r.ErrorMessage)
	}
	return out, nil
}

func resourceOf(t kmsg.ConfigResourceType, name string) model.ConfigResource {
	for k, v := range configTypes {
		if v == t {
			return model.ConfigResource{Type: k, Name: name}
		}
	}
	return model.ConfigResource{Name: name}
}

// askForConfigs sends a change to the broker it concerns, or to the controller.
func (c *Client) askForConfigs(ctx context.Context, p configPart, req kmsg.Request, notController func(kmsg.Response) bool) (kmsg.Response, error) {
	if p.any {
		return c.askController(ctx, req, notController)
	}
	return c.askWithin(ctx, p.broker, req)
}

// AwaitConfigs reads changed resources until every change shows, within the timeout: brokers learn of changes by a
// notification. It returns what does not show, by resource.
func (c *Client) AwaitConfigs(ctx context.Context, changes []plan.ConfigChange) (map[model.ConfigResource][]string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resources, by := plan.ByResource(changes)
	var keys []string
	for _, ch := range changes {
		if !slices.Contains(keys, ch.Key) {
			keys = append(keys, ch.Key)
		}
	}
	for {
		missing, err := c.missingChanges(ctx, resources, by, keys)
		if err == nil && len(missing) == 0 {
			return nil, nil
		}
		if isAuthorization(err) { // they will not show, however long one waits
			return nil, err
		}
		if !pause(ctx) {
			return missing, err
		}
	}
}

func (c *Client) missingChanges(ctx context.Context, resources []model.ConfigResource, by map[model.ConfigResource][]plan.ConfigChange, keys []string) (map[model.ConfigResource][]string, error) {
	now, err := c.Configs(ctx, resources, keys)
	if err != nil {
		return nil, err
	}
	missing := map[model.ConfigResource][]string{}
	for i := range now {
		r := now[i].Resource
		if isAuthorization(now[i].Err) {
			return nil, now[i].Err
		}
		if now[i].Err != nil {
			missing[r] = append(missing[r], now[i].Err.Error())
			continue
		}
		for _, ch := range by[r] {
			if shown, ok := ch.Took(&now[i]); !ok {
				missing[r] = append(missing[r], fmt.Sprintf("%s is %s", ch.Key, shown))
			}
		}
	}
	return missing, nil
}
