package znode

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"kctl/zkutil/cluster"
)

// Config is the value of a configured entity: property names and values as text.
type Config struct {
	Values  map[string]string
	Unknown Fields
}

// DecodeConfig reads the value of ConfigEntityPath(t, name). Null or empty data, as intermediate nodes have,
// gives an empty Config.
func DecodeConfig(t ConfigType, name string, data []byte) (Config, error) {
	c := Config{Values: map[string]string{}}
	if len(data) == 0 {
		return c, nil
	}
	d := newDecoder(ConfigEntityPath(t, name), data)
	d.int32("version", 1)
	for _, f := range d.object("config", true) {
		v, ok := unquote(f.Raw)
		if !ok {
			d.fail("config", "value of %q is not a string", f.Name)
		}
		c.Values[f.Name] = v
	}
	c.Unknown = d.unknown()
	if e, ok := errors.AsType[*DecodeError](d.err); ok && t == UserConfig {
		e.Reason = "cannot be read (not shown: it may hold credentials)"
	}
	return c, d.err
}

// Encode writes version 1. The properties stand in the order of Kafka's hash table, so that an unchanged
// value stays the same bytes whoever writes it.
func (c Config) Encode() []byte {
	e := newEncoder(64 + 48*len(c.Values))
	e.int("version", 1)
	ce := newEncoder(32 + 48*len(c.Values))
	for _, k := range javaTableOrder(c.Values) {
		ce.text(k, c.Values[k])
	}
	e.raw("config", ce.end(nil))
	return e.end(c.Unknown)
}

// javaTableOrder is the iteration order of java.util.Properties: by slot of a table of 16, doubled while
// three quarters full; within a slot by name.
func javaTableOrder(m map[string]string) []string {
	size := uint32(16)
	for uint32(len(m)) > size/4*3 {
		size *= 2
	}
	slot := func(k string) uint32 {
		h := uint32(cluster.JavaStringHash(k))
		return (h ^ h>>16) & (size - 1)
	}
	keys := slices.Collect(maps.Keys(m))
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(slot(a), slot(b)), strings.Compare(a, b))
	})
	return keys
}

// ConfigChange is the value of a child of ConfigChangesPath: the entity whose configuration changed.
type ConfigChange struct {
	Type ConfigType
	// Entity is the path below the type, as ConfigEntityPath takes it.
	Entity string
}

// DecodeConfigChange reads version 1 (entity_type, entity_name) and 2 (entity_path); name is the child's name.
func DecodeConfigChange(name string, data []byte) (ConfigChange, error) {
	d := newDecoder(ConfigChangesPath+"/"+name, data)
	version := d.int32("version", 1)
	var c ConfigChange
	if version == 1 {
		c = ConfigChange{ConfigType(d.text("entity_type", true)), d.text("entity_name", true)}
		if d.err == nil && c.Type != TopicConfig && c.Type != ClientConfig {
			d.fail("entity_type", "%q is neither topics nor clients", string(c.Type))
		}
		if d.err == nil && c.Entity == "" {
			d.fail("entity_name", "it is empty")
		}
		return c, d.err
	}
	path := d.text("entity_path", true)
	t, entity, ok := strings.Cut(path, "/")
	if !ok || t == "" || entity == "" {
		d.fail("entity_path", "%q is not type/entity", path)
	}
	return ConfigChange{ConfigType(t), entity}, d.err
}

// Encode writes version 2.
func (c ConfigChange) Encode() []byte {
	e := newEncoder(64)
	e.int("version", 2)
	e.text("entity_path", string(c.Type)+"/"+c.Entity)
	return e.end(nil)
}
