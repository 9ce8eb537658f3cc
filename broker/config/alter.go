package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// refusal is what the functions of this file return when the client is at fault: a sentence for it, wrapping
// the protocol error (INVALID_CONFIG or INVALID_REQUEST).
type refusal struct {
	kind   error
	reason string
}

func (r refusal) Error() string { return r.reason }
func (r refusal) Unwrap() error { return r.kind }

func invalidConfig(format string, args ...any) error {
	return refusal{kerr.InvalidConfig, fmt.Sprintf(format, args...)}
}

func invalidRequest(format string, args ...any) error {
	return refusal{kerr.InvalidRequest, fmt.Sprintf(format, args...)}
}

// OpKind is the kind of an incremental change (KIP-339), numbered as on the wire.
type OpKind int8

// The kinds.
const (
	OpSet      OpKind = 0
	OpDelete   OpKind = 1
	OpAppend   OpKind = 2
	OpSubtract OpKind = 3
)

// Op is one change of one key. Value nil is allowed for OpDelete only.
type Op struct {
	Kind  OpKind
	Name  string
	Value *string
}

// ValidateTopic checks the overrides of a topic by name and value, and against each other.
func ValidateTopic(values map[string]string) error {
	for _, name := range sortedKeys(values) {
		k, ok := topicIndex[name]
		if !ok {
			return invalidConfig("Unknown topic config name: %s", name)
		}
		if err := k.Check(values[name]); err != nil {
			return invalidConfig("%s", capital(err.Error()))
		}
	}
	if strings.EqualFold(values["remote.storage.enable"], "true") {
		return invalidConfig("Tiered storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
	}
	lo, err1 := strconv.ParseInt(values["min.compaction.lag.ms"], 10, 64)
	hi, err2 := strconv.ParseInt(values["max.compaction.lag.ms"], 10, 64)
	if err1 == nil && err2 == nil && lo > hi {
		return invalidConfig("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", lo, hi)
	}
	return nil
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// ValidateBroker checks dynamic broker values; perBroker is false for the cluster-wide default.
func ValidateBroker(values map[string]string, perBroker bool) error {
	var static, own []string
	for _, name := range sortedKeys(values) {
		k, ok := brokerIndex[name]
		switch {
		case !ok || k.Scope == ReadOnly:
			static = append(static, name)
		case k.Scope == PerBroker && !perBroker:
			own = append(own, name)
		}
	}
	if len(static) > 0 {
		return invalidRequest("Cannot update these configs dynamically: %s", strings.Join(static, ", "))
	}
	if len(own) > 0 {
		return invalidRequest("Cannot update per-broker configs at default cluster level: %s", strings.Join(own, ", "))
	}
	for _, name := range sortedKeys(values) {
		if err := brokerIndex[name].Check(values[name]); err != nil {
			return invalidRequest("%s", capital(err.Error()))
		}
	}
	return nil
}

// ApplyOps returns current changed by ops. keys is the table of the kind of resource.
func ApplyOps(current map[string]string, ops []Op, find func(string) (Key, bool)) (map[string]string, error) {
	out := maps.Clone(current)
	if out == nil {
		out = make(map[string]string)
	}
	done := make(map[string]bool, len(ops))
	for _, op := range ops {
		if done[op.Name] {
			return nil, invalidRequest("Error due to duplicate config keys: %s", op.Name)
		}
		done[op.Name] = true
		if op.Value == nil && op.Kind != OpDelete {
			return nil, invalidRequest("Null value not supported for : %s", op.Name)
		}
		if err := applyOp(out, op, find); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func applyOp(values map[string]string, op Op, find func(string) (Key, bool)) error {
	switch op.Kind {
	case OpSet:
		values[op.Name] = *op.Value
		return nil
	case OpDelete:
		delete(values, op.Name)
		return nil
	case OpAppend, OpSubtract:
	default:
		return invalidRequest("Unknown operation %d for %s", op.Kind, op.Name)
	}
	word := "append"
	if op.Kind == OpSubtract {
		word = "subtract"
	}
	k, ok := find(op.Name)
	if !ok || k.Type != List {
		return invalidConfig("Config value %s is not allowed for config key: %s", word, op.Name)
	}
	old, ok := values[op.Name]
	if !ok {
		old = k.Default
	}
	items := SplitList(old)
	for _, v := range SplitList(*op.Value) {
		at := slices.Index(items, v)
		switch {
		case op.Kind == OpAppend && at < 0:
			items = append(items, v)
		case op.Kind == OpSubtract && at >= 0:
			items = slices.Delete(items, at, at+1)
		}
	}
	values[op.Name] = strings.Join(items, ",")
	return nil
}

// ChangeFunc returns what an entity's values become, or why they may not. It must not change its argument.
type ChangeFunc func(current map[string]string) (map[string]string, error)

// AlterTopic changes a topic's overrides, leaves the notification that Kafka leaves, and takes them over at
// once. With validateOnly nothing is written.
func (d *Dynamic) AlterTopic(ctx context.Context, topic string, validateOnly bool, change ChangeFunc) error {
	values, err := d.alter(ctx, znode.TopicConfig, topic, validateOnly, change)
	if err != nil || validateOnly {
		return err
	}
	d.setTopics([]string{topic}, map[string]map[string]string{topic: values})
	return nil
}

// AlterBroker changes the dynamic configuration of a broker, or of all for the entity <default>.
func (d *Dynamic) AlterBroker(ctx context.Context, entity string, validateOnly bool, change ChangeFunc) error {
	_, err := d.alter(ctx, znode.BrokerConfig, entity, validateOnly, change)
	if err != nil || validateOnly {
		return err
	}
	return d.reload(ctx)
}

// alter reads the entity's node, applies change, writes it back under the version that was read, and begins
// again when someone else was first. Fields that we do not know survive.
func (d *Dynamic) alter(ctx context.Context, t znode.ConfigType, entity string, validateOnly bool, change ChangeFunc) (map[string]string, error) {
	ops := zkutil.Any(d.zk)
	path := znode.ConfigEntityPath(t, entity)
	for {
		data, stat, err := ops.Get(ctx, path)
		exists := err == nil
		if err != nil && !errors.Is(err, zkop.ErrNoNode) {
			return nil, err
		}
		node := znode.Config{}
		if exists {
			if node, err = znode.DecodeConfig(t, entity, data); err != nil {
				node = znode.Config{} // malformed: this write repairs it
			}
		}
		values, err := change(node.Values)
		if err != nil || validateOnly {
			return nil, err
		}
		node.Values = values
		if exists {
			_, err = ops.SetIfVersion(ctx, path, node.Encode(), stat.Version)
		} else {
			_, err = ops.Create(ctx, path, node.Encode(), zkop.Persistent)
		}
		switch {
		case err == nil:
			return values, d.notify(ctx, znode.ConfigChange{Type: t, Entity: entity})
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, zkop.ErrBadVersion), errors.Is(err, zkop.ErrNodeExists), errors.Is(err, zkop.ErrNoNode),
			errors.Is(err, zkop.ErrOutcomeUnknown):
			continue // read again; a change that was applied after all is applied once more, to the same end
		default:
			return nil, err
		}
	}
}

// notify tells all brokers. When the answer is lost it tells them twice: that does no harm, silence would.
func (d *Dynamic) notify(ctx context.Context, change znode.ConfigChange) error {
	for {
		_, err := zkutil.Any(d.zk).Create(ctx, znode.ConfigChangePrefix, change.Encode(), zkop.PersistentSequential)
		if !errors.Is(err, zkop.ErrOutcomeUnknown) || ctx.Err() != nil {
			return err
		}
	}
}

// BrokerEntity returns the name under which a broker's dynamic configuration is kept.
func BrokerEntity(id cluster.BrokerID) string { return strconv.Itoa(int(id)) }

// DefaultEntity is the name of the dynamic configuration of all brokers.
const DefaultEntity = znode.DefaultEntity
