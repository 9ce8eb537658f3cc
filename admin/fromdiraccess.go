package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
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
	if err != nil {
		return nil, unreadable(folder, err)
	}
	paths := make([]string, len(children))
	for i, ch := range children {
		paths[i] = folder + "/" + ch
	}
	return c.entitiesAt(ctx, paths)
}

// entitiesAt reads entities of /config by the paths of their znodes; those that are gone are left out.
func (c *Client) entitiesAt(ctx context.Context, paths []string) ([]storedEntity, error) {
	reqs := make([]zkop.Request, len(paths))
	for i, p := range paths {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: p}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var out []storedEntity
	for i, r := range rs {
		if errors.Is(r.Err, zkop.ErrNoNode) {
			continue
		}
		if r.Err != nil {
			return nil, unreadable(paths[i], r.Err)
		}
		e := storedEntity{path: paths[i], name: model.QuotaDefault}
		if element := path.Base(paths[i]); element != znode.DefaultEntity {
			if e.name, err = znode.DesanitizeEntity(element); err != nil {
				e.name = element
			}
		}
		kind, name, _ := strings.Cut(strings.TrimPrefix(paths[i], znode.ConfigPath+"/"), "/")
		cfg, err := znode.DecodeConfig(znode.ConfigType(kind), name, r.Data)
		if err != nil {
			c.tell("%v", err)
		}
		e.values = cfg.Values
		out = append(out, e)
	}
	return out, nil
}

// pairsInTree reads the client ids below users, with the users that they belong to.
func (c *Client) pairsInTree(ctx context.Context, users []storedEntity) (pairs []storedEntity, of []string, err error) {
	reqs := make([]zkop.Request, len(users))
	for i, u := range users {
		reqs[i] = zkop.Request{Kind: zkop.Children, Path: u.path + "/clients"}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	names := map[string]string{}
	for i, r := range rs {
		if r.Err != nil && !errors.Is(r.Err, zkop.ErrNoNode) {
			return nil, nil, unreadable(reqs[i].Path, r.Err)
		}
		names[reqs[i].Path] = users[i].name
		for _, ch := range r.Children {
			paths = append(paths, reqs[i].Path+"/"+ch)
		}
	}
	pairs, err = c.entitiesAt(ctx, paths)
	for _, p := range pairs {
		of = append(of, names[path.Dir(p.path)])
	}
	return pairs, of, err
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
		if strings.HasSuffix(e.path, "/"+znode.DefaultEntity) || len(names) > 0 && !slices.Contains(names, e.name) {
			continue
		}
		for _, mechanism := range ScramMechanisms() {
			stored, ok := e.values[mechanism]
			if !ok {
				continue
			}
			cred, err := znode.DecodeScramCredential(stored)
			if err != nil {
				c.tell("%s: %s: %v", e.path, mechanism, err)
				cred.Iterations = -1
			}
			out = append(out, model.ScramCredential{User: e.name, Mechanism: mechanism, Iterations: cred.Iterations})
		}
	}
	slices.SortFunc(out, func(a, b model.ScramCredential) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Mechanism, b.Mechanism))
	})
	for _, n := range names {
		if !slices.ContainsFunc(out, func(cr model.ScramCredential) bool { return cr.User == n }) {
			return nil, &Error{Kind: NotFound, Msg: fmt.Sprintf("user %s has no SCRAM credentials", n), Hint: "kctl users list shows who has"}
		}
	}
	return out, nil
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
	}
	pairs, of, err := c.pairsInTree(ctx, users)
	if err != nil {
		return nil, err
	}
	for i, p := range pairs {
		add(model.QuotaEntity{User: of[i], ClientID: p.name}, p.values)
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

// unreadable is the error of a znode that ZooKeeper does not hand out.
func unreadable(path string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return wrap(err, "read %s", path)
}

// aclFolders are where Kafka's ZooKeeper authorizer keeps rules, by the pattern of their resources.
var aclFolders = []struct{ path, pattern string }{
	{znode.ACLPath, plan.LiteralPattern}, {znode.PrefixedACLPath, plan.PrefixedPattern},
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
			return nil, unreadable(folder.path, err)
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
	if err != nil {
		return nil, unreadable(folder, err)
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
		if errors.Is(r.Err, zkop.ErrNoNode) {
			continue
		}
		if r.Err != nil {
			return nil, unreadable(reqs[i].Path, r.Err)
		}
		stored, err := znode.DecodeACLs(reqs[i].Path, r.Data)
		if err != nil {
			c.tell("%v", err)
		}
		for _, a := range stored.Rules() {
			out = append(out, model.ACL{
				ResourceType: kind, ResourceName: names[i], PatternType: pattern,
				Principal: a.Principal, Permission: a.Permission, Host: a.Host, Operation: a.Operation,
			})
		}
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
