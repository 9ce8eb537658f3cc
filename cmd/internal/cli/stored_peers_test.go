//go:build peers && secure

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/cli/exit"
)

// storedPeer is an Apache Kafka cluster below /ks whose users, quotas and ACLs are there before its broker.
type storedPeer struct {
	*kctl
	script, zk, dir string
}

// tool runs one of Kafka's own tools.
func (s *storedPeer) tool(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(s.script, append([]string{"tool"}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *storedPeer) script1(props string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(s.script, args...)
	cmd.Env = append(os.Environ(), "KAFKA_PROPS="+props)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// password writes the file of a user's password, which is secret-NAME.
func (s *storedPeer) password(user string) string {
	s.t.Helper()
	file := filepath.Join(s.dir, user+".pw")
	if err := os.WriteFile(file, []byte("secret-"+user+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// login is the settings with which a user reaches the broker, and nobody else.
func (s *storedPeer) login(user, mechanism string) []string {
	return []string{"-b", os.Getenv("KCTL_PEER_BOOTSTRAP"), "-z", "", "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=" + mechanism,
		"-X", `sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="` + user + `" password="secret-` + user + `";`}
}

// do runs kctl and looks for passwords and keys in what it prints and what the journal holds.
func (s *storedPeer) do(args ...string) *kctl {
	s.t.Helper()
	s.run(args...)
	journal, _ := os.ReadFile(filepath.Join(s.env["HOME"], ".local", "state", "kctl", "history.jsonl"))
	for _, secret := range []string{"secret-", "stored_key", "server_key"} {
		if strings.Contains(s.out.String()+s.err.String()+string(journal), secret) {
			s.t.Errorf("kctl %v shows %q:\n%s%s", args, secret, s.out, s.err)
		}
	}
	return &kctl{t: s.t, env: s.env, out: s.out, err: s.err, code: s.code}
}

// TestStoredPeer: what kctl writes into ZooKeeper before a broker of Apache Kafka starts lets users log in and is enforced;
// Kafka's tools see the same, and kctl what they write; a running broker learns of changes by the notification.
func TestStoredPeer(t *testing.T) {
	s := &storedPeer{kctl: newKctl(t), script: os.Getenv("KCTL_PEER_SECURE"), dir: t.TempDir()}
	bootstrap, zk := os.Getenv("KCTL_PEER_BOOTSTRAP"), os.Getenv("KCTL_PEER_ZOOKEEPER")
	if s.script == "" || bootstrap == "" || zk == "" {
		t.Fatal("KCTL_PEER_SECURE, KCTL_PEER_BOOTSTRAP and KCTL_PEER_ZOOKEEPER are not set")
	}
	s.zk = zk + "/ks"
	t.Cleanup(func() { s.script1("", "stop") })
	s.script1("", "start-zk")
	s.env["KCTL_ZOOKEEPER"], s.env["KCTL_TIMEOUT"] = s.zk, "60s"
	s.until(exit.OK, "zk", "ls", "/", "-z", zk, "--timeout", "5s") // a connection that comes while ZooKeeper starts may never be answered
	s.run("zk", "create", "/ks", "--yes", "-z", zk).want(exit.OK, "create", "will create")
	s.before()
	s.tools()
	props := []string{
		"listeners=SASL_PLAINTEXT://" + bootstrap, "advertised.listeners=SASL_PLAINTEXT://" + bootstrap, "zookeeper.connect=" + s.zk,
		"security.inter.broker.protocol=SASL_PLAINTEXT", "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512", "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512",
		"authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
		`listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule\u0020required\u0020username="broker"\u0020password="secret-broker";`,
		`listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule\u0020required;`,
	}
	s.script1(strings.Join(props, " "), "start", "1")
	s.started()
	s.running()
	s.script1("", "stop-broker", "0", "TERM")
	s.do("users", "delete", "carol", "--yes").want(exit.Failed, "", "no SCRAM credentials")
	s.do("users", "delete", "alice", "--yes").want(exit.OK, "done", "none is registered")
}

// before writes users, rules and quotas where nothing of Kafka is yet.
func (s *storedPeer) before() {
	t := s.t
	s.do("users", "list").want(exit.Failed, "", "holds no Kafka cluster")
	s.do("users", "set", "broker", "--password-file", s.password("broker"), "--dry-run").want(exit.OK, "create", "begins a new cluster there")
	s.do("zk", "get", "/config/users/broker").want(exit.Failed, "", "does not exist")
	s.do("users", "set", "broker", "--password-file", s.password("broker"), "--yes").want(exit.OK, "done", "begins a new cluster there")
	s.do("users", "set", "alice", "--password-file", s.password("alice"), "--mechanism", "SCRAM-SHA-256", "--iterations", "5000", "--yes").want(exit.OK, "done", "will set")
	for _, args := range [][]string{
		{"--allow-principal", "User:broker", "--operation", "All", "--cluster"}, {"--allow-principal", "User:broker", "--operation", "All", "--topic", "*"},
		{"--allow-principal", "User:alice", "--operation", "Describe", "--topic", "app-", "--pattern", "prefixed"},
		{"--deny-principal", "User:alice", "--operation", "Write", "--topic", "app-1", "--deny-host", "10.0.0.1"},
	} {
		s.do(append([]string{"acls", "create", "--yes"}, args...)...).want(exit.OK, "done", "will change ACLs")
	}
	s.do("quotas", "set", "--user", "alice", "producer_byte_rate=1048576", "request_percentage=50.5", "--yes").want(exit.OK, "done", "will change quotas")
	s.do("quotas", "set", "--user", "alice", "--client-id", "a b*~", "consumer_byte_rate=2048", "controller_mutation_rate=10", "--yes").want(exit.OK, "done", "will change quotas")
	s.do("quotas", "set", "--client-defaults", "consumer_byte_rate=4096", "--yes").want(exit.OK, "done", "will change quotas")
	s.do("quotas", "set", "--ip", "127.0.0.9", "connection_creation_rate=100", "--yes").want(exit.OK, "done", "will change quotas")
	if t.Failed() {
		t.FailNow()
	}
}

// tools: Kafka's own tools read the same by ZooKeeper, and what they write is read.
func (s *storedPeer) tools() {
	t := s.t
	acls := s.tool("AclCommand", "--authorizer-properties", "zookeeper.connect="+s.zk, "--list")
	for _, want := range []string{
		"resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL", "(principal=User:broker, host=*, operation=ALL, permissionType=ALLOW)",
		"resourceType=TOPIC, name=app-, patternType=PREFIXED", "(principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW)",
		"(principal=User:alice, host=10.0.0.1, operation=WRITE, permissionType=DENY)",
	} {
		if !strings.Contains(acls, want) {
			t.Errorf("Kafka's tool lists no %s:\n%s", want, acls)
		}
	}
	users := s.tool("ConfigCommand", "--zookeeper", s.zk, "--describe", "--entity-type", "users")
	for _, want := range []string{"user-principal 'alice'", "iterations=5000", "producer_byte_rate=1048576", "request_percentage=50.5", "user-principal 'broker'", "iterations=8192"} {
		if !strings.Contains(users, want) {
			t.Errorf("Kafka's tool lists no %s:\n%s", want, users)
		}
	}
	s.tool("ConfigCommand", "--zookeeper", s.zk, "--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=secret-bob ~]", "--entity-type", "users", "--entity-name", "bob ~")
	s.tool("AclCommand", "--authorizer-properties", "zookeeper.connect="+s.zk, "--add", "--allow-principal", "User:bob ~", "--operation", "Describe", "--topic", "app-", "--resource-pattern-type", "prefixed")
	s.do("users", "describe", "bob ~", "--no-headers").want(exit.OK, "bob ~  SCRAM-SHA-512  8192", "is read instead")
	s.do("acls", "list", "--principal", "User:bob ~", "--no-headers").want(exit.OK, "app-  Prefixed  User:bob ~  Allow  Describe", "is read instead")
	s.do("acls", "list", "--principal", "User:alice", "--topic", "app-", "--no-headers").want(exit.OK, "app-  Prefixed  User:alice  Allow  Describe", "is read instead")
	// Both tools change one znode: neither takes the other's keys away.
	s.tool("ConfigCommand", "--zookeeper", s.zk, "--alter", "--add-config", "SCRAM-SHA-512=[password=secret-alice]", "--entity-type", "users", "--entity-name", "alice")
	s.do("users", "delete", "alice", "--mechanism", "SCRAM-SHA-512", "--yes").want(exit.OK, "done", "will delete")
	s.do("users", "describe", "alice", "--no-headers").want(exit.OK, "alice  SCRAM-SHA-256  5000", "is read instead")
	s.do("quotas", "list", "--user", "alice", "--no-headers").want(exit.OK, "producer_byte_rate        1048576", "is read instead")
}

// both runs a reading verb over the protocol, and by ZooKeeper with no broker in reach: the answers must be the same.
func (s *storedPeer) both(args ...string) string {
	s.t.Helper()
	s.do(append(args, s.login("broker", "SCRAM-SHA-512")...)...)
	over := s.out.String()
	if s.code != 0 || s.err.String() != "" {
		s.t.Fatalf("kctl %v over the protocol: exit %d: %s", args, s.code, s.err)
	}
	s.do(append(args, "-b", "127.0.0.1:1")...)
	if s.code != 0 || s.out.String() != over || !strings.Contains(s.err.String(), "is read instead") {
		s.t.Errorf("kctl %v: over the protocol\n%s\nfrom ZooKeeper (exit %d, %s)\n%s", args, over, s.code, s.err, s.out)
	}
	return over
}

// started: the broker logged in with what was written, and tells the same over the protocol.
func (s *storedPeer) started() {
	broker := s.login("broker", "SCRAM-SHA-512")
	s.until(exit.OK, append([]string{"topics", "create", "app-1", "--partitions", "1", "--replication-factor", "1"}, broker...)...)
	s.until(exit.OK, append([]string{"topics", "create", "other", "--partitions", "1", "--replication-factor", "1"}, broker...)...)
	s.do(append([]string{"topics", "list", "-o", "name"}, s.login("alice", "SCRAM-SHA-256")...)...).want(exit.OK, "app-1", "")
	if strings.Contains(s.out.String(), "other") {
		s.t.Errorf("alice sees what she may not: %s", s.out)
	}
	s.do(append([]string{"topics", "list", "-o", "name"}, s.login("bob ~", "SCRAM-SHA-512")...)...).want(exit.OK, "app-1", "")
	for _, args := range [][]string{{"users", "list"}, {"users", "list", "-o", "json"}, {"acls", "list"}, {"acls", "list", "-o", "json"}, {"acls", "list", "--export"}, {"quotas", "list"}, {"quotas", "list", "-o", "json"}} {
		s.both(args...)
	}
	if over := s.both("quotas", "describe", "--user", "alice", "--client-id", "a b*~"); !strings.Contains(over, "consumer_byte_rate") {
		s.t.Errorf("no limit of the pair: %s", over)
	}
	file := filepath.Join(s.dir, "broker.properties")
	var lines []string
	for _, arg := range s.login("broker", "SCRAM-SHA-512")[4:] {
		if arg != "-X" {
			lines = append(lines, arg)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	over := s.tool("ConfigCommand", "--bootstrap-server", os.Getenv("KCTL_PEER_BOOTSTRAP"), "--command-config", file,
		"--describe", "--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "a b*~")
	if !strings.Contains(over, "consumer_byte_rate=2048") || !strings.Contains(over, "controller_mutation_rate=10.0") {
		s.t.Errorf("Kafka's tool: %s", over)
	}
}

// running: beside a broker that kctl does not reach only --break-glass writes, and the broker learns of it.
func (s *storedPeer) running() {
	far := []string{"-b", "127.0.0.1:1", "--yes"}
	carol := []string{"users", "set", "carol", "--password-file", s.password("carol")}
	s.do(append(carol, far...)...).want(exit.Unreachable, "", "broker 1 is registered in ZooKeeper")
	list := append([]string{"topics", "list", "-o", "name"}, s.login("carol", "SCRAM-SHA-512")...)
	s.do(list...).want(exit.Unauthorized, "", "refused the login")
	s.do(append(carol, append(far, "--break-glass")...)...).want(exit.OK, "done", "they learn of it by the notification")
	s.until(exit.OK, list...)
	s.do(append([]string{"acls", "create", "--allow-principal", "User:carol", "--operation", "Describe", "--topic", "app-1", "--break-glass"}, far...)...).want(exit.OK, "done", "will change")
	s.untilOut("app-1", list...)
	s.do(append([]string{"acls", "create", "--allow-principal", "User:carol", "--operation", "Describe", "--topic", "oth", "--pattern", "prefixed", "--break-glass"}, far...)...).want(exit.OK, "done", "will change")
	s.untilOut("other", list...)
	s.do("history", "undo", s.last(), "--yes", "-b", "127.0.0.1:1").want(exit.OK, "delete", "taking back")
	s.gone("other", list...)
	s.do(append([]string{"quotas", "set", "--user", "carol", "producer_byte_rate=777", "--break-glass"}, far...)...).want(exit.OK, "done", "will change")
	s.logged("Changing PRODUCE quota for user carol to 777.0")
	s.do(append([]string{"users", "delete", "carol", "--break-glass"}, far...)...).want(exit.OK, "done", "will delete")
	s.until(exit.Unauthorized, list...)
	s.both("users", "list")
	s.both("acls", "list")
	s.both("quotas", "list")
}

// gone waits until a text is in the output no more.
func (s *storedPeer) gone(text string, args ...string) {
	s.t.Helper()
	deadline := time.Now().Add(longWait)
	for s.run(args...); strings.Contains(s.out.String(), text); s.run(args...) {
		if time.Now().After(deadline) {
			s.t.Fatalf("kctl %v: still %q in\n%s%s", args, text, s.out, s.err)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// logged waits until the broker's log holds a text.
func (s *storedPeer) logged(text string) {
	s.t.Helper()
	file := filepath.Join(os.Getenv("KAFKA_RUN"), "broker0", "logs", "server.log")
	for deadline := time.Now().Add(longWait); ; <-time.After(200 * time.Millisecond) {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(data), text) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no %q in %s", text, file)
		}
	}
}
