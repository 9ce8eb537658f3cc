package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// configZnode is where a resource's overrides are stored.
func configZnode(r model.ConfigResource) (znode.ConfigType, string, error) {
	switch {
	case r.Type == model.TopicResource:
		return znode.TopicConfig, r.Name, nil
	case r.Type == model.BrokerResource && r.Name == "":
		return znode.BrokerConfig, znode.DefaultEntity, nil
	case r.Type == model.BrokerResource:
		return znode.BrokerConfig, r.Name, nil
	}
	return "", "", badInput("%s is not stored in ZooKeeper: only topics and brokers are", r)
}

// ConfigsFromZooKeeper reads the overrides of topics and brokers as /config holds them, without asking a broker. There
// are neither defaults nor synonyms, and secrets are hidden by their names.
func (c *Client) ConfigsFromZooKeeper(ctx context.Context, resources []model.ConfigResource) ([]model.ResourceConfigs, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	out := make([]model.ResourceConfigs, len(resources))
	var reqs []zkop.Request
	for i, r := range resources {
		kind, name, err := configZnode(r)
		if err != nil {
			return nil, err
		}
		out[i] = model.ResourceConfigs{Resource: r, Source: model.SourceZooKeeper}
		exists := znode.BrokerIDsPath
		if r.Type == model.TopicResource {
			exists = znode.TopicPath(name)
		}
		reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: znode.ConfigEntityPath(kind, name)}, zkop.Request{Kind: zkop.Exists, Path: exists})
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	for i, r := range resources {
		got := rs[2*i]
		switch {
		case r.Type == model.TopicResource && errors.Is(rs[2*i+1].Err, zkop.ErrNoNode):
			out[i].Err = &Error{Kind: NotFound, Msg: fmt.Sprintf("topic %s does not exist", r.Name)}
		case errors.Is(got.Err, zkop.ErrNoNode):
		case got.Err != nil:
			out[i].Err = wrap(got.Err, "read the configuration of %s", r)
		default:
			out[i].Entries, out[i].Err = storedConfigs(r, got.Data)
		}
	}
	return out, nil
}

func storedConfigs(r model.ConfigResource, data []byte) ([]model.ConfigEntry, error) {
	kind, name, err := configZnode(r)
	if err != nil {
		return nil, err
	}
	cfg, err := znode.DecodeConfig(kind, name, data)
	if err != nil {
		return nil, err
	}
	var out []model.ConfigEntry
	for k, v := range cfg.Values {
		e := model.ConfigEntry{Name: k, Value: &v, Source: r.OwnSource(), Sensitive: SecretKey(k)}
		if e.Sensitive {
			e.Value = nil
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b model.ConfigEntry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// SecretKey reports whether values of a configuration key must not be shown, judged by its name alone.
func SecretKey(key string) bool { return plan.SecretKey(key) }

// WriteConfigsToZooKeeper makes planned changes in /config without any broker's checks, each resource in one multi:
// the node at the version it was read in, and a change notification, by which live brokers learn of it. Unknown fields
// of the node are kept.
func (c *Client) WriteConfigsToZooKeeper(ctx context.Context, changes []plan.ConfigChange) ([]ConfigResult, error) {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	resources, by := plan.ByResource(changes)
	out := make([]ConfigResult, len(resources))
	for i, r := range resources {
		out[i] = ConfigResult{Resource: r, Err: writeConfig(ctx, zk, r, by[r])}
	}
	return out, nil
}

func writeConfig(ctx context.Context, zk zkutil.Client, r model.ConfigResource, changes []plan.ConfigChange) error {
	kind, name, err := configZnode(r)
	if err != nil {
		return err
	}
	path := znode.ConfigEntityPath(kind, name)
	got := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: path})[0]
	write := zkop.Request{Kind: zkop.Create, Path: path}
	switch {
	case got.Err == nil:
		write = zkop.Request{Kind: zkop.Set, Path: path, Version: got.Stat.Version}
	case !errors.Is(got.Err, zkop.ErrNoNode):
		return wrap(got.Err, "read %s", path)
	}
	cfg, err := znode.DecodeConfig(kind, name, got.Data)
	if err != nil {
		return err
	}
	for _, ch := range changes {
		if ch.After == nil {
			delete(cfg.Values, ch.Key)
		} else {
			cfg.Values[ch.Key] = *ch.After
		}
	}
	write.Data = cfg.Encode()
	multi := zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{write, {
		Kind: zkop.Create, Path: znode.ConfigChangesPath + "/config_change_", Mode: zkop.PersistentSequential,
		Data: znode.ConfigChange{Type: kind, Entity: name}.Encode(),
	}}}
	resp := zk.Do(ctx, zkutil.AnySession, multi)[0]
	for _, sub := range resp.Results {
		if sub.Err != nil && !errors.Is(sub.Err, zkop.ErrRolledBack) {
			resp.Err = sub.Err
		}
	}
	switch {
	case errors.Is(resp.Err, zkop.ErrBadVersion), errors.Is(resp.Err, zkop.ErrNodeExists):
		return &Error{Kind: Failed, Msg: fmt.Sprintf("%s was changed by somebody else meanwhile; nothing was written", path), Hint: "look at it again: kctl configs get " + r.String()}
	case errors.Is(resp.Err, zkop.ErrOutcomeUnknown):
		return confirmWrite(ctx, zk, path, write.Data)
	}
	return wrap(resp.Err, "write %s", path)
}

// confirmWrite reads back after a lost answer.
func confirmWrite(ctx context.Context, zk zkutil.Client, path string, want []byte) error {
	got := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: path})[0]
	if got.Err == nil && string(got.Data) == string(want) {
		return nil
	}
	return &Error{Kind: Unreachable, Msg: fmt.Sprintf("the answer to the write of %s was lost, and it does not show", path), Err: got.Err}
}
