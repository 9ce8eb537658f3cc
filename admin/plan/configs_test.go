package plan_test

import (
	"errors"
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/admin/plan"
)

func ptr(s string) *string { return &s }

// orders is a topic with one list of its own, an inherited value, a secret and the default of the rest.
func orders() *model.ResourceConfigs {
	return &model.ResourceConfigs{Resource: model.ConfigResource{Type: model.TopicResource, Name: "orders"}, Entries: []model.ConfigEntry{
		{Name: "cleanup.policy", Value: ptr("compact"), Source: "dynamic-topic", Type: "list", Synonyms: []model.ConfigSynonym{
			{Name: "cleanup.policy", Value: ptr("compact"), Source: "dynamic-topic"}, {Name: "log.cleanup.policy", Value: ptr("delete"), Source: "default"},
		}},
		{Name: "retention.ms", Value: ptr("604800000"), Source: "default", Type: "long"},
		{Name: "a.secret", Source: "dynamic-topic", Sensitive: true},
	}}
}

func TestParseConfigResources(t *testing.T) {
	for in, want := range map[string]string{
		"topic/a,b": "topic/a topic/b", "topics/a": "topic/a", "broker/1,2": "broker/1 broker/2", "broker/default": "broker/default",
		"brokers/<default>": "broker/default", "broker-loggers/3": "broker-logger/3", "client-metrics/m": "client-metrics/m", "group/g,h": "group/g,h",
		"topic/": "name is missing", "topic/a b": "not legal", "broker/x": "not a broker id", "broker-logger/default": "not a broker id", "x/y": "none of topic/NAME", "orders": "none of",
	} {
		rs, err := plan.ParseConfigResources(in)
		var got []string
		for _, r := range rs {
			got = append(got, r.String())
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != want || err != nil && !strings.Contains(text, want) {
			t.Errorf("%s: got %s, want %s", in, text, want)
		}
	}
}

// TestPlanConfigs: what each operation changes, and what is refused before anything is written.
func TestPlanConfigs(t *testing.T) {
	for _, tt := range []struct {
		op    plan.ConfigOp
		after string // "(none)" for no value
		none  bool
		err   string
	}{
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "retention.ms", Value: "1"}, "1", false, ""},
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "retention.ms", Value: "604800000"}, "604800000", false, ""}, // the default is not a value of its own
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "cleanup.policy", Value: "compact"}, "compact", true, ""},
		{plan.ConfigOp{Kind: plan.DeleteConfig, Key: "cleanup.policy"}, "(none)", false, ""},
		{plan.ConfigOp{Kind: plan.DeleteConfig, Key: "retention.ms"}, "(none)", true, ""},
		{plan.ConfigOp{Kind: plan.AppendConfig, Key: "cleanup.policy", Value: "delete, compact"}, "compact,delete", false, ""},
		{plan.ConfigOp{Kind: plan.SubtractConfig, Key: "cleanup.policy", Value: "compact"}, "", false, ""},
		{plan.ConfigOp{Kind: plan.SubtractConfig, Key: "cleanup.policy", Value: "delete"}, "compact", true, ""},
		{plan.ConfigOp{Kind: plan.AppendConfig, Key: "retention.ms", Value: "1"}, "", false, "not a list"},
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "retention.m", Value: "1"}, "", false, `no configuration key "retention.m"`},
	} {
		chs, err := plan.PlanConfigs(orders(), []plan.ConfigOp{tt.op}, false)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v: got %v, want %s", tt.op, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tt.op, err)
			continue
		}
		after := "(none)"
		if chs[0].After != nil {
			after = *chs[0].After
		}
		if after != tt.after || chs[0].None != tt.none {
			t.Errorf("%+v: got %s none %v, want %s none %v", tt.op, after, chs[0].None, tt.after, tt.none)
		}
	}
}

// TestReadOnlyKeyIsRefused: before the write, with what to do instead.
func TestReadOnlyKeyIsRefused(t *testing.T) {
	r := &model.ResourceConfigs{Resource: model.ConfigResource{Type: model.BrokerResource, Name: "1"}, Entries: []model.ConfigEntry{
		{Name: "broker.id", Value: ptr("1"), Source: "static-broker", ReadOnly: true},
	}}
	_, err := plan.PlanConfigs(r, []plan.ConfigOp{{Kind: plan.SetConfig, Key: "broker.id", Value: "2"}}, false)
	if !errors.Is(err, plan.ErrReadOnlyKey) {
		t.Errorf("got %v", err)
	}
	chs, err := plan.PlanConfigs(r, []plan.ConfigOp{{Kind: plan.SetConfig, Key: "leader.replication.throttled.rate", Value: "2"}}, false)
	if err != nil || chs[0].None {
		t.Errorf("a key that brokers do not list while it is not set: %v %v", chs, err)
	}
}

// TestListedWhileSet: Apache Kafka 3.9 calls its throttles, and the keys of one listener, read-only once they are set, and still
// takes another value and their deletion.
func TestListedWhileSet(t *testing.T) {
	for _, key := range []string{
		"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second",
		"listener.name.internal.ssl.keystore.location",
	} {
		r := &model.ResourceConfigs{Resource: model.ConfigResource{Type: model.BrokerResource, Name: "1"}, Entries: []model.ConfigEntry{
			{Name: key, Value: ptr("1"), Source: "dynamic-broker", ReadOnly: true},
		}}
		for _, op := range []plan.ConfigOp{{Kind: plan.SetConfig, Key: key, Value: "2"}, {Kind: plan.DeleteConfig, Key: key}} {
			if chs, err := plan.PlanConfigs(r, []plan.ConfigOp{op}, false); err != nil || chs[0].None {
				t.Errorf("%+v: %+v %v", op, chs, err)
			}
		}
	}
}

// TestTook: a change that does not show is noticed.
func TestTook(t *testing.T) {
	for _, tt := range []struct {
		op   plan.ConfigOp
		now  model.ConfigEntry
		want bool
	}{
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "retention.ms", Value: "1"}, model.ConfigEntry{Value: ptr("1"), Source: "dynamic-topic"}, true},
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "retention.ms", Value: "1"}, model.ConfigEntry{Value: ptr("2"), Source: "dynamic-topic"}, false},
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "retention.ms", Value: "1"}, model.ConfigEntry{Value: ptr("1"), Source: "default"}, false},
		{plan.ConfigOp{Kind: plan.SetConfig, Key: "a.secret", Value: "1"}, model.ConfigEntry{Source: "dynamic-topic", Sensitive: true}, true},
		{plan.ConfigOp{Kind: plan.DeleteConfig, Key: "cleanup.policy"}, model.ConfigEntry{Value: ptr("delete"), Source: "default"}, true},
		{plan.ConfigOp{Kind: plan.DeleteConfig, Key: "cleanup.policy"}, model.ConfigEntry{Value: ptr("compact"), Source: "dynamic-topic"}, false},
		{plan.ConfigOp{Kind: plan.AppendConfig, Key: "cleanup.policy", Value: "delete"}, model.ConfigEntry{Value: ptr("delete,compact"), Source: "dynamic-topic"}, true},
		{plan.ConfigOp{Kind: plan.SubtractConfig, Key: "cleanup.policy", Value: "compact"}, model.ConfigEntry{Value: ptr("compact"), Source: "dynamic-topic"}, false},
	} {
		chs, err := plan.PlanConfigs(orders(), []plan.ConfigOp{tt.op}, false)
		if err != nil {
			t.Fatal(err)
		}
		tt.now.Name = tt.op.Key
		after := &model.ResourceConfigs{Resource: chs[0].Resource, Entries: []model.ConfigEntry{tt.now}}
		if shown, ok := chs[0].Took(after); ok != tt.want {
			t.Errorf("%+v then %+v: %v (%s)", tt.op, tt.now, ok, shown)
		}
	}
}

// TestFullConfigs: the old request, which replaces everything, gets every other override again, and is not sent when
// one of them cannot be read.
func TestFullConfigs(t *testing.T) {
	r := orders()
	change := func(key, value string) []plan.ConfigChange {
		chs, err := plan.PlanConfigs(r, []plan.ConfigOp{{Kind: plan.SetConfig, Key: key, Value: value}}, false)
		if err != nil {
			t.Fatal(err)
		}
		return chs
	}
	if _, err := plan.FullConfigs(r, change("retention.ms", "1")); err == nil || !strings.Contains(err.Error(), "a.secret") {
		t.Errorf("a hidden override would be dropped: %v", err)
	}
	got, err := plan.FullConfigs(r, append(change("retention.ms", "1"), change("a.secret", "s")...))
	if err != nil || len(got) != 3 || got["cleanup.policy"] != "compact" || got["retention.ms"] != "1" || got["a.secret"] != "s" {
		t.Errorf("got %v %v", got, err)
	}
}

func TestCheckExpected(t *testing.T) {
	for x, want := range map[string]string{
		"cleanup.policy=compact": "", "retention.ms": "", "nope": "",
		"cleanup.policy=delete": `is "compact", expected was "delete"`, "cleanup.policy": "expected was no value", "retention.ms=1": "no value of its own any more", "a.secret=x": "hidden",
	} {
		err := plan.CheckExpected(orders(), []string{x})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", x, err, want)
		}
	}
}

// TestUnlistedSecretsAreHidden: a key of a listener is not listed before it is set, so no broker says that it is a secret.
func TestUnlistedSecretsAreHidden(t *testing.T) {
	r := &model.ResourceConfigs{Resource: model.ConfigResource{Type: model.BrokerResource, Name: "1"}}
	for key, want := range map[string]bool{
		"listener.name.external.ssl.keystore.password":          true,
		"listener.name.external.ssl.key.password":               true,
		"listener.name.external.ssl.keystore.key":               true,
		"listener.name.external.ssl.keystore.certificate.chain": true,
		"listener.name.external.ssl.truststore.certificates":    true,
		"listener.name.external.scram-sha-256.sasl.jaas.config": true,
		"listener.name.external.ssl.keystore.location":          false,
		"listener.name.external.sasl.enabled.mechanisms":        false,
		"leader.replication.throttled.rate":                     false,
	} {
		chs, err := plan.PlanConfigs(r, []plan.ConfigOp{{Kind: plan.SetConfig, Key: key, Value: "v"}}, false)
		if err != nil || len(chs) != 1 || chs[0].Sensitive != want {
			t.Errorf("%s: %+v %v, want secret=%v", key, chs, err, want)
		}
	}
}
