package config

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestParse(t *testing.T) {
	in := "# comment\n! also\n\n" +
		"a=1\n  b : 2\nc 3\nd\n" +
		"e = with = and : inside \n" +
		"long = one,\\\n   two,\\\n\tthree\n" +
		`esc\ aped\=key = tab\tnl\nA\u00e9\ud83d\ude00` + "\n" +
		"win = dows\r\n" +
		`path = C:\\dir\\` + "\n" +
		"a = 2"
	props, err := Parse(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "2", "b": "2", "c": "3", "d": "", "e": "with = and : inside", "long": "one,two,three",
		"esc aped=key": "tab\tnl\nAé😀", "win": "dows", "path": `C:\dir\`}
	if diff := cmp.Diff(want, Merge(props)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if props[5].Key != "long" || props[5].Line != 9 {
		t.Errorf("property %+v, want long at line 9", props[5])
	}
	for _, bad := range []string{`a=\u12`, `a=\uzzzz`} {
		if _, err := Parse(strings.NewReader("x=1\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: error %v, want one that names line 2", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a=1\nb:2\\\n 3")
	f.Add(`\u0041=\\`)
	f.Add("a=\\")
	f.Fuzz(func(t *testing.T, s string) {
		props, err := Parse(strings.NewReader(s))
		if err == nil {
			_, _, _ = Load(Merge(props))
		}
	})
}

func load(t *testing.T, kv ...string) *Broker {
	t.Helper()
	b, warnings, err := Load(toMap(kv))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("load %v: %v, warnings %v", kv, err, warnings)
	}
	return b
}

func toMap(kv []string) map[string]string {
	m := map[string]string{"zookeeper.connect": "zk:2181", "listeners": "PLAINTEXT://127.0.0.1:9092"}
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		m[k] = v
	}
	return m
}

func TestBadValuesNameKeyValueAndRange(t *testing.T) {
	cases := []struct{ set, want string }{
		{"num.partitions=0", `invalid value "0" for configuration num.partitions: must be an integer from 1 to 2147483647`},
		{"num.partitions=many", `invalid value "many" for configuration num.partitions: must be an integer from 1 to 2147483647`},
		{"log.segment.bytes=99999999999", "must be an integer from 14 to 2147483647"},
		{"log.retention.bytes=-2", "must be an integer from -1 to 9223372036854775807"},
		{"delete.topic.enable=yes", `invalid value "yes" for configuration delete.topic.enable: must be true or false`},
		{"compression.type=brotli", "must be one of uncompressed, zstd"},
		{"log.cleanup.policy=delete,shred", "must be a list of compact, delete"},
		{"log.cleaner.min.cleanable.ratio=1.5", "must be a number from 0 to 1"},
		{"listeners=PLAINTEXT:9092", "is not of the form NAME://host:port"},
		{"listeners=PLAINTEXT://h:99999", "must be an integer from 0 to 65535"},
		{"listeners=SSL://h:1", "protocol SSL of SSL is not served"},
		{"listeners=X://h:1", "listener.security.protocol.map has no protocol for X"},
		{"listeners=", "must name at least one listener"},
		{"listeners=PLAINTEXT://0.0.0.0:1", "set advertised.listeners"},
		{"advertised.listeners=OTHER://h:1", "listener.security.protocol.map has no protocol for OTHER"},
		{"inter.broker.listener.name=NOPE", "must be the name of an advertised listener"},
		{"zookeeper.connect=", "missing required configuration zookeeper.connect"},
		{"log.dirs=/a,/b,/a", "/a is named twice"},
		{"authorizer.class.name=x.Y", "must be unset"},
		{"external.view=single", "must be one of off"},
	}
	for _, c := range cases {
		_, _, err := Load(toMap([]string{c.set}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.set, err, c.want)
		}
	}
}

func TestUnknownKeysWarn(t *testing.T) {
	b, warnings, err := Load(toMap([]string{"num.partitons=3", "ssl.keystore.location=/x"}))
	if err != nil || b.Values().Int("num.partitions") != 1 {
		t.Fatalf("%v", err)
	}
	want := []string{"configuration num.partitons is unknown and was ignored", "configuration ssl.keystore.location has no effect in this broker"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestListeners(t *testing.T) {
	b := load(t, "listeners=INTERNAL://10.0.0.1:9093, EXTERNAL://[::1]:9094",
		"advertised.listeners=INTERNAL://broker-1:9093,EXTERNAL://example.org:19094",
		"listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT", "inter.broker.listener.name=INTERNAL")
	want := []Listener{{"INTERNAL", "PLAINTEXT", "10.0.0.1", 9093}, {"EXTERNAL", "PLAINTEXT", "::1", 9094}}
	if diff := cmp.Diff(want, b.Listeners); diff != "" {
		t.Errorf("listeners (-want +got)\n%s", diff)
	}
	if b.InterBrokerListener != "INTERNAL" || b.ControlListener != "INTERNAL" || b.Advertised[1].Addr() != "example.org:19094" || b.Listeners[1].Addr() != "[::1]:9094" {
		t.Errorf("%+v", b)
	}
}

// TestTablesAgreeWithThemselves checks every default, and that topic keys point to broker keys of the same type.
func TestTablesAgreeWithThemselves(t *testing.T) {
	for _, table := range [][]Key{brokerKeys, topicKeys} {
		seen := make(map[string]bool)
		for _, k := range table {
			if seen[k.Name] {
				t.Errorf("%s is there twice", k.Name)
			}
			seen[k.Name] = true
			if k.Doc == "" {
				t.Errorf("%s has no documentation", k.Name)
			}
			if !k.Null {
				if err := k.Check(k.Default); err != nil {
					t.Errorf("default: %v", err)
				}
			}
			if k.Broker == "" {
				continue
			}
			b, ok := BrokerKey(k.Broker)
			if !ok || b.Type != k.Type {
				t.Errorf("%s takes its default from %s, which is unknown or of another type", k.Name, k.Broker)
			}
		}
	}
}

func dynamicOf(b *Broker, own, def map[string]string, topics map[string]map[string]string) *Dynamic {
	d := NewDynamic(b, 1, nil, nil)
	d.curr.Store(newState(b, own, def, topics))
	return d
}

func TestTopicConfigPrecedence(t *testing.T) {
	type m = map[string]string
	cases := []struct {
		name     string
		static   []string
		own, def m
		topic    m
		want     int64 // retention.ms
	}{
		{name: "default", want: 7 * 24 * 3600 * 1000},
		{name: "hours", static: []string{"log.retention.hours=1"}, want: 3600 * 1000},
		{name: "minutes beat hours", static: []string{"log.retention.hours=1", "log.retention.minutes=2"}, want: 120_000},
		{name: "ms beats minutes", static: []string{"log.retention.ms=5", "log.retention.minutes=2"}, want: 5},
		{name: "unlimited hours", static: []string{"log.retention.hours=-1"}, want: -1},
		{name: "dynamic default beats static", static: []string{"log.retention.ms=5"}, def: m{"log.retention.ms": "6"}, want: 6},
		{name: "own beats default", def: m{"log.retention.ms": "6"}, own: m{"log.retention.ms": "7"}, want: 7},
		{name: "topic beats all", own: m{"log.retention.ms": "7"}, topic: m{"retention.ms": "8"}, want: 8},
		{name: "unparsable override falls back", own: m{"log.retention.ms": "7"}, topic: m{"retention.ms": "x"}, want: 7},
	}
	for _, c := range cases {
		d := dynamicOf(load(t, c.static...), c.own, c.def, map[string]map[string]string{"t": c.topic})
		if got := d.TopicConfig("t").RetentionMs; got != c.want {
			t.Errorf("%s: retention.ms %d, want %d", c.name, got, c.want)
		}
	}
	c := dynamicOf(load(t), nil, nil, map[string]map[string]string{"t": {"cleanup.policy": "compact", "min.insync.replicas": "2", "unclean.leader.election.enable": "TRUE", "segment.bytes": "100"}}).TopicConfig("t")
	if c.CleanupPolicy != "compact" || c.MinInSyncReplicas != 2 || !c.UncleanLeaderElection || c.SegmentBytes != 100 || c.FlushMs != math.MaxInt64 {
		t.Errorf("%+v", c)
	}
}

func entryOf(entries []Entry, name string) Entry {
	for _, e := range entries {
		if e.Name == name {
			return e
		}
	}
	return Entry{}
}

func TestDescribe(t *testing.T) {
	b := load(t, "log.retention.minutes=2")
	d := dynamicOf(b, map[string]string{"log.segment.bytes": "500"}, map[string]string{"log.segment.bytes": "400"}, nil)
	topic := d.DescribeTopic(map[string]string{"segment.bytes": "300"}, nil)
	if len(topic) != len(topicKeys) {
		t.Errorf("%d entries, want %d", len(topic), len(topicKeys))
	}
	e := entryOf(topic, "segment.bytes")
	var got []string
	for _, s := range e.Synonyms {
		got = append(got, s.Name+"="+*s.Value+" "+string('0'+rune(s.Source)))
	}
	want := []string{"segment.bytes=300 1", "log.segment.bytes=500 2", "log.segment.bytes=400 3", "log.segment.bytes=1073741824 5"}
	if diff := cmp.Diff(want, got); diff != "" || *e.Value != "300" || e.Source != DynamicTopic || e.Type != Int {
		t.Errorf("segment.bytes %+v (-want +got)\n%s", e, diff)
	}
	if e := entryOf(topic, "retention.ms"); *e.Value != "120000" || e.Source != StaticBroker || e.Synonyms[0].Name != "log.retention.minutes" {
		t.Errorf("retention.ms %+v", e)
	}
	broker := d.DescribeBroker()
	if e := entryOf(broker, "log.segment.bytes"); *e.Value != "500" || e.Source != DynamicBroker || e.ReadOnly {
		t.Errorf("log.segment.bytes %+v", e)
	}
	if e := entryOf(broker, "zookeeper.connect"); *e.Value != "zk:2181" || e.Source != StaticBroker || !e.ReadOnly {
		t.Errorf("zookeeper.connect %+v", e)
	}
	if e := entryOf(broker, "log.retention.ms"); e.Value != nil {
		t.Errorf("log.retention.ms is %q, want null", *e.Value)
	}
}

func TestApplyOps(t *testing.T) {
	s := func(v string) *string { return &v }
	cases := []struct {
		name    string
		current map[string]string
		ops     []Op
		want    map[string]string
		err     *kerr.Error
	}{
		{"set and delete", map[string]string{"retention.ms": "1", "flush.ms": "2"}, []Op{{OpSet, "retention.ms", s("5")}, {OpDelete, "flush.ms", nil}}, map[string]string{"retention.ms": "5"}, nil},
		{"append to default", nil, []Op{{OpAppend, "cleanup.policy", s("compact,delete")}}, map[string]string{"cleanup.policy": "delete,compact"}, nil},
		{"subtract", map[string]string{"cleanup.policy": "compact,delete"}, []Op{{OpSubtract, "cleanup.policy", s("delete")}}, map[string]string{"cleanup.policy": "compact"}, nil},
		{"append to a number", nil, []Op{{OpAppend, "retention.ms", s("5")}}, nil, kerr.InvalidConfig},
		{"twice", nil, []Op{{OpSet, "retention.ms", s("5")}, {OpSet, "retention.ms", s("6")}}, nil, kerr.InvalidRequest},
		{"null", nil, []Op{{OpSet, "retention.ms", nil}}, nil, kerr.InvalidRequest},
		{"unknown operation", nil, []Op{{7, "retention.ms", s("1")}}, nil, kerr.InvalidRequest},
	}
	for _, c := range cases {
		got, err := ApplyOps(c.current, c.ops, TopicKey)
		if c.err != nil {
			if !errors.Is(err, c.err) {
				t.Errorf("%s: error %v, want %v", c.name, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", c.name, err, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	type m = map[string]string
	for _, bad := range []m{{"nope": "1"}, {"retention.ms": "soon"}, {"min.insync.replicas": "0"}, {"cleanup.policy": "burn"}, {"remote.storage.enable": "true"}, {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}} {
		if err := ValidateTopic(bad); !errors.Is(err, kerr.InvalidConfig) {
			t.Errorf("%v: %v, want INVALID_CONFIG", bad, err)
		}
	}
	if err := ValidateTopic(m{"retention.ms": "-1", "cleanup.policy": "compact,delete"}); err != nil {
		t.Error(err)
	}
	for _, bad := range []m{{"broker.id": "4"}, {"nope": "1"}, {"log.segment.bytes": "1"}} {
		if err := ValidateBroker(bad, true); !errors.Is(err, kerr.InvalidRequest) {
			t.Errorf("%v: %v, want INVALID_REQUEST", bad, err)
		}
	}
	if err := ValidateBroker(m{"listeners": "PLAINTEXT://:1"}, false); err == nil {
		t.Error("a per-broker key was allowed as the default of all")
	}
}
