package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// Listener is one NAME://host:port. Port 0 of a listener to bind asks the system for a free one.
type Listener struct {
	Name     string
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host     string // empty: every interface
	Port     int
}

// Addr returns host:port.
func (l Listener) Addr() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// Broker is a checked server.properties. It is immutable after Load.
type Broker struct {
	ID                  cluster.BrokerID // -1: to be generated
	Rack                string
	Listeners           []Listener
	Advertised          []Listener
	InterBrokerListener string
	ControlListener     string
	LogDirs             []string
	ZooKeeperConnect    string

	values Values
	set    map[string]string // exactly what the file and --set say, known keys only
}

// Values answers typed look-ups by key from checked text. A key that the table does not hold is a bug of the
// caller and panics.
type Values map[string]string

// Load checks props against the table. warnings are sentences for the log about keys without effect. The
// error names every bad key, one a line, with its value and what is allowed.
func Load(props map[string]string) (b *Broker, warnings []string, err error) {
	set := make(map[string]string, len(props))
	var bad []string
	for _, name := range sortedKeys(props) {
		k, known := BrokerKey(name)
		switch {
		case !known && hasNoEffect(name):
			warnings = append(warnings, "configuration "+name+" has no effect in this broker")
			continue
		case !known:
			warnings = append(warnings, "configuration "+name+" is unknown and was ignored")
			continue
		}
		value := strings.TrimSpace(props[name])
		if value == "" && k.Null {
			continue
		}
		if err := k.Check(value); err != nil {
			bad = append(bad, err.Error())
			continue
		}
		set[name] = value
	}
	if len(bad) > 0 {
		return nil, warnings, fmt.Errorf("%s", strings.Join(bad, "\n"))
	}
	b = &Broker{set: set, values: Values(set)}
	if err := b.derive(); err != nil {
		return nil, warnings, err
	}
	return b, warnings, nil
}

// derive fills the typed fields, which depend on several keys at once.
func (b *Broker) derive() error {
	v := b.values
	b.ID = cluster.BrokerID(v.Int("broker.id"))
	b.Rack = v.String("broker.rack")
	b.ZooKeeperConnect = v.String("zookeeper.connect")
	if b.ZooKeeperConnect == "" {
		return fmt.Errorf("missing required configuration zookeeper.connect, which has no default")
	}
	if _, err := zkutil.ParseConnectString(b.ZooKeeperConnect); err != nil {
		return fmt.Errorf("invalid value %q for configuration zookeeper.connect: %w", b.ZooKeeperConnect, err)
	}
	b.LogDirs = v.List("log.dirs")
	if len(b.LogDirs) == 0 {
		b.LogDirs = SplitList(v.String("log.dir"))
	}
	for i, d := range b.LogDirs {
		if slices.Contains(b.LogDirs[:i], d) {
			return fmt.Errorf("invalid value %q for configuration log.dirs: %s is named twice", v.String("log.dirs"), d)
		}
	}
	if v.Bool("zookeeper.set.acl") {
		return fmt.Errorf("invalid value \"true\" for configuration zookeeper.set.acl: must be false")
	}
	for _, name := range []string{"authorizer.class.name", "create.topic.policy.class.name", "alter.config.policy.class.name", "replica.selector.class"} {
		if v.Has(name) {
			return fmt.Errorf("invalid value %q for configuration %s: plug-in classes cannot be loaded, must be unset", v.String(name), name)
		}
	}
	if v.Long("replica.fetch.wait.max.ms") > v.Long("replica.lag.time.max.ms") {
		return fmt.Errorf("invalid value %q for configuration replica.fetch.wait.max.ms: must not exceed replica.lag.time.max.ms, which is %s",
			v.String("replica.fetch.wait.max.ms"), v.String("replica.lag.time.max.ms"))
	}
	return b.deriveListeners()
}

// Values returns the static values, defaults included.
func (b *Broker) Values() Values { return b.values }

// Explicit returns the value of a key that the file or the command line set.
func (b *Broker) Explicit(key string) (string, bool) {
	s, ok := b.set[key]
	return s, ok
}

// Has reports whether the key has a value other than null.
func (v Values) Has(key string) bool {
	_, ok := v.lookup(key)
	return ok
}

func (v Values) lookup(key string) (string, bool) {
	if s, ok := v[key]; ok {
		return s, true
	}
	k, ok := BrokerKey(key)
	if !ok {
		panic("config: look-up of unknown key " + key)
	}
	return k.Default, !k.Null
}

// String returns the text of a key, or "" for null.
func (v Values) String(key string) string {
	s, _ := v.lookup(key)
	return s
}

// Bool returns a boolean.
func (v Values) Bool(key string) bool { return strings.EqualFold(v.String(key), "true") }

// Int returns an integer; 0 for null.
func (v Values) Int(key string) int { return int(v.Long(key)) }

// Long returns an integer of 64 bits; 0 for null.
func (v Values) Long(key string) int64 {
	n, _ := strconv.ParseInt(v.String(key), 10, 64) // checked by Load
	return n
}

// Double returns a number.
func (v Values) Double(key string) float64 {
	f, _ := strconv.ParseFloat(v.String(key), 64) // checked by Load
	return f
}

// List returns the items of a list.
func (v Values) List(key string) []string { return SplitList(v.String(key)) }

// Millis returns a key that counts milliseconds; values beyond 290 years are cut to that.
func (v Values) Millis(key string) time.Duration { return Millis(v.Long(key)) }

// Millis turns milliseconds into a Duration and cuts what does not fit.
func Millis(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(ms, most)) * time.Millisecond
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
