package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// StoredUse says what users, quotas and ACLs are needed for when no broker answers.
type StoredUse struct {
	Write      bool         // they are to be changed
	BreakGlass bool         // also beside brokers that are registered but cannot be used
	Notice     func(string) // told where the answer comes from, and what is odd about it
}

// UseStored turns the Client from the brokers to ZooKeeper for users, quotas and ACLs, after a question to the brokers
// failed with cause: ScramUsers, Quotas and ACLs then read what is stored, and their changes write it, with the
// notifications that brokers wait for. It returns false when ZooKeeper is no help: another one than nobody answering was
// the cause, or no address of it is known. The error says why it must not be used; see plan.JudgeStoredWrite.
func (c *Client) UseStored(ctx context.Context, cause error, use StoredUse) (bool, error) {
	kind := KindOf(cause)
	helps := kind == Unreachable || kind == Unauthorized && use.Write && use.BreakGlass
	if !helps || !c.HasZooKeeper() || c.inTree() {
		return false, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	facts, err := c.accessFacts(ctx)
	if err != nil {
		if KindOf(err) == Unreachable {
			return false, nil // ZooKeeper neither: what the brokers' failure says counts
		}
		return false, err
	}
	note, done := "", "read"
	if use.Write {
		done = "written"
		note, err = plan.JudgeStoredWrite(facts, use.BreakGlass)
	} else {
		note, err = plan.JudgeStoredRead(facts)
	}
	if err != nil {
		return false, storedRefusal(err, cause, use.Write)
	}
	use.Notice(fmt.Sprintf("the brokers cannot be used (%v): ZooKeeper %s is %s instead", cause, facts.Address, done))
	if note != "" {
		use.Notice(note)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = use.Notice
	return true, nil
}

// storedRefusal is the error of a judgement, with what the brokers said.
func storedRefusal(err, cause error, write bool) error {
	r, ok := errors.AsType[*plan.StoredRefusal](err)
	if !ok {
		return err
	}
	e := &Error{Kind: KindOf(cause), Msg: r.Why, Hint: r.Hint}
	switch {
	case r.BadInput:
		e.Kind = BadInput
	case r.NoCluster:
		e.Kind = NotFound
	default:
		e.Msg += fmt.Sprintf(" (%v)", cause)
	}
	if write {
		e.Msg += "; nothing was changed"
	}
	return e
}

// inTree reports whether users, quotas and ACLs are those that are stored.
func (c *Client) inTree() bool { return c.offline() || c.Stored() }

// Stored reports whether UseStored turned the Client to ZooKeeper.
func (c *Client) Stored() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored != nil
}

// accessFacts reads what decides whether ZooKeeper may be used past the brokers.
func (c *Client) accessFacts(ctx context.Context) (*plan.StoredFacts, error) {
	rs, err := c.zkDo(ctx, []zkop.Request{
		{Kind: zkop.Children, Path: znode.BrokerIDsPath}, {Kind: zkop.Get, Path: znode.ControllerPath}, {Kind: zkop.Get, Path: znode.MigrationPath},
		{Kind: zkop.Get, Path: znode.ClusterIDPath}, {Kind: zkop.Children, Path: "/"},
	})
	if err != nil {
		return nil, err
	}
	f := &plan.StoredFacts{Address: c.cfg.ZooKeeper.String()}
	for _, child := range rs[0].Children {
		if id, err := znode.ParseBrokerID(child); err == nil {
			f.Registered = append(f.Registered, id)
		}
	}
	slices.Sort(f.Registered)
	ctl, err := znode.DecodeController(rs[1].Data)
	f.KRaft = rs[1].Err == nil && err == nil && ctl.KRaftEpoch >= 0 || rs[2].Err == nil && len(rs[2].Data) > 0
	if id := storedClusterID(rs[3]); id != "" {
		c.mu.Lock()
		c.id = id
		c.mu.Unlock()
	}
	if f.Used = slices.ContainsFunc(rs[4].Children, ofKafka); f.Used {
		return f, nil
	}
	f.Below, err = c.clustersBelow(ctx, rs[4].Children)
	return f, err
}

// ofKafka tells the folders at the root of a cluster, old and new.
func ofKafka(child string) bool {
	return slices.Contains([]string{"brokers", "cluster", "config", "controller_epoch", "kafka-acl", "kafka-acl-extended"}, child)
}

// clustersBelow finds the chroots of other clusters among the children of the root.
func (c *Client) clustersBelow(ctx context.Context, children []string) ([]string, error) {
	const most = 1000
	var reqs []zkop.Request
	slices.Sort(children)
	for _, ch := range children[:min(len(children), most)] {
		reqs = append(reqs, zkop.Request{Kind: zkop.Exists, Path: "/" + ch + znode.BrokerIDsPath})
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var out []string
	for i, r := range rs {
		if r.Err == nil {
			out = append(out, "/"+children[i])
		}
	}
	return out, nil
}

// storeUsers makes credentials of a password, each mechanism with a salt of its own, in one write for each user.
func (c *Client) storeUsers(ctx context.Context, creds []model.ScramCredential, password string) error {
	by := map[string]map[string]*string{}
	for _, cr := range creds {
		salt := make([]byte, scramSalt)
		if _, err := rand.Read(salt); err != nil {
			return err
		}
		stored, err := znode.NewScramCredential(cr.Mechanism, password, salt, cr.Iterations)
		if err != nil {
			return NewBadInput(err)
		}
		value := stored.Encode()
		c.forUser(by, cr.User)[cr.Mechanism] = &value
	}
	return c.editUsers(ctx, by)
}

// unstoreUsers takes credentials away.
func (c *Client) unstoreUsers(ctx context.Context, creds []model.ScramCredential) error {
	by := map[string]map[string]*string{}
	for _, cr := range creds {
		c.forUser(by, cr.User)[cr.Mechanism] = nil
	}
	return c.editUsers(ctx, by)
}

func (c *Client) forUser(by map[string]map[string]*string, user string) map[string]*string {
	if by[user] == nil {
		by[user] = map[string]*string{}
	}
	return by[user]
}

func (c *Client) editUsers(ctx context.Context, by map[string]map[string]*string) error {
	for user := range by {
		if err := plan.CheckStoredName("user", user); err != nil {
			return NewBadInput(err)
		}
	}
	return c.withZooKeeper(ctx, func(ctx context.Context, zk zkutil.Client) error {
		for user, values := range by {
			if err := runEdit(ctx, zk, editConfig(znode.UserConfig, znode.SanitizeEntity(user), values)); err != nil {
				return err
			}
		}
		return nil
	})
}

// withZooKeeper runs fn with the connection, within the timeout.
func (c *Client) withZooKeeper(ctx context.Context, fn func(context.Context, zkutil.Client) error) error {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	return fn(ctx, zk)
}

// quotaZnode is where the limits of an entity are stored.
func quotaZnode(e model.QuotaEntity) (znode.ConfigType, string) {
	element := func(name string) string {
		if name == model.QuotaDefault {
			return znode.DefaultEntity
		}
		return znode.SanitizeEntity(name)
	}
	switch {
	case e.IP == model.QuotaDefault:
		return znode.IPConfig, znode.DefaultEntity
	case e.IP != "":
		return znode.IPConfig, e.IP
	case e.User == "":
		return znode.ClientConfig, element(e.ClientID)
	case e.ClientID == "":
		return znode.UserConfig, element(e.User)
	}
	return znode.UserConfig, znode.UserClientEntity(element(e.User), element(e.ClientID))
}

// storeQuotas changes the limits of an entity in one write; with validateOnly it only judges them.
func (c *Client) storeQuotas(ctx context.Context, e model.QuotaEntity, changes []plan.QuotaChange, validateOnly bool) error {
	if err := plan.CheckStoredQuotas(e, changes); err != nil {
		return NewBadInput(err)
	}
	if validateOnly {
		return nil
	}
	values := map[string]*string{}
	for _, ch := range changes {
		values[ch.Key] = nil
		if ch.After != nil {
			text, err := plan.StoredQuota(ch.Key, *ch.After)
			if err != nil {
				return NewBadInput(err)
			}
			values[ch.Key] = &text
		}
	}
	kind, entity := quotaZnode(e)
	return c.withZooKeeper(ctx, func(ctx context.Context, zk zkutil.Client) error {
		return runEdit(ctx, zk, editConfig(kind, entity, values))
	})
}

// storeACLs makes or removes rules, those of one resource in one write, and returns what became of each.
func (c *Client) storeACLs(ctx context.Context, acls []model.ACL, add bool) ([]error, error) {
	errs := make([]error, len(acls))
	at, resources := map[znode.ACLResource][]int{}, []znode.ACLResource(nil)
	for i, a := range acls {
		if err := plan.CheckStoredACL(a); err != nil {
			errs[i] = NewBadInput(err)
			continue
		}
		r := znode.ACLResource{Type: a.ResourceType, Name: a.ResourceName, Prefixed: a.PatternType == plan.PrefixedPattern}
		if at[r] == nil {
			resources = append(resources, r)
		}
		at[r] = append(at[r], i)
	}
	err := c.withZooKeeper(ctx, func(ctx context.Context, zk zkutil.Client) error {
		for _, r := range resources {
			var rules []znode.ACLRule
			for _, i := range at[r] {
				rules = append(rules, znode.ACLRule{Principal: acls[i].Principal, Permission: acls[i].Permission, Host: acls[i].Host, Operation: acls[i].Operation})
			}
			err := runEdit(ctx, zk, editACLs(r, rules, add))
			for _, i := range at[r] {
				errs[i] = err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}
