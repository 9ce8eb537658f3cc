package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kctl/admin/model"
)

// The words of rules, in Kafka's spelling.
const (
	LiteralPattern  = "Literal"
	PrefixedPattern = "Prefixed"
	AllowRule       = "Allow"
	DenyRule        = "Deny"
	// ClusterName is the name of the one cluster resource.
	ClusterName = "kafka-cluster"
)

// aclOperations are the operations that mean something on each type of resource, as Kafka's own tool accepts them.
var aclOperations = []struct {
	resource   string
	operations []string
}{
	{"Topic", []string{"Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs", "All"}},
	{"Group", []string{"Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs", "All"}},
	{"Cluster", []string{"Create", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite", "All"}},
	{"TransactionalId", []string{"Describe", "Write", "All"}},
	{"DelegationToken", []string{"Describe", "All"}},
	{"User", []string{"CreateTokens", "DescribeTokens", "All"}},
}

// ACLResourceTypes lists the types of resources.
func ACLResourceTypes() []string {
	var out []string
	for _, r := range aclOperations {
		out = append(out, r.resource)
	}
	return out
}

// ACLOperations lists the operations of a resource type, of all types for an empty one.
func ACLOperations(resource string) []string {
	var out []string
	for _, r := range aclOperations {
		for _, op := range r.operations {
			if (resource == "" || r.resource == resource) && !slices.Contains(out, op) {
				out = append(out, op)
			}
		}
	}
	return out
}

// ACLWord finds the spelling of a word regardless of case, dashes and underscores.
func ACLWord(what, word string, known []string) (string, error) {
	flat := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, k := range known {
		if flat(k) == flat(word) {
			return k, nil
		}
	}
	msg := fmt.Sprintf("%s %q is not one of %s", what, word, strings.Join(known, ", "))
	if near, ok := Nearest(word, known); ok {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return "", errors.New(msg)
}

// CheckACL refuses a rule that Kafka would refuse, or that cannot be meant.
func CheckACL(a model.ACL) error {
	if !slices.Contains(ACLOperations(a.ResourceType), a.Operation) {
		return fmt.Errorf("operation %s means nothing on %s: %s", a.Operation, a.ResourceType, strings.Join(ACLOperations(a.ResourceType), ", "))
	}
	kind, name, ok := strings.Cut(a.Principal, ":")
	switch {
	case !ok || kind == "" || name == "":
		return fmt.Errorf("principal %q is not TYPE:NAME, such as User:alice (User:* is everybody)", a.Principal)
	case a.ResourceName == "":
		return fmt.Errorf("the name of the %s is empty; * is all of them", a.ResourceType)
	case a.Host == "":
		return errors.New("the host is empty; * is all of them")
	case a.ResourceType == "Cluster" && a.ResourceName != ClusterName:
		return fmt.Errorf("the cluster is named %s, not %q", ClusterName, a.ResourceName)
	case a.PatternType == PrefixedPattern && a.ResourceName == "*":
		return fmt.Errorf("a prefixed pattern * means names that begin with a star; all %ss are the literal *", strings.ToLower(a.ResourceType))
	case a.PatternType == PrefixedPattern && a.ResourceType == "Cluster":
		return errors.New("the cluster cannot be named by a prefix")
	}
	return nil
}

// SortACLs orders rules by resource, principal, permission and operation.
func SortACLs(acls []model.ACL) {
	slices.SortFunc(acls, func(a, b model.ACL) int {
		return cmp.Or(cmp.Compare(a.ResourceType, b.ResourceType), cmp.Compare(a.ResourceName, b.ResourceName), cmp.Compare(a.PatternType, b.PatternType),
			cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Permission, b.Permission), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Host, b.Host))
	})
}

// ACLDiff is what separates the rules there are from those wanted.
type ACLDiff struct {
	Create, Delete, Keep []model.ACL
}

// DiffACLs compares. With prune, rules of the principals that wanted names and that it does not hold are deleted;
// rules of other principals are never touched.
func DiffACLs(have, wanted []model.ACL, prune bool) ACLDiff {
	var d ACLDiff
	for _, w := range wanted {
		switch {
		case slices.Contains(d.Create, w) || slices.Contains(d.Keep, w):
		case slices.Contains(have, w):
			d.Keep = append(d.Keep, w)
		default:
			d.Create = append(d.Create, w)
		}
	}
	for _, h := range have {
		ours := slices.ContainsFunc(wanted, func(w model.ACL) bool { return w.Principal == h.Principal })
		if prune && ours && !slices.Contains(wanted, h) {
			d.Delete = append(d.Delete, h)
		}
	}
	return d
}

// ACLFile is the declarative form: rules with several operations and hosts each.
type ACLFile struct {
	ACLs []ACLFileRule `yaml:"acls"`
}

// ACLFileRule is one entry of the file. Exactly one resource is named. Pattern is literal unless said otherwise,
// permission allow, hosts all.
type ACLFileRule struct {
	Principal       string   `yaml:"principal"`
	Topic           string   `yaml:"topic,omitempty"`
	Group           string   `yaml:"group,omitempty"`
	Cluster         bool     `yaml:"cluster,omitempty"`
	TransactionalID string   `yaml:"transactionalId,omitempty"`
	DelegationToken string   `yaml:"delegationToken,omitempty"`
	User            string   `yaml:"user,omitempty"`
	Pattern         string   `yaml:"pattern,omitempty"`
	Permission      string   `yaml:"permission,omitempty"`
	Operations      []string `yaml:"operations,flow"`
	Hosts           []string `yaml:"hosts,omitempty,flow"`
}

// ParseACLFile reads the file; unknown keys are errors.
func ParseACLFile(data []byte) ([]model.ACL, error) {
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	var file ACLFile
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	var out []model.ACL
	for i, r := range file.ACLs {
		acls, err := r.expand()
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		out = append(out, acls...)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no rules")
	}
	return out, nil
}

func (r *ACLFileRule) expand() ([]model.ACL, error) {
	base := model.ACL{Principal: r.Principal, PatternType: LiteralPattern, Permission: AllowRule}
	resources := [][2]string{{"Topic", r.Topic}, {"Group", r.Group}, {"TransactionalId", r.TransactionalID}, {"DelegationToken", r.DelegationToken}, {"User", r.User}}
	if r.Cluster {
		resources = append(resources, [2]string{"Cluster", ClusterName})
	}
	for _, p := range resources {
		if p[1] == "" {
			continue
		}
		if base.ResourceType != "" {
			return nil, fmt.Errorf("it names both a %s and a %s", base.ResourceType, p[0])
		}
		base.ResourceType, base.ResourceName = p[0], p[1]
	}
	if base.ResourceType == "" {
		return nil, errors.New("it names no resource: topic, group, cluster: true, transactionalId, delegationToken or user")
	}
	var err error
	if r.Pattern != "" {
		if base.PatternType, err = ACLWord("pattern", r.Pattern, []string{LiteralPattern, PrefixedPattern}); err != nil {
			return nil, err
		}
	}
	if r.Permission != "" {
		if base.Permission, err = ACLWord("permission", r.Permission, []string{AllowRule, DenyRule}); err != nil {
			return nil, err
		}
	}
	if len(r.Operations) == 0 {
		return nil, errors.New("it has no operations")
	}
	hosts := r.Hosts
	if len(hosts) == 0 {
		hosts = []string{"*"}
	}
	var out []model.ACL
	for _, op := range r.Operations {
		a := base
		if a.Operation, err = ACLWord("operation", op, ACLOperations(a.ResourceType)); err != nil {
			return nil, err
		}
		for _, a.Host = range hosts {
			if err := CheckACL(a); err != nil {
				return nil, err
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// EncodeACLFile writes rules in the declarative form, those that differ only in the operation joined.
func EncodeACLFile(acls []model.ACL) ([]byte, error) {
	acls = slices.Clone(acls)
	SortACLs(acls)
	file := ACLFile{ACLs: []ACLFileRule{}}
	at := map[model.ACL]int{}
	for _, a := range acls {
		key := a
		key.Operation = ""
		if i, ok := at[key]; ok {
			file.ACLs[i].Operations = append(file.ACLs[i].Operations, a.Operation)
			continue
		}
		at[key] = len(file.ACLs)
		r := ACLFileRule{Principal: a.Principal, Operations: []string{a.Operation}}
		if a.Host != "*" {
			r.Hosts = []string{a.Host}
		}
		if a.PatternType != LiteralPattern {
			r.Pattern = strings.ToLower(a.PatternType)
		}
		if a.Permission != AllowRule {
			r.Permission = strings.ToLower(a.Permission)
		}
		switch a.ResourceType {
		case "Topic":
			r.Topic = a.ResourceName
		case "Group":
			r.Group = a.ResourceName
		case "Cluster":
			r.Cluster = true
		case "TransactionalId":
			r.TransactionalID = a.ResourceName
		case "DelegationToken":
			r.DelegationToken = a.ResourceName
		case "User":
			r.User = a.ResourceName
		}
		file.ACLs = append(file.ACLs, r)
	}
	return yaml.Marshal(file)
}
