package znode

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// The paths of Kafka's AclAuthorizer: rules and notifications of literal resources, and of the other patterns, of which
// there are only prefixed ones.
const (
	ACLPath                 = "/kafka-acl"         // children: types of resources
	ACLChangesPath          = "/kafka-acl-changes" // children: notifications
	ACLChangePrefix         = "/kafka-acl-changes/acl_changes_"
	ACLExtendedPath         = "/kafka-acl-extended"          // children: patterns
	PrefixedACLPath         = "/kafka-acl-extended/prefixed" // children: types of resources
	ExtendedACLChangesPath  = "/kafka-acl-extended-changes"  // children: notifications
	ExtendedACLChangePrefix = "/kafka-acl-extended-changes/acl_changes_"
)

// aclTypes are the types of resources: the name of their folder, and that in notifications.
var aclTypes = [][2]string{
	{"Topic", "TOPIC"}, {"Group", "GROUP"}, {"Cluster", "CLUSTER"}, {"TransactionalId", "TRANSACTIONAL_ID"}, {"DelegationToken", "DELEGATION_TOKEN"}, {"User", "USER"},
}

// ACLResource is what a node of rules is for: one resource, or all whose names begin with Name.
type ACLResource struct {
	Type     string // Topic, Group, Cluster, TransactionalId, DelegationToken or User
	Name     string // as it stands in the path; * is all of the type when it is not a prefix
	Prefixed bool
}

// Path is where the rules of a resource are. A name with a slash in it has none; Kafka refuses it.
func (r ACLResource) Path() string {
	if r.Prefixed {
		return PrefixedACLPath + "/" + r.Type + "/" + r.Name
	}
	return ACLPath + "/" + r.Type + "/" + r.Name
}

// ParseACLPath is the reverse of Path.
func ParseACLPath(path string) (ACLResource, bool) {
	rest, prefixed := strings.CutPrefix(path, PrefixedACLPath+"/")
	if !prefixed {
		var ok bool
		if rest, ok = strings.CutPrefix(path, ACLPath+"/"); !ok {
			return ACLResource{}, false
		}
	}
	kind, name, ok := strings.Cut(rest, "/")
	return ACLResource{kind, name, prefixed}, ok && kind != "" && name != "" && !strings.Contains(name, "/")
}

// ACLRule is one rule on a resource, in Kafka's words.
type ACLRule struct {
	Principal  string // such as User:alice
	Permission string // Allow or Deny
	Host       string // * is all
	Operation  string // such as Read
}

// storedRule is a rule with what else its member of the list holds.
type storedRule struct {
	ACLRule
	unknown Fields
}

// ACLs are the rules on one resource in the order in which they stand.
type ACLs struct {
	Unknown Fields
	rules   []storedRule
}

// DecodeACLs reads the value of a node of rules: version 1. Null or empty data, as the folders have, are no rules. What
// Kafka before 1.1 wrote with backslashes that it did not escape (KAFKA-6319) is read as meant.
func DecodeACLs(path string, data []byte) (ACLs, error) {
	var a ACLs
	if len(data) == 0 {
		return a, nil
	}
	if !json.Valid(data) {
		if escaped := bytes.ReplaceAll(data, []byte(`\`), []byte(`\\`)); json.Valid(escaped) {
			data = escaped
		}
	}
	d := newDecoder(path, data)
	if v := d.int32("version", 1); v != 1 && d.err == nil {
		d.fail("version", "%d is not known: rules of version 1 only", v)
	}
	for _, raw := range d.array("acls") {
		r := newDecoder(path, raw)
		s := storedRule{ACLRule: ACLRule{
			Principal: r.text("principal", true), Permission: r.text("permissionType", true), Host: r.text("host", true), Operation: r.text("operation", true),
		}}
		s.unknown = r.unknown()
		if r.err != nil && d.err == nil {
			d.err = r.err
		}
		a.rules = append(a.rules, s)
	}
	a.Unknown = d.unknown()
	if d.err != nil {
		return ACLs{}, d.err
	}
	return a, nil
}

// Encode writes version 1.
func (a *ACLs) Encode() []byte {
	list := []byte{'['}
	for i, r := range a.rules {
		if i > 0 {
			list = append(list, ',')
		}
		e := newEncoder(96)
		e.text("principal", r.Principal)
		e.text("permissionType", r.Permission)
		e.text("host", r.Host)
		e.text("operation", r.Operation)
		list = append(list, e.end(r.unknown)...)
	}
	e := newEncoder(64 + len(list))
	e.raw("acls", append(list, ']'))
	e.int("version", 1)
	return e.end(a.Unknown)
}

// Rules lists the rules, each once.
func (a *ACLs) Rules() []ACLRule {
	var out []ACLRule
	for _, r := range a.rules {
		if !slices.Contains(out, r.ACLRule) {
			out = append(out, r.ACLRule)
		}
	}
	return out
}

// Add appends a rule unless it is there.
func (a *ACLs) Add(r ACLRule) {
	if !slices.ContainsFunc(a.rules, func(s storedRule) bool { return s.ACLRule == r }) {
		a.rules = append(a.rules, storedRule{ACLRule: r})
	}
}

// Remove takes a rule away.
func (a *ACLs) Remove(r ACLRule) {
	a.rules = slices.DeleteFunc(a.rules, func(s storedRule) bool { return s.ACLRule == r })
}

// Change is the notification that brokers wait for: the stem of a persistent-sequential node, and its data. That of a
// literal resource is plain text.
func (r ACLResource) Change() (prefix string, data []byte) {
	constant := r.Type
	for _, t := range aclTypes {
		if t[0] == r.Type {
			constant = t[1]
		}
	}
	if !r.Prefixed {
		return ACLChangePrefix, []byte(constant + ":" + r.Name)
	}
	e := newEncoder(96)
	e.int("version", 1)
	e.text("resourceType", constant)
	e.text("name", r.Name)
	e.text("patternType", "PREFIXED")
	return ExtendedACLChangePrefix, e.end(nil)
}

// DecodeACLChange reads a child of ACLChangesPath or ExtendedACLChangesPath, named by its path.
func DecodeACLChange(path string, data []byte) (ACLResource, error) {
	d := &decoder{path: path}
	var constant string
	r := ACLResource{Prefixed: strings.HasPrefix(path, ExtendedACLChangesPath+"/")}
	if r.Prefixed {
		d = newDecoder(path, data)
		d.int32("version", 1)
		constant, r.Name = d.text("resourceType", true), d.text("name", true)
		if p := d.text("patternType", true); !strings.EqualFold(p, "PREFIXED") {
			d.fail("patternType", "%s is not PREFIXED", excerpt([]byte(p)))
		}
	} else {
		var ok bool
		if constant, r.Name, ok = strings.Cut(string(data), ":"); !ok {
			d.fail("", "value is not TYPE:NAME: %s", excerpt(data))
		}
	}
	for _, t := range aclTypes {
		if strings.EqualFold(constant, t[1]) {
			r.Type = t[0]
		}
	}
	if r.Type == "" {
		d.fail("resourceType", "%s is no type of resource", excerpt([]byte(constant)))
	}
	return r, d.err
}
