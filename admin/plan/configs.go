package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kctl/admin/model"
)

// ParseConfigResources reads TYPE/NAME[,NAME...]: topic/a,b, broker/1, broker/default, broker-logger/1,
// client-metrics/N, group/N; the plural of the type is taken too.
func ParseConfigResources(s string) ([]model.ConfigResource, error) {
	kind, names, ok := strings.Cut(s, "/")
	t := model.ConfigResourceType(strings.TrimSuffix(kind, "s"))
	if kind == "client-metrics" {
		t = model.ClientMetricsResource
	}
	known := []model.ConfigResourceType{model.TopicResource, model.BrokerResource, model.BrokerLoggerResource, model.ClientMetricsResource, model.GroupResource}
	if !ok || !slices.Contains(known, t) {
		return nil, fmt.Errorf("resource %q is none of topic/NAME, broker/ID, broker/default, broker-logger/ID, client-metrics/NAME, group/NAME", s)
	}
	var out []model.ConfigResource
	list := []string{names} // names of groups and client metrics may have commas
	if t == model.TopicResource || t == model.BrokerResource || t == model.BrokerLoggerResource {
		list = strings.Split(names, ",")
	}
	for _, name := range list {
		r, err := configResource(t, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out, nil
}

func configResource(t model.ConfigResourceType, name string) (model.ConfigResource, error) {
	r := model.ConfigResource{Type: t, Name: name}
	switch {
	case name == "":
		return r, fmt.Errorf("%s/: the name is missing", t)
	case t == model.TopicResource:
		return r, TopicName(name)
	case t == model.BrokerResource && (name == model.DefaultName || name == "<default>"):
		r.Name = ""
	case t == model.BrokerResource, t == model.BrokerLoggerResource:
		if n, err := strconv.ParseInt(name, 10, 32); err != nil || n < 0 {
			return r, fmt.Errorf("%s/%s: %q is not a broker id", t, name, name)
		}
	}
	return r, nil
}

// LooksLikeResource reports whether an argument names resources rather than a key or key=value.
func LooksLikeResource(s string) bool {
	slash, equals := strings.IndexByte(s, '/'), strings.IndexByte(s, '=')
	return slash >= 0 && (equals < 0 || slash < equals)
}

// ConfigOpKind is what is done to a key.
type ConfigOpKind string

// The kinds; append and subtract are for lists.
const (
	SetConfig      ConfigOpKind = "set"
	DeleteConfig   ConfigOpKind = "delete"
	AppendConfig   ConfigOpKind = "append"
	SubtractConfig ConfigOpKind = "subtract"
)

// ConfigOp is one operation on a key. Value is unused by delete.
type ConfigOp struct {
	Kind  ConfigOpKind
	Key   string
	Value string
}

// ParseConfigOps reads the operations of a command: sets, appends and subtracts as key=value, deletes as keys. A key
// may be named once.
func ParseConfigOps(sets, appends, subtracts, deletes []string) ([]ConfigOp, error) {
	var out []ConfigOp
	add := func(op ConfigOp) error {
		if slices.ContainsFunc(out, func(o ConfigOp) bool { return o.Key == op.Key }) {
			return fmt.Errorf("key %q is given twice", op.Key)
		}
		out = append(out, op)
		return nil
	}
	for _, group := range []struct {
		kind  ConfigOpKind
		pairs []string
	}{{SetConfig, sets}, {AppendConfig, appends}, {SubtractConfig, subtracts}} {
		for _, p := range group.pairs {
			k, v, ok := strings.Cut(p, "=")
			if k = strings.TrimSpace(k); !ok || k == "" {
				return nil, fmt.Errorf("%q is not key=value", p)
			}
			if err := add(ConfigOp{Kind: group.kind, Key: k, Value: v}); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range deletes {
		if k = strings.TrimSpace(k); k == "" || strings.Contains(k, "=") {
			return nil, fmt.Errorf("%q is not a key to delete", k)
		}
		if err := add(ConfigOp{Kind: DeleteConfig, Key: k}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ConfigChange is one operation on one resource with what it changes. Before is the override there is, After the
// one there will be; nil for none. Inherited is what holds without an override.
type ConfigChange struct {
	Resource model.ConfigResource
	ConfigOp
	Before    *string
	After     *string
	HadSecret bool // there is an override whose value is hidden
	Sensitive bool
	Inherited model.ConfigSynonym
	None      bool // the state is what is wanted already
}

// UnknownKeyError says that a resource has no such key.
type UnknownKeyError struct {
	Resource model.ConfigResource
	Key      string
}

// Error names the key.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("%s has no configuration key %q", e.Resource, e.Key)
}

// ErrReadOnlyKey says that a key cannot be changed while brokers run.
var ErrReadOnlyKey = errors.New("the key is read-only: it is set in the broker's server.properties and takes effect at its next start")

// PlanConfigs computes what ops do to one resource. allowUnknown leaves the judgement on unknown keys to the cluster.
func PlanConfigs(r *model.ResourceConfigs, ops []ConfigOp, allowUnknown bool) ([]ConfigChange, error) {
	out := make([]ConfigChange, 0, len(ops))
	for _, op := range ops {
		e := r.Entry(op.Key)
		if e == nil {
			if !allowUnknown && !mayBeHidden(r.Resource, op.Key) {
				return nil, &UnknownKeyError{r.Resource, op.Key}
			}
			e = &model.ConfigEntry{Name: op.Key, Source: model.DefaultSource, Sensitive: SecretKey(op.Key)} // brokers say nothing of a key that is not set
		}
		// Apache Kafka calls those of its own that it lists only while they are set read-only too (throttles, and the keys of one
		// listener), and takes them all the same.
		if e.ReadOnly && r.Resource.Type == model.BrokerResource && !mayBeHidden(r.Resource, op.Key) {
			return nil, fmt.Errorf("%s: %s: %w", r.Resource, op.Key, ErrReadOnlyKey)
		}
		ch, err := planConfig(r.Resource, e, op)
		if err != nil {
			return nil, err
		}
		out = append(out, ch)
	}
	return out, nil
}

// mayBeHidden knows the keys that brokers take but do not list while they are not set.
func mayBeHidden(r model.ConfigResource, key string) bool {
	switch r.Type {
	case model.TopicResource, model.BrokerLoggerResource:
		return false
	case model.BrokerResource:
		return strings.HasPrefix(key, "listener.name.") || slices.Contains([]string{
			"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second",
		}, key)
	}
	return true
}

// SecretKey reports whether values of a configuration key must not be shown, judged by its name alone: Kafka's keys of
// type password, with or without the prefix of a listener, and whatever calls itself a secret.
func SecretKey(key string) bool {
	key = strings.TrimSpace(key)
	return key == "kctl.zookeeper.auth" || strings.Contains(key, "password") || strings.Contains(key, "jaas") || strings.Contains(key, "secret") || strings.HasSuffix(key, ".key") ||
		strings.HasSuffix(key, "ssl.keystore.certificate.chain") || strings.HasSuffix(key, "ssl.truststore.certificates")
}

func planConfig(r model.ConfigResource, e *model.ConfigEntry, op ConfigOp) (ConfigChange, error) {
	ch := ConfigChange{Resource: r, ConfigOp: op, Sensitive: e.Sensitive}
	before, has := e.Override(r)
	ch.Before, ch.HadSecret = nil, has && before == nil
	if has {
		ch.Before = before
	}
	ch.Inherited, _ = e.Inherited(r)
	switch op.Kind {
	case SetConfig:
		ch.After = &op.Value
		ch.None = ch.Before != nil && *ch.Before == op.Value
	case DeleteConfig:
		ch.None = !has
	case AppendConfig, SubtractConfig:
		if e.Type != "" && e.Type != "list" {
			return ch, fmt.Errorf("%s: %s is a %s, not a list: it cannot be appended to or subtracted from", r, op.Key, e.Type)
		}
		base := ch.Before
		if base == nil {
			base = ch.Inherited.Value
		}
		after := editList(base, op)
		ch.After = &after
		ch.None = ch.Before != nil && *ch.Before == after
	}
	return ch, nil
}

func editList(base *string, op ConfigOp) string {
	var items []string
	if base != nil && strings.TrimSpace(*base) != "" {
		items = SplitList(*base)
	}
	for _, v := range SplitList(op.Value) {
		has := slices.Contains(items, v)
		switch {
		case op.Kind == AppendConfig && !has:
			items = append(items, v)
		case op.Kind == SubtractConfig && has:
			items = slices.DeleteFunc(items, func(i string) bool { return i == v })
		}
	}
	return strings.Join(items, ",")
}

// SplitList reads a configuration list: values joined by commas, blanks around them do not count.
func SplitList(s string) []string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// ByResource groups changes, keeping the order of resources.
func ByResource(changes []ConfigChange) ([]model.ConfigResource, map[model.ConfigResource][]ConfigChange) {
	var resources []model.ConfigResource
	by := map[model.ConfigResource][]ConfigChange{}
	for _, ch := range changes {
		if by[ch.Resource] == nil {
			resources = append(resources, ch.Resource)
		}
		by[ch.Resource] = append(by[ch.Resource], ch)
	}
	return resources, by
}

// Took reports whether a change shows in the configuration read afterwards, and if not, what shows instead.
func (ch *ConfigChange) Took(after *model.ResourceConfigs) (shown string, ok bool) {
	e := after.Entry(ch.Key)
	if e == nil {
		return "the key is not listed", ch.After == nil
	}
	value, has := e.Override(ch.Resource)
	text := "another value, which is hidden"
	if e.Value != nil {
		text = strconv.Quote(*e.Value) + " (" + e.Source + ")"
	}
	switch {
	case ch.Resource.Type == model.BrokerLoggerResource && ch.Kind == DeleteConfig:
		return text, true // every logger shows a level of its own
	case ch.After == nil:
		return text, !has
	case !has:
		return text, false
	case value == nil || e.Sensitive:
		return text, true
	case ch.Kind == AppendConfig || ch.Kind == SubtractConfig:
		return text, listTook(*value, ch)
	}
	return text, *value == *ch.After || sameList(e.Type, *value, *ch.After)
}

func listTook(value string, ch *ConfigChange) bool {
	items := SplitList(value)
	for _, v := range SplitList(ch.Value) {
		if slices.Contains(items, v) != (ch.Kind == AppendConfig) {
			return false
		}
	}
	return true
}

// sameList compares lists regardless of blanks: brokers may write them anew.
func sameList(kind, a, b string) bool {
	return kind == "list" && slices.Equal(SplitList(a), SplitList(b))
}

// FullConfigs is the whole set of overrides of a resource after the changes, for the old request that replaces all of
// them. It is an error when an override that must be kept cannot be read.
func FullConfigs(current *model.ResourceConfigs, changes []ConfigChange) (map[string]string, error) {
	out := map[string]string{}
	touched := func(key string) bool {
		return slices.ContainsFunc(changes, func(ch ConfigChange) bool { return ch.Key == key })
	}
	for i := range current.Entries {
		e := &current.Entries[i]
		value, has := e.Override(current.Resource)
		switch {
		case !has || touched(e.Name):
		case value == nil:
			return nil, fmt.Errorf("%s: these brokers can only replace the whole configuration, and the value of %s, which must be kept, is hidden: set it in the same command",
				current.Resource, e.Name)
		default:
			out[e.Name] = *value
		}
	}
	for _, ch := range changes {
		if ch.After != nil {
			out[ch.Key] = *ch.After
		}
	}
	return out, nil
}

// CheckExpected refuses when an override is not what the caller left behind: expected has key=value for an override
// and a bare key for none.
func CheckExpected(r *model.ResourceConfigs, expected []string) error {
	for _, x := range expected {
		key, want, has := strings.Cut(x, "=")
		var got *string
		own := false
		if e := r.Entry(key); e != nil {
			if got, own = e.Override(r.Resource); !own {
				got = nil
			}
		}
		switch {
		case !has && !own, has && got != nil && *got == want:
			continue
		case !own:
			return fmt.Errorf("%s: %s has no value of its own any more, expected was %q", r.Resource, key, want)
		case got == nil:
			return fmt.Errorf("%s: the value of %s is hidden, so it cannot be compared", r.Resource, key)
		case !has:
			return fmt.Errorf("%s: %s is %q, expected was no value of its own", r.Resource, key, *got)
		}
		return fmt.Errorf("%s: %s is %q, expected was %q", r.Resource, key, *got, want)
	}
	return nil
}
