package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// zkSession is the connection to ZooKeeper as this package uses it. Znodes that are made without an ACL get one that fits
// their place (see znodeACL), which takes a look at the parent's first; refusals say what can be done about them.
type zkSession struct {
	zkutil.Client
	secure bool   // zookeeper.set.acl
	hint   string // what to do when ZooKeeper refuses
}

// Do see zkutil.Client. When a parent's ACL cannot be had nothing is sent.
func (s *zkSession) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	reqs, err := s.withACLs(ctx, session, reqs)
	var out []zkop.Response
	if err == nil {
		out = s.Client.Do(ctx, session, reqs...)
	} else {
		out = make([]zkop.Response, len(reqs))
		for i := range out {
			out[i].Err = err
		}
	}
	for i := range out {
		s.explain(&out[i])
	}
	shutOut(out)
	return out
}

// shutOut: a server that demands a login does so in its answer to one request and closes the connection under the others,
// of which it has carried out none.
func shutOut(out []zkop.Response) {
	i := slices.IndexFunc(out, func(r zkop.Response) bool { return errors.Is(r.Err, zkutil.ErrAuthFailed) })
	for k := range out {
		if i >= 0 && errors.Is(out[k].Err, zkop.ErrOutcomeUnknown) {
			out[k].Err = out[i].Err
		}
	}
}

// withACLs returns the requests with the ACLs of what they make; they share no memory with the caller's where they differ.
func (s *zkSession) withACLs(ctx context.Context, session uint64, reqs []zkop.Request) ([]zkop.Request, error) {
	makes := func(r zkop.Request) bool { return r.Kind == zkop.Create && len(r.ACL) == 0 }
	if !slices.ContainsFunc(reqs, func(r zkop.Request) bool { return makes(r) || slices.ContainsFunc(r.Ops, makes) }) {
		return reqs, nil
	}
	found := map[string][]zkop.ACL{} // by path; what is made here is a parent too
	look := func(path string) (acl []zkop.ACL, err error) {
		acl, known := found[path]
		if !known {
			acl, err = s.readACL(ctx, session, path)
			found[path] = acl
		}
		return acl, err
	}
	fill := func(r *zkop.Request) error {
		if !makes(*r) {
			return nil
		}
		acl, err := look(parentPath(r.Path))
		if err == nil && openACL(acl) && rootOfKafka(r.Path) {
			acl, err = look(znode.BrokersPath)
		}
		r.ACL = znodeACL(r.Path, acl, s.secure)
		found[r.Path] = r.ACL
		return err
	}
	out := slices.Clone(reqs)
	for i := range out {
		out[i].Ops = slices.Clone(out[i].Ops)
		for k := range out[i].Ops {
			if err := fill(&out[i].Ops[k]); err != nil {
				return reqs, err
			}
		}
		if err := fill(&out[i]); err != nil {
			return reqs, err
		}
	}
	return out, nil
}

// parentPath is the znode above; a sequential node's path may end with a slash.
func parentPath(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 1)] }

// readACL returns the ACL of a znode, nil when it does not exist. Digests that ZooKeeper hides from those who may not change
// an ACL ("user:x") are of no use to a new znode.
func (s *zkSession) readACL(ctx context.Context, session uint64, path string) ([]zkop.ACL, error) {
	acl, _, err := zkutil.Within(s.Client, session).GetACL(ctx, path)
	switch {
	case errors.Is(err, zkop.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the ACL of %s, which the new znode takes over: %w", path, err)
	}
	for _, a := range acl {
		if _, digest, ok := strings.Cut(a.ID, ":"); a.Scheme == "digest" && ok && digest == "x" {
			return nil, fmt.Errorf("the ACL of %s, which the new znode takes over, is hidden: %w", path, zkop.ErrNoAuth)
		}
	}
	return acl, nil
}

// rootOfKafka tells the folders that Kafka makes right below its root. The root is mostly open, as nobody protects a chroot:
// what the cluster protects shows in /brokers, which is there before all others.
func rootOfKafka(path string) bool {
	return strings.LastIndexByte(path, '/') == 0 && (strings.HasPrefix(path, znode.ACLPath) || slices.Contains([]string{
		znode.ConfigPath, znode.AdminPath, znode.ControllerPath, znode.ControllerEpochPath, znode.ISRChangeNotificationPath, znode.DelegationTokenPath,
	}, path))
}

func openACL(acl []zkop.ACL) bool {
	return len(acl) == 0 || slices.ContainsFunc(acl, func(a zkop.ACL) bool { return isWorld(a) && a.Perms == zkop.PermAll })
}

// znodeACL is the ACL of a new znode: its parent's, so that it is as open and as closed as the cluster keeps its znodes,
// whoever makes it. Where Kafka keeps secrets (its ZkData.sensitivePath) nobody may read because everybody may. Below a
// parent that is open to everybody the new one is too, unless secure (zookeeper.set.acl) asks for what Kafka does then: all
// rights for the user who makes it, and read for everybody else where there are no secrets; /consumers stays open, for clients write there.
func znodeACL(path string, parent []zkop.ACL, secure bool) []zkop.ACL {
	sensitive := slices.ContainsFunc([]string{
		znode.ConfigPath + "/users", znode.ConfigPath + "/brokers", znode.DelegationTokensPath,
	}, func(p string) bool { return strings.HasPrefix(path, p) })
	open := openACL(parent)
	secure = secure && path != znode.ConsumersPath
	switch {
	case open && secure && sensitive:
		return []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth"}}
	case open && secure:
		return []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth"}, {Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}}
	case open:
		return zkop.WorldAll()
	case !sensitive:
		return parent
	}
	named := slices.DeleteFunc(slices.Clone(parent), func(a zkop.ACL) bool { return isWorld(a) && a.Perms == zkop.PermRead })
	if len(named) == 0 {
		return parent
	}
	return named
}

func isWorld(a zkop.ACL) bool { return a.Scheme == "world" }

// explain adds to a refusal what can be done about it.
func (s *zkSession) explain(r *zkop.Response) {
	switch {
	case errors.Is(r.Err, zkop.ErrNoAuth):
		r.Err = &zkDenial{r.Err, s.hint}
	case errors.Is(r.Err, zkutil.ErrAuthFailed):
		r.Err = &zkDenial{r.Err, zkLoginHint}
	}
	for i := range r.Results {
		s.explain(&r.Results[i])
	}
}

// zkDenial is a refusal by ZooKeeper, and what can be done about it.
type zkDenial struct {
	err  error
	hint string
}

func (d *zkDenial) Error() string { return d.err.Error() }

func (d *zkDenial) Unwrap() error { return d.err }

// zooKeeperHint says what to do about a refusal of ZooKeeper. It never says whether a password was right: an ACL that does
// not match is all that can be seen.
func (c *Config) zooKeeperHint() string {
	const mine = "ZooKeeper does not tell a wrong password from a user that the znode's ACL does not name: check "
	certificate := c.ZooKeeperTLS != nil && c.ZooKeeperTLS.GetClientCertificate != nil
	switch {
	case len(c.ZooKeeperAuth) > 0:
		return mine + zooKeeperAuth
	case certificate:
		return "the znode's ACL does not name the certificate of zookeeper.ssl.keystore.location: use the brokers' own, or one with the same distinguished name, " +
			"or a user of ZooKeeper with " + zooKeeperAuth + "=digest:USER:PASSWORD"
	}
	return "the znode is protected (zookeeper.set.acl of the brokers): " + zkLoginHint
}

const zkLoginHint = "log in with a certificate as the brokers have it (" + zooKeeperTLSOn + "=true and zookeeper.ssl.keystore.location), or with " +
	zooKeeperAuth + "=digest:USER:PASSWORD, in the file of --command-config"
