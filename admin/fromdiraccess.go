package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// storedEntity is an entity of /config with its values.
type storedEntity struct {
	name   string // as people write it; model.QuotaDefault for the default
	path   string // of the znode
	values map[string]string
}

// entitiesInTree reads the children of a folder of /config. Those without data have no values.
func (c *Client) entitiesInTree(ctx context.Context, folder string) ([]storedEntity, error) {
	children, err := c.zkChildren(ctx, folder)
	if err != nil || len(children) == 0 {
		return nil, err
	}
	reqs := make([]zkop.Request, len(children))
	for i, ch := range children {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: folder + "/" + ch}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var out []storedEntity
	for i, r := range rs {
		if r.Err != nil {
			continue
		}
		e := storedEntity{path: reqs[i].Path, name: model.QuotaDefault}
		if children[i] != znode.DefaultEntity {
			if e.name, err = znode.DesanitizeEntity(children[i]); err != nil {
				e.name = children[i]
			}
		}
		rel := strings.TrimPrefix(reqs[i].Path, znode.ConfigPath+"/")
		kind, name, _ := strings.Cut(rel, "/")
		cfg, err := znode.DecodeConfig(znode.ConfigType(kind), name, r.Data)
		if err != nil {
			c.tell("%v", err)
		}
		e.values = cfg.Values
		out = append(out, e)
	}
	return out, nil
}

// scramUsersInTree reads credentials from /config/users; salts and keys are left out.
func (c *Client) scramUsersInTree(ctx context.Context, names []string) ([]model.ScramCredential, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	entities, err := c.entitiesInTree(ctx, znode.ConfigEntityTypePath(znode.UserConfig))
	if err != nil {
		return nil, err
	}
	var out []model.ScramCredential
	for _, e := range entities {
		if e.name == model.QuotaDefault || len(names) > 0 && !slices.Contains(names, e.name) {
			continue
		}
		for _, mechanism := range ScramMechanisms() {
			stored, ok := e.values[mechanism]
			if !ok {
				continue
			}
			iterations, ok := scramIterations(stored)
			if !ok {
				c.tell("%s: the credential of %s has no number of iterations", e.path, mechanism)
			}
			out = append(out, model.ScramCredential{User: e.name, Mechanism: mechanism, Iterations: iterations})
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(out, func(cr model.ScramCredential) bool { return cr.User == n }) {
			return nil, &Error{Kind: NotFound, Msg: fmt.Sprintf("user %s has no SCRAM credentials", n), Hint: "kctl users list shows who has"}
		}
	}
	return out, nil
}

// scramIterations reads iterations=N of a stored credential.
func scramIterations(stored string) (int32, bool) {
	for part := range strings.SplitSeq(stored, ",") {
		if text, ok := strings.CutPrefix(part, "iterations="); ok {
			n, err := strconv.ParseInt(text, 10, 32)
			return int32(n), err == nil
		}
	}
	return -1, false
}

// quotasInTree reads the limits of users, of users with client ids, of client ids and of addresses.
func (c *Client) quotasInTree(ctx context.Context) ([]model.Quota, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var out []model.Quota
	add := func(e model.QuotaEntity, values map[string]string) {
		for k, text := range values {
			if v, err := strconv.ParseFloat(text, 64); err == nil && !slices.Contains(ScramMechanisms(), k) {
				out = append(out, model.Quota{Entity: e, Key: k, Value: v})
			}
		}
	}
	users, err := c.entitiesInTree(ctx, znode.ConfigEntityTypePath(znode.UserConfig))
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		add(model.QuotaEntity{User: u.name}, u.values)
		pairs, err := c.entitiesInTree(ctx, u.path+"/clients")
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			add(model.QuotaEntity{User: u.name, ClientID: p.name}, p.values)
		}
	}
	clients, err := c.entitiesInTree(ctx, znode.ConfigEntityTypePath(znode.ClientConfig))
	if err != nil {
		return nil, err
	}
	for _, e := range clients {
		add(model.QuotaEntity{ClientID: e.name}, e.values)
	}
	ips, err := c.entitiesInTree(ctx, znode.ConfigEntityTypePath(znode.IPConfig))
	if err != nil {
		return nil, err
	}
	for _, e := range ips {
		add(model.QuotaEntity{IP: e.name}, e.values)
	}
	sortQuotas(out)
	return out, nil
}

func sortQuotas(qs []model.Quota) {
	slices.SortFunc(qs, func(a, b model.Quota) int {
		return cmp.Or(cmp.Compare(a.Entity.User, b.Entity.User), cmp.Compare(a.Entity.ClientID, b.Entity.ClientID), cmp.Compare(a.Entity.IP, b.Entity.IP), cmp.Compare(a.Key, b.Key))
	})
}

// aclFolders are where Kafka's ZooKeeper authorizer keeps rules, by the pattern of their resources.
var aclFolders = []struct{ path, pattern string }{
	{"/kafka-acl", plan.LiteralPattern}, {"/kafka-acl-extended/prefixed", plan.PrefixedPattern},
}

// aclsInTree reads the rules of Kafka's AclAuthorizer that a filter selects.
func (c *Client) aclsInTree(ctx context.Context, f model.ACLFilter) ([]model.ACL, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if _, err := wordsOf(f); err != nil {
		return nil, NewBadInput(err)
	}
	var out []model.ACL
	for _, folder := range aclFolders {
		types, err := c.zkChildren(ctx, folder.path)
		if err != nil {
			return nil, err
		}
		for _, kind := range types {
			rules, err := c.rulesInTree(ctx, folder.path+"/"+kind, kind, folder.pattern)
			if err != nil {
				return nil, err
			}
			for _, r := range rules {
				if selects(f, r) {
					out = append(out, r)
				}
			}
		}
	}
	plan.SortACLs(out)
	return out, nil
}

// rulesInTree reads the rules of all resources of one type and pattern.
func (c *Client) rulesInTree(ctx context.Context, folder, kind, pattern string) ([]model.ACL, error) {
	names, err := c.zkChildren(ctx, folder)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	reqs := make([]zkop.Request, len(names))
	for i, n := range names {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: folder + "/" + n}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var out []model.ACL
	for i, r := range rs {
		if r.Err != nil {
			continue
		}
		rules, err := decodeRules(r.Data)
		if err != nil {
			c.tell("%s: %v", reqs[i].Path, err)
		}
		for _, a := range rules {
			a.ResourceType, a.ResourceName, a.PatternType = kind, names[i], pattern
			out = append(out, a)
		}
	}
	return out, nil
}

// decodeRules reads the value of a resource: version 1 with a list of rules.
func decodeRules(data []byte) ([]model.ACL, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var stored struct {
		ACLs []struct {
			Principal      string `json:"principal"`
			PermissionType string `json:"permissionType"`
			Host           string `json:"host"`
			Operation      string `json:"operation"`
		} `json:"acls"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("the rules cannot be read: %w", err)
	}
	var out []model.ACL
	for _, a := range stored.ACLs {
		out = append(out, model.ACL{Principal: a.Principal, Permission: a.PermissionType, Host: a.Host, Operation: a.Operation})
	}
	return out, nil
}

// selects judges a rule as a broker's DescribeAcls does.
func selects(f model.ACLFilter, a model.ACL) bool {
	anyOr := func(want, have string) bool { return want == "" || want == "Any" || want == have }
	return anyOr(f.ResourceType, a.ResourceType) && anyOr(f.Operation, a.Operation) && anyOr(f.Permission, a.Permission) &&
		(f.Principal == "" || f.Principal == a.Principal) && (f.Host == "" || f.Host == a.Host) && selectsName(f, a)
}

func selectsName(f model.ACLFilter, a model.ACL) bool {
	switch {
	case f.PatternType == "Match" && f.ResourceName == "":
		return true
	case f.PatternType == "Match" && a.PatternType == plan.PrefixedPattern:
		return strings.HasPrefix(f.ResourceName, a.ResourceName)
	case f.PatternType == "Match":
		return a.ResourceName == f.ResourceName || a.ResourceName == "*"
	case f.PatternType != "" && f.PatternType != "Any" && f.PatternType != a.PatternType:
		return false
	}
	return f.ResourceName == "" || f.ResourceName == a.ResourceName
}
