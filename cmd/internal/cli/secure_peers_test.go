//go:build peers && secure

package cli_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/cli/exit"
)

// The users of the secured broker, and passwords that must never be printed.
const (
	carolPassword = `p;w"q=u o\te` // any character may stand in a jaas file, once it is escaped
	plainPassword = "plainpw-Xy93"
	keyPassword   = `key;pw"=1`
)

// secured is an Apache Kafka broker with a listener of every kind, and an authorizer. Its znodes are below /kc.
type secured struct {
	*kctl
	script    string
	zookeeper string
	addr      map[string]string // listeners by name
	ca        *authority
	trust     map[string]string
	client    map[string]string // stores of CN=kctl-client
	stranger  map[string]string // stores of a certificate that the broker does not trust
}

var securedListeners = []struct{ name, protocol string }{
	{"TLS", "SSL"}, {"MUTUAL", "SSL"}, {"EXPIRED", "SSL"}, {"OTHERNAME", "SSL"}, {"SASL", "SASL_PLAINTEXT"}, {"ONE", "SASL_PLAINTEXT"},
	{"SASLTLS", "SASL_SSL"}, {"GHOST", "PLAINTEXT"},
}

// freePorts reserves addresses until done is called.
func freePorts(t *testing.T, n int) (addrs []string, done func()) {
	t.Helper()
	var lns []net.Listener
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		lns, addrs = append(lns, ln), append(addrs, ln.Addr().String())
	}
	return addrs, func() {
		for _, ln := range lns {
			_ = ln.Close()
		}
	}
}

// startSecured makes certificates, starts the broker through the script that KCTL_PEER_SECURE names, and its users.
func startSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{kctl: newKctl(t), script: os.Getenv("KCTL_PEER_SECURE"), zookeeper: os.Getenv("KCTL_PEER_ZOOKEEPER"), addr: map[string]string{}}
	if s.script == "" {
		t.Fatal("KCTL_PEER_SECURE names no script that starts Apache Kafka")
	}
	dir := t.TempDir()
	s.ca = newAuthority(t, dir, "kctl-ca")
	s.trust, s.client = s.ca.trust(), s.ca.client("kctl-client", keyPassword)
	s.stranger = newAuthority(t, dir, "somebody").client("kctl-stranger", keyPassword)
	addrs, done := freePorts(t, len(securedListeners))
	for i, l := range securedListeners {
		s.addr[l.name] = addrs[i]
	}
	s.addr["CLOSED"] = "127.0.0.1:1" // nothing listens there, and no connection goes out from it
	done()
	s.startBroker()
	s.env["KCTL_TIMEOUT"] = "10s"
	s.env["KCTL_BOOTSTRAP_SERVER"] = s.addr["PLAINTEXT"]
	pw := s.ca.write("carol.pw", []byte(carolPassword+"\n"))
	s.until(exit.OK, "users", "set", "carol", "--password-file", pw, "--yes")
	return s
}

func (s *secured) startBroker() {
	s.t.Helper()
	listeners, advertised, protocols := "", "", ""
	add := func(name, addr, shown, protocol string) {
		listeners += "," + name + "://" + addr
		advertised += "," + name + "://" + shown
		protocols += "," + name + ":" + protocol
	}
	s.addr["PLAINTEXT"] = s.plainAddr()
	add("PLAINTEXT", s.addr["PLAINTEXT"], s.addr["PLAINTEXT"], "PLAINTEXT")
	for _, l := range securedListeners {
		shown := s.addr[l.name]
		if l.name == "GHOST" {
			shown = s.addr["CLOSED"]
		}
		add(l.name, s.addr[l.name], shown, l.protocol)
	}
	good := s.ca.server("localhost", time.Now().Add(24*time.Hour))
	props := []string{
		"listeners=" + listeners[1:], "advertised.listeners=" + advertised[1:], "listener.security.protocol.map=" + protocols[1:],
		"inter.broker.listener.name=PLAINTEXT", "zookeeper.connect=" + s.zookeeper + "/kc",
		"authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "super.users=User:ANONYMOUS",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + good, "ssl.truststore.type=PEM", "ssl.truststore.location=" + s.trust["pem"],
		"listener.name.mutual.ssl.client.auth=required",
		"listener.name.expired.ssl.keystore.location=" + s.ca.server("localhost", time.Now().Add(-400*24*time.Hour)),
		"listener.name.othername.ssl.keystore.location=" + s.ca.server("other.example", time.Now().Add(24*time.Hour)),
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "listener.name.one.sasl.enabled.mechanisms=SCRAM-SHA-512",
	}
	for _, l := range []string{"sasl", "one", "sasltls"} {
		props = append(props, "listener.name."+l+`.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule\u0020required\u0020user_dave="`+plainPassword+`";`)
		for _, m := range []string{"scram-sha-256", "scram-sha-512"} {
			props = append(props, "listener.name."+l+"."+m+`.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule\u0020required;`)
		}
	}
	s.t.Cleanup(func() { s.sh("stop") })
	s.sh("start-zk")
	s.sh("start", "1", strings.Join(props, " "))
}

// plainAddr is where the script waits for the broker.
func (s *secured) plainAddr() string {
	addr := os.Getenv("KCTL_PEER_BOOTSTRAP")
	if addr == "" {
		s.t.Fatal("KCTL_PEER_BOOTSTRAP is not set")
	}
	return addr
}

// sh runs the script; a third argument is the broker's properties.
func (s *secured) sh(args ...string) {
	s.t.Helper()
	cmd := exec.Command(s.script, args[:min(len(args), 2)]...)
	cmd.Env = os.Environ()
	if len(args) > 2 {
		cmd.Env = append(cmd.Env, "KAFKA_PROPS="+args[2])
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s", s.script, args[0], err, out)
	}
}

// file writes a properties file.
func (s *secured) file(lines ...string) string {
	s.t.Helper()
	f, err := os.CreateTemp(s.ca.dir, "*.properties")
	s.ca.check(err)
	defer f.Close()
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	s.ca.check(err)
	return f.Name()
}

// jaas is the line that a Java client takes: the value is escaped for the module, and once more for the file.
func jaas(module, user, password string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(password)
	value := fmt.Sprintf(`org.apache.kafka.common.security.%s required username="%s" password="%s";`, module, user, quoted)
	return "sasl.jaas.config=" + strings.ReplaceAll(value, `\`, `\\`)
}

const (
	scramModule = "scram.ScramLoginModule"
	plainModule = "plain.PlainLoginModule"
)

func (s *secured) trustLines(kind string) []string {
	if kind == "pem" {
		return []string{"ssl.truststore.type=PEM", "ssl.truststore.location=" + s.trust["pem"]}
	}
	named := map[string]string{"jks": "JKS", "p12": "PKCS12"}[kind]
	return []string{"ssl.truststore.type=" + named, "ssl.truststore.location=" + s.trust[kind], "ssl.truststore.password=" + storePassword}
}

func keyLines(stores map[string]string, kind string) []string {
	if kind == "pem" {
		return []string{"ssl.keystore.type=PEM", "ssl.keystore.location=" + stores["pem"], "ssl.key.password=" + keyPassword}
	}
	named := map[string]string{"jks": "JKS", "p12": "PKCS12"}[kind]
	return []string{"ssl.keystore.type=" + named, "ssl.keystore.location=" + stores[kind], "ssl.keystore.password=" + storePassword, "ssl.key.password=" + storePassword}
}

// inline is a PEM file as the value of a property, in one line with blanks.
func (s *secured) inline(name, file string) string {
	s.t.Helper()
	data, err := os.ReadFile(file)
	s.ca.check(err)
	return name + "=" + strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", " \\\n")
}

// secrets are what no output may hold, verbose or not.
var secrets = []string{carolPassword, plainPassword, keyPassword, storePassword, "wrongpw-Aa11", "p;w", superPassword, "PRIVATE KEY"}

// kctl runs with a properties file, twice: the second time with --verbose, and looks for secrets.
func (s *secured) with(addr string, lines []string, args ...string) *kctl {
	s.t.Helper()
	file := s.file(lines...)
	args = append(args, "-b", addr, "--command-config", file)
	s.run(append(args, "--verbose")...)
	s.noSecrets()
	return s.run(args...)
}

func (s *secured) noSecrets() {
	s.t.Helper()
	for _, secret := range secrets {
		if strings.Contains(s.out.String()+s.err.String(), secret) {
			s.t.Errorf("%q is printed:\n%s%s", secret, s.out, s.err)
		}
	}
}

func join(parts ...[]string) []string {
	var out []string
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// TestSecurePeer runs kctl against Apache Kafka with TLS, SASL and ACLs.
func TestSecurePeer(t *testing.T) {
	s := startSecured(t)
	topic := anyTopic(t, s.kctl)
	s.run("acls", "create", "--allow-principal", "User:carol", "--allow-principal", "User:dave", "--allow-principal", "User:CN=kctl-client",
		"--operation", "Describe", "--topic", topic, "--yes").want(exit.OK, "done", "will change")
	on := func(name string, fn func(*testing.T, *secured, string)) {
		t.Run(name, func(t *testing.T) {
			sub := *s
			k := *s.kctl
			k.env = maps.Clone(k.env)
			sub.kctl, k.t = &k, t
			fn(t, &sub, topic)
		})
	}
	on("properties", securedProperties)
	on("mistakes", securedMistakes)
	on("authorization", securedAuthorization)
	on("chroot", securedChroot)
	on("acls", func(t *testing.T, s *secured, _ string) { aclRounds(t, s.kctl) })
}

// securedProperties: settings that a Java client takes work as they are, and Kafka's own tool takes the same file.
func securedProperties(t *testing.T, s *secured, topic string) {
	tls, saslTLS, plain := []string{"security.protocol=SSL"}, []string{"security.protocol=SASL_SSL"}, []string{"security.protocol=SASL_PLAINTEXT"}
	scram := func(n string) []string {
		return []string{"sasl.mechanism=SCRAM-SHA-" + n, jaas(scramModule, "carol", carolPassword)}
	}
	for _, tt := range []struct {
		name, listener string
		lines          []string
		java           bool
	}{
		{"tls, PEM trust", "TLS", join(tls, s.trustLines("pem")), false},
		{"tls, JKS trust", "TLS", join(tls, s.trustLines("jks")), false},
		{"tls, PKCS12 trust", "TLS", join(tls, s.trustLines("p12")), false},
		{"tls, certificate in the file", "TLS", join(tls, []string{"ssl.truststore.type=PEM", s.inline("ssl.truststore.certificates", s.trust["pem"])}), true},
		{"no name check", "OTHERNAME", join(tls, s.trustLines("pem"), []string{"ssl.endpoint.identification.algorithm="}), false},
		// Java reads such a key from version 19 on.
		{"mutual, encrypted PEM key", "MUTUAL", join(tls, s.trustLines("pem"), keyLines(s.client, "pem")), false},
		{"mutual, JKS", "MUTUAL", join(tls, s.trustLines("jks"), keyLines(s.client, "jks")), false},
		{"mutual, PKCS12", "MUTUAL", join(tls, s.trustLines("p12"), keyLines(s.client, "p12")), true},
		{"scram 256", "SASL", join(plain, scram("256")), false},
		{"scram 512", "SASL", join(plain, scram("512")), false},
		{"plain", "SASL", join(plain, []string{"sasl.mechanism=PLAIN", jaas(plainModule, "dave", plainPassword)}), false},
		{"scram over tls", "SASLTLS", join(saslTLS, s.trustLines("jks"), scram("512")), true},
		{"plain over tls", "SASLTLS", join(saslTLS, s.trustLines("p12"), []string{"sasl.mechanism=PLAIN", jaas(plainModule, "dave", plainPassword)}), false},
	} {
		s.run("topics", "list") // a fresh pair of streams
		s.with(s.addr[tt.listener], tt.lines, "topics", "list", "-o", "name")
		if s.code != 0 || !strings.Contains(s.out.String(), topic) {
			t.Errorf("%s: exit %d\n%s%s", tt.name, s.code, s.out, s.err)
		}
		if tt.java {
			cmd := exec.Command(s.script, "tool", "org.apache.kafka.tools.TopicCommand", "--list", "--bootstrap-server", s.addr[tt.listener], "--command-config", s.file(tt.lines...))
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), topic) {
				t.Errorf("%s: Kafka's own tool: %v\n%s", tt.name, err, out)
			}
		}
	}
}

// securedMistakes: each mistake has a message of its own that names the setting, and the exit code of its kind.
func securedMistakes(t *testing.T, s *secured, topic string) {
	tls, trust := []string{"security.protocol=SSL"}, s.trustLines("pem")
	plain := []string{"security.protocol=SASL_PLAINTEXT"}
	login := func(mech, module, user, password string) []string {
		return []string{"sasl.mechanism=" + mech, jaas(module, user, password)}
	}
	carol := login("SCRAM-SHA-512", scramModule, "carol", carolPassword)
	const wrong = "wrongpw-Aa11"
	for _, tt := range []struct {
		name, listener string
		lines          []string
		code           exit.Code
		cause, hint    string
	}{
		{"tls client on the plain port", "PLAINTEXT", join(tls, trust), exit.Unreachable, "does not speak TLS", "security.protocol=PLAINTEXT"},
		{"plain client on the tls port", "TLS", nil, exit.Unreachable, "speaks TLS, the client does not", "security.protocol=SSL"},
		{"plain client on the mutual port", "MUTUAL", nil, exit.Unreachable, "speaks TLS, the client does not", "security.protocol=SSL"},
		{"sasl without tls on a sasl_ssl port", "SASLTLS", join(plain, carol), exit.Unreachable, "speaks TLS, the client does not", "security.protocol=SASL_SSL"},
		{"sasl with tls on a sasl_plaintext port", "SASL", join([]string{"security.protocol=SASL_SSL"}, trust, carol), exit.Unreachable, "does not speak TLS", "SASL_PLAINTEXT"},
		{"wrong scram password", "SASL", join(plain, login("SCRAM-SHA-256", scramModule, "carol", wrong)), exit.Unauthorized, "refused the login (SCRAM-SHA-256)", "sasl.jaas.config"},
		{"wrong scram password over tls", "SASLTLS", join([]string{"security.protocol=SASL_SSL"}, trust, login("SCRAM-SHA-512", scramModule, "carol", wrong)), exit.Unauthorized, "refused the login", "sasl.jaas.config"},
		{"unknown user", "SASL", join(plain, login("SCRAM-SHA-512", scramModule, "nobody", wrong)), exit.Unauthorized, "refused the login", "that the user exists"},
		{"wrong plain password", "SASL", join(plain, login("PLAIN", plainModule, "dave", wrong)), exit.Unauthorized, "refused the login (PLAIN)", "sasl.jaas.config"},
		{"wrong mechanism", "ONE", join(plain, login("PLAIN", plainModule, "dave", plainPassword)), exit.Unauthorized, "it offers SCRAM-SHA-512", "sasl.mechanism=SCRAM-SHA-512"},
		{"wrong strength", "ONE", join(plain, login("SCRAM-SHA-256", scramModule, "carol", carolPassword)), exit.Unauthorized, "it offers SCRAM-SHA-512", "sasl.mechanism=SCRAM-SHA-512"},
		{"sasl missing", "SASL", nil, exit.Unauthorized, "asks for a login", "security.protocol=SASL_PLAINTEXT"},
		{"sasl missing over tls", "SASLTLS", join(tls, trust), exit.Unauthorized, "asks for a login", "security.protocol=SASL_SSL"},
		{"sasl on a plain port", "PLAINTEXT", join(plain, carol), exit.Unauthorized, "does not take a login", "security.protocol=PLAINTEXT"},
		{"sasl on a tls port", "TLS", join([]string{"security.protocol=SASL_SSL"}, trust, carol), exit.Unauthorized, "does not take a login", "security.protocol=SSL"},
		{"expired", "EXPIRED", join(tls, trust), exit.Unreachable, "has expired", "ssl.keystore.location of the broker"},
		{"expired, without name check", "EXPIRED", join(tls, trust, []string{"ssl.endpoint.identification.algorithm="}), exit.Unreachable, "has expired", "ssl.keystore.location of the broker"},
		{"wrong name", "OTHERNAME", join(tls, trust), exit.Unreachable, "is for other.example, not for 127.0.0.1", "ssl.endpoint.identification.algorithm"},
		{"unknown authority", "TLS", tls, exit.Unreachable, "unknown authority", "ssl.truststore.location"},
		{"no client certificate", "MUTUAL", join(tls, trust), exit.Unauthorized, "asks for a client certificate and got none", "ssl.keystore.location"},
		{"a client certificate of somebody else", "MUTUAL", join(tls, trust, keyLines(s.stranger, "pem")), exit.Unauthorized, "refuses the client's certificate", "ssl.keystore.location"},
		{"wrong key password", "MUTUAL", join(tls, trust, []string{"ssl.keystore.location=" + s.client["pem"], "ssl.key.password=" + wrong}), exit.Usage, "does not open the private key", "ssl.key.password is wrong"},
		{"no key password", "MUTUAL", join(tls, trust, []string{"ssl.keystore.location=" + s.client["pem"]}), exit.Usage, "encrypted", "set ssl.key.password"},
		{"wrong store password", "TLS", join(tls, []string{"ssl.truststore.location=" + s.trust["jks"], "ssl.truststore.password=" + wrong}), exit.Usage, "ssl.truststore.location", "ssl.truststore.password is wrong"},
		{"a setting of another protocol", "TLS", carol, exit.Usage, "security.protocol", ""},
		{"a mistyped setting", "TLS", join(tls, []string{"ssl.trustore.location=x"}), exit.Usage, `line 2: unknown setting "ssl.trustore.location"`, "ssl.truststore.location"},
		{"a documented-looking key", "SASL", join(plain, []string{"key=" + wrong}), exit.Usage, `line 2: unknown setting "key"`, ""},
		{"an unescaped quote", "SASL", join(plain, []string{"sasl.mechanism=SCRAM-SHA-512", `sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="carol" password="` + wrong + `"q";`}), exit.Usage, "sasl.jaas.config", ""},
		{"zookeeper's port", "ZOOKEEPER", nil, exit.Unreachable, "a ZooKeeper server, not a broker", "-z " + s.zookeeper},
		{"nothing there", "CLOSED", nil, exit.Unreachable, "connection refused", "KCTL_BOOTSTRAP_SERVER"},
	} {
		addr := s.addr[tt.listener]
		if tt.listener == "ZOOKEEPER" {
			addr = s.zookeeper
		}
		begun := time.Now()
		s.with(addr, tt.lines, "topics", "list")
		said := s.err.String()
		if s.code != int(tt.code) || s.out.Len() > 0 || !strings.Contains(said, tt.cause) || !strings.Contains(said, tt.hint) {
			t.Errorf("%s: exit %d, want %d, %q and %q\n%s%s", tt.name, s.code, tt.code, tt.cause, tt.hint, s.out, said)
		}
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("%s: two runs took %s", tt.name, took)
		}
		if testing.Verbose() {
			t.Logf("%s: %s: exit %d: %s", tt.name, time.Since(begun), s.code, said)
		}
	}
	s.run("topics", "describe", topic, "-b", s.addr["GHOST"]).want(exit.Partial, topic, "partly answered: reassignments")
	s.run("log-dirs", "describe", "-b", s.addr["GHOST"], "--timeout", "5s")
	if s.code == 0 || !strings.Contains(s.out.String()+s.err.String(), "its advertised address "+s.addr["CLOSED"]) {
		t.Errorf("advertised address: exit %d\n%s%s", s.code, s.out, s.err)
	}
}

// securedAuthorization: what the authorizer refuses is exit 4, names the resource, and changes nothing.
func securedAuthorization(t *testing.T, s *secured, topic string) {
	file := s.file(join([]string{"security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", jaas(scramModule, "carol", carolPassword)}, s.trustLines("pem"))...)
	s.env["KCTL_BOOTSTRAP_SERVER"] = s.addr["SASLTLS"]
	secret := "kctl-secret"
	s.run("topics", "create", secret, "--partitions", "1", "--replication-factor", "1", "-b", s.addr["PLAINTEXT"]).want(exit.OK, "", "created topic")
	defer s.run("topics", "delete", secret, "--yes", "-b", s.addr["PLAINTEXT"])
	s.in = "x\n"
	for _, args := range []string{
		"topics describe " + secret, "partitions list " + secret, "configs get topic/" + topic, "configs set topic/" + topic + " retention.ms=1000 --yes",
		"topics alter " + topic + " --partitions 9 --yes", "topics delete " + topic + " --yes", "topics create kctl-new --partitions 1 --replication-factor 1",
		"produce " + topic, "consume " + topic + " --from-beginning -n 1", "acls list", "quotas list", "users list", "configs get broker/1",
		"transactions describe x",
	} {
		s.run(append(strings.Fields(args), "--command-config", file)...)
		s.noSecrets()
		if testing.Verbose() {
			t.Logf("%s: exit %d: %s%s", args, s.code, s.out, s.err)
		}
		if s.code != int(exit.Unauthorized) || !strings.Contains(strings.ToUpper(s.err.String()), "AUTHORIZ") {
			t.Errorf("%s: exit %d, want 4\n%s%s", args, s.code, s.out, s.err)
		}
	}
	s.run("topics", "list", "-o", "name", "--command-config", file).want(exit.OK, topic, "")
	if strings.Contains(s.out.String(), secret) {
		t.Error("a topic shows that may not be described")
	}
	s.run("topics", "describe", topic, "-o", "json", "-b", s.addr["PLAINTEXT"]).want(exit.OK, `"partitionCount": 3`, "")
}

// securedChroot: the five connect strings of a cluster below a chroot.
func securedChroot(t *testing.T, s *secured, topic string) {
	_, port, err := net.SplitHostPort(s.zookeeper)
	s.ca.check(err)
	list := []string{"topics", "list", "-o", "name", "-b", "", "-z"}
	for _, z := range []string{"127.0.0.1:" + port + ",localhost:" + port + "/kc", "127.0.0.1:" + port + "/kc/", forward6(t, s.zookeeper) + "/kc"} {
		if strings.HasPrefix(z, "/") {
			t.Log("this machine has no IPv6")
			continue
		}
		s.run(append(list, z)...).want(exit.OK, topic, "")
	}
	both := "127.0.0.1:" + port + "/kc,localhost:" + port + "/kc"
	s.run(append(list, both)...).want(exit.Usage, "", "127.0.0.1:"+port+",localhost:"+port+"/kc")
	for _, args := range [][]string{append(list, s.zookeeper+"/nope"), {"cluster", "describe", "-b", "", "-z", s.zookeeper + "/nope"}, {"transitions", "-b", "", "-z", s.zookeeper + "/nope"}} {
		s.run(args...).want(exit.Failed, "", "chroot does not exist")
	}
	// The cluster is below /kc: without it nothing may look like an empty cluster.
	s.run(append(list, s.zookeeper)...)
	if s.code == 0 {
		t.Errorf("without the chroot: exit 0\n%s%s", s.out, s.err)
	}
	if testing.Verbose() {
		t.Logf("without the chroot: %s", s.err)
	}
	s.run(append(list, s.addr["PLAINTEXT"])...).want(exit.Unreachable, "", "a Kafka broker, not a ZooKeeper server")
}

// forward6 listens on the IPv6 loopback and hands connections on; empty where there is no IPv6.
func forward6(t *testing.T, to string) string {
	t.Helper()
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return ""
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return ln.Addr().String()
}
