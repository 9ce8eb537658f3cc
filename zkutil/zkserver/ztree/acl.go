package ztree

import (
	"crypto/sha1" //nolint:gosec // the digest scheme is defined with SHA-1
	"encoding/base64"
	"net/netip"
	"strings"

	"kctl/zkutil/zkop"
)

// Identity is something that a connection has proved to be: a digest user, an IP address, the super user.
type Identity struct {
	Scheme string
	ID     string
}

// The schemes the tree knows.
const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeDigest = "digest"
	schemeIP     = "ip"
	// SchemeSuper is the scheme of an identity that may do anything.
	SchemeSuper = "super"
)

// DigestIdentity is the identity that the credential "user:password" of an addauth proves:
// user:base64(sha1(user:password)). False when the credential has no user part.
func DigestIdentity(credential string) (Identity, bool) {
	user, _, ok := strings.Cut(credential, ":")
	if !ok {
		return Identity{}, false
	}
	sum := sha1.Sum([]byte(credential)) //nolint:gosec // see above
	return Identity{Scheme: schemeDigest, ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, true
}

// allowed is ZooKeeper's checkACL: one entry that grants one of the wanted permissions to one of the identities.
func allowed(acl []zkop.ACL, perm int32, auth []Identity) bool {
	if len(acl) == 0 {
		return true
	}
	for i := range acl {
		if acl[i].Perms&perm != 0 && acl[i].Scheme == schemeWorld && acl[i].ID == "anyone" {
			return true
		}
	}
	for _, id := range auth {
		if id.Scheme == SchemeSuper {
			return true
		}
		for i := range acl {
			if acl[i].Perms&perm != 0 && acl[i].Scheme == id.Scheme && matches(id, acl[i].ID) {
				return true
			}
		}
	}
	return false
}

func matches(id Identity, want string) bool {
	if id.Scheme != schemeIP {
		return id.ID == want
	}
	addr, err := netip.ParseAddr(id.ID)
	if err != nil {
		return false
	}
	prefix, ok := parsePrefix(want)
	return ok && prefix.Contains(addr.Unmap())
}

// parsePrefix reads an ip ACL's id: an address, optionally with the number of significant bits.
func parsePrefix(s string) (netip.Prefix, bool) {
	host, bits, hasBits := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	if !hasBits {
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(host + "/" + bits)
	return p, err == nil
}

// fixACL validates the access list of a create or setACL and replaces "auth" entries by the identities of the
// connection, so that the result no longer depends on who asked. nil means the open ACL (zkop's rule); an
// empty list is invalid, as in ZooKeeper.
func fixACL(acl []zkop.ACL, auth []Identity) ([]zkop.ACL, bool) {
	if acl == nil || isOpen(acl) {
		return openACL, true
	}
	out := make([]zkop.ACL, 0, len(acl))
	for i, e := range acl {
		if containsACL(acl[:i], e) {
			continue
		}
		switch e.Scheme {
		case schemeWorld:
			if e.ID != "anyone" {
				return nil, false
			}
			out = append(out, e)
		case schemeAuth:
			found := false
			for _, id := range auth {
				if id.Scheme == schemeIP { // an address is no authentication
					continue
				}
				found = true
				if id.Scheme == SchemeSuper {
					continue
				}
				if own := (zkop.ACL{Perms: e.Perms, Scheme: id.Scheme, ID: id.ID}); !containsACL(out, own) {
					out = append(out, own)
				}
			}
			if !found {
				return nil, false
			}
		case schemeDigest:
			if strings.Count(e.ID, ":") != 1 {
				return nil, false
			}
			out = append(out, e)
		case schemeIP:
			if _, ok := parsePrefix(e.ID); !ok {
				return nil, false
			}
			out = append(out, e)
		default:
			return nil, false
		}
	}
	return out, len(out) > 0
}

func isOpen(acl []zkop.ACL) bool {
	return len(acl) == 1 && acl[0] == openACL[0]
}

func containsACL(acl []zkop.ACL, e zkop.ACL) bool {
	for i := range acl {
		if acl[i] == e {
			return true
		}
	}
	return false
}

// maskACL hides the password digests from readers who may not administer the node.
func maskACL(acl []zkop.ACL) []zkop.ACL {
	out := make([]zkop.ACL, len(acl))
	for i, e := range acl {
		if e.Scheme == schemeDigest {
			if user, _, ok := strings.Cut(e.ID, ":"); ok {
				e.ID = user + ":x"
			}
		}
		out[i] = e
	}
	return out
}
