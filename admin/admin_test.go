package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/kafkatest"
	"kctl/admin/model"
)

func TestParseZooKeeperAddress(t *testing.T) {
	for in, want := range map[string]string{
		"h1:2181,h2:2181/kc": "h1:2181,h2:2181/kc",
		"h1/kc/":             "h1:2181/kc",
		"h1:2181/":           "h1:2181",
		"[::1]:2181/kc":      "[::1]:2181/kc",
		"[::1]/a/b":          "[::1]:2181/a/b",
		" h1:1 , h2:2 ":      "h1:1,h2:2",
	} {
		if got, err := ParseZooKeeperAddress(in); err != nil || got.String() != want {
			t.Errorf("%q: got %q %v, want %q", in, got, err, want)
		}
	}
	for in, part := range map[string]string{
		"h1:2181/kc,h2:2181/kc": "stands once, behind the last server: h1:2181,h2:2181/kc",
		"h1:2181/kc,h2:2181":    "behind the last server: h1:2181,h2:2181/kc",
		"":                      "empty", "h1,,h2": "server 2 is empty", "::1": "brackets", "h1:99999": "port", "h1:x": "port", "h1/a//b": "empty element",
	} {
		_, err := ParseZooKeeperAddress(in)
		if err == nil || !strings.Contains(err.Error(), part) || KindOf(err) != BadInput {
			t.Errorf("%q: got %v, want %q", in, err, part)
		}
	}
}

func TestParseBootstrap(t *testing.T) {
	got, err := ParseBootstrap("a, b:1,PLAINTEXT://c:3,[::1]")
	if err != nil || fmt.Sprint(got) != "[a:9092 b:1 c:3 [::1]:9092]" {
		t.Errorf("got %v %v", got, err)
	}
	for _, bad := range []string{"", "a,", ",a", "a:0", "a:b", "zk:2181/kafka", "::1"} {
		if _, err := ParseBootstrap(bad); KindOf(err) != BadInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseProperties(t *testing.T) {
	got, err := ParseProperties(strings.NewReader(`# comment
! another
bootstrap.servers=a:1,\
    b:2
client.id : x
security.protocol SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="alice" password="p;\\"=q";
key\=with=a\u0041\t
`))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		"bootstrap.servers": "a:1,b:2", "client.id": "x", "security.protocol": "SASL_SSL", "key=with": "aA\t",
		"sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="p;\"=q";`,
	} {
		if got[k] != want {
			t.Errorf("%s: got %q, want %q", k, got[k], want)
		}
	}
	opts, err := parseJAAS(got["sasl.jaas.config"])
	if err != nil || opts["username"] != "alice" || opts["password"] != `p;"=q` {
		t.Errorf("jaas: %v %v", opts, err)
	}
}

// TestPropertiesRefused: mistakes are named, with the setting to change, and no secret is repeated.
func TestPropertiesRefused(t *testing.T) {
	for _, tt := range []struct {
		props Properties
		part  string
	}{
		{Properties{"bootstrap.server": "a"}, `unknown setting "bootstrap.server"`},
		{Properties{"security.protocol": "TLS"}, "not one of PLAINTEXT"},
		{Properties{"sasl.mechanism": "PLAIN"}, "does not use SASL"},
		{Properties{"ssl.truststore.location": "x"}, "does not use TLS"},
		{Properties{"security.protocol": "SASL_SSL"}, "needs a user"},
		{Properties{"security.protocol": "SASL_PLAINTEXT", "sasl.username": "u", "sasl.password": "secret"}, "sasl.mechanism is not set"},
		{Properties{"security.protocol": "SASL_PLAINTEXT", "sasl.username": "u", "sasl.mechanism": "GSSAPI"}, "not one of PLAIN"},
		{Properties{"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": `m required username="u" password="secret"`}, "semicolon"},
		{Properties{"security.protocol": "SSL", "ssl.truststore.type": "JKS", "ssl.truststore.location": "/does/not/exist"}, "no such file"},
		{Properties{"security.protocol": "SSL", "ssl.truststore.location": "/does/not/exist"}, "ssl.truststore.location"},
		{Properties{"request.timeout.ms": "soon"}, "milliseconds"},
	} {
		var cfg Config
		err := tt.props.Apply(&cfg)
		if err == nil || !strings.Contains(err.Error(), tt.part) || KindOf(err) != BadInput || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v, want %q", tt.props, err, tt.part)
		}
	}
	var cfg Config
	if err := (Properties{"bootstrap.server": "a"}).Apply(&cfg); HintOf(err) != `did you mean "bootstrap.servers"?` {
		t.Errorf("hint %q", HintOf(err))
	}
}

// TestProtocolChosen: beside a protocol that is chosen, settings that it does not need are left alone, as Java clients do: the hint
// "set security.protocol=PLAINTEXT" helps with -X, whatever the file holds.
func TestProtocolChosen(t *testing.T) {
	var cfg Config
	p := Properties{"security.protocol": "PLAINTEXT", "ssl.truststore.location": "/does/not/exist", "sasl.mechanism": "PLAIN"}
	if err := p.Apply(&cfg); err != nil || cfg.TLS != nil || cfg.SASL != nil {
		t.Errorf("%v, %+v", err, cfg)
	}
}

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Kind
	}{
		{wrap(kerr.TopicAuthorizationFailed, "x"), Unauthorized},
		{wrap(brokerErr(kmsg.DescribeLogDirs, kerr.ClusterAuthorizationFailed.Code, nil), "x"), Unauthorized},
		{wrap(context.DeadlineExceeded, "x"), Unreachable},
		{wrap(&net.OpError{Op: "dial", Err: errors.New("refused")}, "x"), Unreachable},
		{wrap(kerr.UnknownTopicOrPartition, "x"), NotFound},
		{wrap(kerr.InvalidReplicationFactor, "x"), Failed},
		{wrap(badInput("bad"), "x"), BadInput},
		{fmt.Errorf("outer: %w", badInput("bad")), BadInput},
	} {
		if got := KindOf(tt.err); got != tt.want {
			t.Errorf("%v: kind %d, want %d", tt.err, got, tt.want)
		}
	}
	said := "Topic 'x' already exists."
	if got := brokerErr(kmsg.DescribeLogDirs, kerr.TopicAlreadyExists.Code, &said); got.Error() != "TOPIC_ALREADY_EXISTS: Topic 'x' already exists." || !errors.Is(got, kerr.TopicAlreadyExists) {
		t.Errorf("%v", got)
	}
}

func TestOpenContactsNobody(t *testing.T) {
	if _, err := Open(t.Context(), Config{}); KindOf(err) != BadInput {
		t.Errorf("no address: %v", err)
	}
	c, err := Open(t.Context(), Config{Bootstrap: []string{"192.0.2.1:1"}, Timeout: time.Second})
	if err != nil || len(c.conns) > 0 {
		t.Errorf("a connection was made: %v", err)
	}
}

// TestDiagnose: what answers at the address is named, with the setting to change.
func TestDiagnose(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"zookeeper", "Zookeeper version: 3.8.4", "this is a ZooKeeper server"},
		{"zookeeper, word not allowed", "srvr is not executed because it is not in the whitelist.", "this is a ZooKeeper server"},
		{"something else", "HTTP/1.1 400 Bad Request\r\n\r\n", "does not answer as a Kafka broker does"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := answering(t, tt.answer)
			c, err := Open(t.Context(), Config{Bootstrap: []string{addr}, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Snapshot(t.Context(), SnapshotOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || KindOf(err) != Unreachable {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		addr := nobodyThere
		c, err := Open(t.Context(), Config{Bootstrap: []string{addr}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Snapshot(t.Context(), SnapshotOptions{})
		if err == nil || !strings.Contains(err.Error(), addr+": connection refused") || KindOf(err) != Unreachable {
			t.Errorf("got %v", err)
		}
	})
}

// answering listens and sends the same answer to whoever sends something, then closes.
func answering(t *testing.T, answer string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.EachConn(t, ln, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 512)); err == nil {
			_, _ = conn.Write([]byte(answer))
		}
	})
	return ln.Addr().String()
}

func TestDeriveLag(t *testing.T) {
	row := func(p int32, leader bool, leo int64) model.ReplicaPosition {
		return model.ReplicaPosition{Topic: "t", Partition: p, Leader: leader, LogEndOffset: leo, LagRecords: -1, LagMs: -1}
	}
	rows := []model.ReplicaPosition{
		row(0, true, 100), row(0, false, 90), row(0, false, 105), row(0, false, -1), // ahead by a race, and unknown
		row(1, false, 5), row(1, false, 7), // nobody leads
		row(2, true, -1), row(2, false, 3), // the leader did not answer
	}
	derivelag(rows)
	want := []string{"0 0", "10 -1", "0 0", "-1 -1", "-1 -1", "-1 -1", "-1 -1", "-1 -1"}
	for i, r := range rows {
		if got := fmt.Sprint(r.LagRecords, " ", r.LagMs); strings.ReplaceAll(got, "  ", " ") != want[i] {
			t.Errorf("row %d: %s, want %s", i, got, want[i])
		}
	}
}

func TestZnodePath(t *testing.T) {
	for in, want := range map[string]string{"/": "/", "/a/b": "/a/b", "/a/": "/a"} {
		if got, err := ZnodePath(in); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "a", "//", "/a//b", "/a/../b", "/."} {
		if _, err := ZnodePath(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
