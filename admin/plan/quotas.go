package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kctl/admin/model"
)

// quotaKeys are the limits that Kafka knows, by whether they are for addresses, with their meaning.
var quotaKeys = []struct {
	key, meaning string
	ip           bool
}{
	{"producer_byte_rate", "bytes a second that may be produced, per broker", false},
	{"consumer_byte_rate", "bytes a second that may be fetched, per broker", false},
	{"request_percentage", "per cent of the time of one request or network thread, per broker", false},
	{"controller_mutation_rate", "partitions a second that may be created or deleted", false},
	{"connection_creation_rate", "connections a second, per broker", true},
}

// QuotaKeys lists the keys for users and clients, or for addresses, with their meaning.
func QuotaKeys(ip bool) [][2]string {
	var out [][2]string
	for _, k := range quotaKeys {
		if k.ip == ip {
			out = append(out, [2]string{k.key, k.meaning})
		}
	}
	return out
}

// CheckQuotaEntity refuses what no quota can apply to.
func CheckQuotaEntity(e model.QuotaEntity) error {
	switch {
	case e == (model.QuotaEntity{}):
		return fmt.Errorf("no entity is named: --user, --client-id, both, or --ip (or their defaults)")
	case e.IP != "" && (e.User != "" || e.ClientID != ""):
		return fmt.Errorf("a quota of an address (--ip) cannot have a user or client id too")
	}
	return nil
}

// CheckQuotaKey refuses a key that Kafka does not know for such an entity.
func CheckQuotaKey(e model.QuotaEntity, key string) error {
	var known []string
	for _, k := range QuotaKeys(e.IP != "") {
		if k[0] == key {
			return nil
		}
		known = append(known, k[0])
	}
	msg := fmt.Sprintf("quota %q is not one of %s", key, strings.Join(known, ", "))
	if near, ok := Nearest(key, known); ok {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("%s", msg)
}

// ParseQuotas reads key=value pairs for an entity. Values are numbers above zero.
func ParseQuotas(e model.QuotaEntity, pairs []string) ([]model.Quota, error) {
	if err := CheckQuotaEntity(e); err != nil {
		return nil, err
	}
	var out []model.Quota
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not key=value", p)
		}
		if err := CheckQuotaKey(e, k); err != nil {
			return nil, err
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || n <= 0 || math.IsInf(n, 0) || math.IsNaN(n) {
			return nil, fmt.Errorf("quota %s: %q is not a number above zero", k, v)
		}
		if slices.ContainsFunc(out, func(q model.Quota) bool { return q.Key == k }) {
			return nil, fmt.Errorf("quota %q is given twice", k)
		}
		out = append(out, model.Quota{Entity: e, Key: k, Value: n})
	}
	return out, nil
}

// QuotaChange is one limit before and after; nil is no limit.
type QuotaChange struct {
	Entity        model.QuotaEntity
	Key           string
	Before, After *float64
}

// None reports whether nothing has to be done.
func (c *QuotaChange) None() bool {
	if c.Before == nil || c.After == nil {
		return c.Before == c.After
	}
	return *c.Before == *c.After
}

// PlanQuotas compares limits that are wanted with those there are. deletes are keys; deleteAll takes every limit of
// the entity away.
func PlanQuotas(current []model.Quota, e model.QuotaEntity, sets []model.Quota, deletes []string, deleteAll bool) []QuotaChange {
	have := map[string]float64{}
	for _, q := range current {
		if q.Entity == e {
			have[q.Key] = q.Value
			if deleteAll && !slices.Contains(deletes, q.Key) {
				deletes = append(deletes, q.Key)
			}
		}
	}
	before := func(key string) *float64 {
		if v, ok := have[key]; ok {
			return &v
		}
		return nil
	}
	var out []QuotaChange
	for _, q := range sets {
		out = append(out, QuotaChange{e, q.Key, before(q.Key), &q.Value})
	}
	for _, k := range deletes {
		out = append(out, QuotaChange{e, k, before(k), nil})
	}
	return out
}

// CheckExpectedQuotas refuses when a limit is not what the caller left behind: key=value, or a bare key for none.
func CheckExpectedQuotas(current []model.Quota, e model.QuotaEntity, expected []string) error {
	for _, x := range expected {
		key, want, has := strings.Cut(x, "=")
		got := ""
		for _, q := range current {
			if q.Entity == e && q.Key == key {
				got = QuotaValue(q.Value)
			}
		}
		if got != want || has != (got != "") {
			return fmt.Errorf("%s: %s is %s, expected was %s", e, key, orNone(got), orNone(want))
		}
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

// QuotaValue writes a limit without an exponent.
func QuotaValue(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// EffectiveQuotas finds the limits that apply to a client: for each key the most specific entity that has it, in the
// order of Kafka's documentation (user and client id, user, client id; a name before the default).
func EffectiveQuotas(all []model.Quota, user, clientID, ip string) []model.Quota {
	const d = model.QuotaDefault
	order := []model.QuotaEntity{
		{User: user, ClientID: clientID}, {User: user, ClientID: d}, {User: user},
		{User: d, ClientID: clientID}, {User: d, ClientID: d}, {User: d},
		{ClientID: clientID}, {ClientID: d},
	}
	if ip != "" {
		order = []model.QuotaEntity{{IP: ip}, {IP: d}}
	}
	var out []model.Quota
	for _, e := range order {
		if (e.User == "" && e.ClientID == "" && e.IP == "") || user == "" && e.User == d || clientID == "" && e.ClientID == d {
			continue
		}
		for _, q := range all {
			if q.Entity == e && !slices.ContainsFunc(out, func(o model.Quota) bool { return o.Key == q.Key }) {
				out = append(out, q)
			}
		}
	}
	slices.SortFunc(out, func(a, b model.Quota) int { return strings.Compare(a.Key, b.Key) })
	return out
}
