package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of a configuration value, numbered as DescribeConfigs numbers them (KIP-569).
type Type int8

// The types.
const (
	Bool     Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

// Scope says whether and where a broker key may be changed at run time (KIP-226).
type Scope uint8

// The scopes.
const (
	ReadOnly Scope = iota
	PerBroker
	ClusterWide
)

// Key describes one configuration key. Keys are values; the tables are never changed.
type Key struct {
	Name    string
	Type    Type
	Default string // meaningless when Null
	Null    bool   // there is no default: the value is null until it is set
	Min     float64
	Max     float64  // Min > Max: no bounds
	OneOf   []string // allowed values, empty: any
	Scope   Scope
	Broker  string // of a topic key: the broker key whose value is its default
	Doc     string
}

// Check reports why value is not allowed, in words that name the key, the value and what is allowed.
func (k Key) Check(value string) error {
	value = strings.TrimSpace(value)
	switch k.Type {
	case Bool:
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			return k.invalid(value, "true or false")
		}
	case Int, Short, Long, Double:
		return k.checkNumber(value)
	case List:
		if strings.HasSuffix(k.Name, throttledReplicas) && !validThrottled(value) {
			return k.invalid(value, "* or a list of partition:broker, both from 0 up")
		}
		for _, v := range SplitList(value) {
			if len(k.OneOf) > 0 && !slices.Contains(k.OneOf, v) {
				return k.invalid(value, "a list of "+strings.Join(k.OneOf, ", "))
			}
		}
	default:
		if len(k.OneOf) > 0 && !slices.Contains(k.OneOf, value) {
			return k.invalid(value, "one of "+strings.Join(k.OneOf, ", "))
		}
	}
	return nil
}

func (k Key) checkNumber(value string) error {
	if k.Type == Double {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(v) || (k.Min <= k.Max && (v < k.Min || v > k.Max)) {
			return k.invalid(value, k.allowedNumbers())
		}
		return nil
	}
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return k.invalid(value, k.allowedNumbers())
	}
	lo, hi := k.intBounds()
	if v < lo || v > hi {
		return k.invalid(value, k.allowedNumbers())
	}
	return nil
}

// intBounds combines the bounds of the type with those of the key.
func (k Key) intBounds() (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	switch k.Type {
	case Int:
		lo, hi = math.MinInt32, math.MaxInt32
	case Short:
		lo, hi = math.MinInt16, math.MaxInt16
	}
	if k.Min <= k.Max {
		if k.Min > float64(lo) {
			lo = int64(k.Min)
		}
		if k.Max < float64(hi) {
			hi = int64(k.Max)
		}
	}
	return lo, hi
}

func (k Key) allowedNumbers() string {
	if k.Type == Double {
		if k.Min > k.Max {
			return "a number"
		}
		return fmt.Sprintf("a number from %g to %g", k.Min, k.Max)
	}
	lo, hi := k.intBounds()
	return fmt.Sprintf("an integer from %d to %d", lo, hi)
}

// invalid makes the error of Check. The value of a password is never shown.
func (k Key) invalid(value, allowed string) error {
	if k.Type == Password {
		value = "[hidden]"
	}
	return fmt.Errorf("invalid value %q for configuration %s: must be %s", value, k.Name, allowed)
}

// throttledReplicas ends the names of the two keys that list replicas.
const throttledReplicas = ".replication.throttled.replicas"

// validThrottled reports whether value names replicas, as Apache Kafka checks it: nothing, * or partition:broker pairs.
func validThrottled(value string) bool {
	if value == "*" {
		return true
	}
	for _, pair := range SplitList(value) {
		part, broker, ok := strings.Cut(pair, ":")
		if !ok || !digits(part) || !digits(broker) {
			return false
		}
	}
	return true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// SplitList cuts a comma-separated list and trims its items; empty items vanish.
func SplitList(s string) []string {
	var out []string
	for v := range strings.SplitSeq(s, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// noBounds is an interval that checkNumber ignores.
const noMin, noMax = 1, 0

func boolKey(name, def string, sc Scope, doc string) Key {
	return Key{Name: name, Type: Bool, Default: def, Min: noMin, Max: noMax, Scope: sc, Doc: doc}
}

func intKey(name, def string, min, max float64, sc Scope, doc string) Key {
	return Key{Name: name, Type: Int, Default: def, Min: min, Max: max, Scope: sc, Doc: doc}
}

func longKey(name, def string, min, max float64, sc Scope, doc string) Key {
	return Key{Name: name, Type: Long, Default: def, Min: min, Max: max, Scope: sc, Doc: doc}
}

func doubleKey(name, def string, min, max float64, sc Scope, doc string) Key {
	return Key{Name: name, Type: Double, Default: def, Min: min, Max: max, Scope: sc, Doc: doc}
}

func stringKey(name, def string, sc Scope, doc string, oneOf ...string) Key {
	return Key{Name: name, Type: String, Default: def, Min: noMin, Max: noMax, OneOf: oneOf, Scope: sc, Doc: doc}
}

func listKey(name, def string, sc Scope, doc string, oneOf ...string) Key {
	return Key{Name: name, Type: List, Default: def, Min: noMin, Max: noMax, OneOf: oneOf, Scope: sc, Doc: doc}
}

// nullable makes a key whose default is null.
func nullable(k Key) Key {
	k.Null, k.Default = true, ""
	return k
}
