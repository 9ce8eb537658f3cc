//go:build peers && secure

package cli_test

import (
	"crypto/sha1" //nolint:gosec // ZooKeeper's own digest
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/cli/exit"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zktest/realzk"
)

// superPassword is that of ZooKeeper's superuser; it must never be printed.
const superPassword = "superpw:Kq-55"

// securedZK is an Apache ZooKeeper with a port of TLS that demands client certificates beside a plain one, and below /ks an
// Apache Kafka broker that protects its znodes (zookeeper.set.acl).
type securedZK struct {
	*secured
	plain, tls string            // host:port
	kafka      map[string]string // stores of the brokers' certificate
	other      map[string]string // of another one by the same authority
	look       zkutil.Ops        // as superuser
}

// TestSecureZooKeeperPeer: kctl reaches a ZooKeeper that demands certificates with the settings of Kafka's tools, which take
// the same file; protected znodes are read and changed with the brokers' certificate and refused with another one, and
// what kctl makes is protected as the cluster's own znodes are.
func TestSecureZooKeeperPeer(t *testing.T) {
	s := startSecuredZK(t)
	s.properties()
	s.mistakes()
	s.demanded()
	if t.Failed() {
		t.FailNow() // the broker would wait in vain for its ZooKeeper
	}
	s.startKafka()
	s.protected()
	s.created()
	s.tools()
}

func startSecuredZK(t *testing.T) *securedZK {
	t.Helper()
	jars, err := realzk.JarsFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &securedZK{secured: &secured{kctl: newKctl(t), script: os.Getenv("KCTL_PEER_SECURE"), ca: newAuthority(t, dir, "kctl-ca")}}
	if s.script == "" || os.Getenv("KAFKA_RUN") == "" {
		t.Fatal("KCTL_PEER_SECURE, a script that starts Apache Kafka, and KAFKA_RUN, its folder, are not set")
	}
	s.trust, s.kafka, s.other = s.ca.trust(), s.ca.client("kafka", storePassword), s.ca.client("other", storePassword)
	s.stranger = newAuthority(t, dir, "somebody").client("stranger", storePassword)
	addrs, done := freePorts(t, 1)
	done()
	s.tls = addrs[0]
	digest := sha1.Sum([]byte("super:" + superPassword)) //nolint:gosec // likewise
	zk, err := realzk.Start(t.Context(), realzk.Options{Jars: jars, Dir: dir, Servers: 1, Properties: map[string]string{
		"secureClientPort": s.tls[strings.LastIndexByte(s.tls, ':')+1:], "secureClientPortAddress": "127.0.0.1",
		"serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory", "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
		"ssl.keyStore.location": s.ca.server("localhost", time.Now().Add(24*time.Hour)), "ssl.keyStore.type": "PEM",
		"ssl.trustStore.location": s.trust["pem"], "ssl.trustStore.type": "PEM", "ssl.clientAuth": "need", "ssl.protocol": "TLSv1.3", "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
		"ssl.ciphersuites":                         "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", // those of 1.3 are not among ZooKeeper's own
		"DigestAuthenticationProvider.superDigest": "super:" + base64.StdEncoding.EncodeToString(digest[:]),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	s.plain = zk.Addr(0)
	super, err := zkutil.Connect(t.Context(), zkutil.Config{
		Connect: s.plain, KeepTrying: true, SessionTimeout: time.Minute,
		Auth: []zkutil.Auth{{Scheme: "digest", Credential: []byte("super:" + superPassword)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = super.Close() })
	s.look = zkutil.Any(super)
	for _, path := range []string{"/ks", "/fresh"} {
		if err := s.look.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	s.env["KCTL_TIMEOUT"] = "20s"
	return s
}

// way is the settings that reach ZooKeeper over TLS, with the stores of a client; kind is pem, jks or p12.
func (s *securedZK) way(stores map[string]string, kind string) []string {
	named := map[string]string{"pem": "PEM", "jks": "JKS", "p12": "PKCS12"}[kind]
	lines := []string{
		"zookeeper.ssl.client.enable=true", "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"zookeeper.ssl.truststore.location=" + s.trust[kind], "zookeeper.ssl.truststore.type=" + named, "zookeeper.ssl.truststore.password=" + storePassword,
	}
	if stores != nil {
		lines = append(lines, "zookeeper.ssl.keystore.location="+stores[kind], "zookeeper.ssl.keystore.type="+named, "zookeeper.ssl.keystore.password="+storePassword)
	}
	return lines
}

// zk runs kctl with a properties file and ZooKeeper's address alone.
func (s *securedZK) zk(addr string, lines []string, args ...string) *kctl {
	s.t.Helper()
	s.with("", lines, append(args, "-z", addr)...)
	return s.kctl
}

// once runs kctl as zk does, but a single time: for changes.
func (s *securedZK) once(addr string, lines []string, args ...string) *kctl {
	s.t.Helper()
	s.run(append(args, "-z", addr, "-b", "", "--command-config", s.file(lines...))...)
	s.noSecrets()
	return s.kctl
}

// properties: every kind of store, and what Kafka's settings say beside them.
func (s *securedZK) properties() {
	for _, tt := range []struct {
		name  string
		lines []string
	}{
		{"PEM with an encrypted key", s.way(s.kafka, "pem")},
		{"JKS", s.way(s.kafka, "jks")},
		{"PKCS12", s.way(s.kafka, "p12")},
		{"TLS 1.2 only", append(s.way(s.kafka, "jks"), "zookeeper.ssl.protocol=TLSv1.2", "zookeeper.ssl.cipher.suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")},
		{"TLS 1.3 only", append(s.way(s.kafka, "jks"), "zookeeper.ssl.protocol=TLSv1.2", "zookeeper.ssl.enabled.protocols=TLSv1.3")},
		{"name not checked", append(s.way(s.kafka, "jks"), "zookeeper.ssl.endpoint.identification.algorithm=")},
	} {
		if s.zk(s.tls, tt.lines, "zk", "ls", "/"); s.code != 0 || !strings.Contains(s.out.String(), "fresh") {
			s.t.Errorf("%s: exit %d\n%s%s", tt.name, s.code, s.out, s.err)
		}
	}
	args := []string{"zk", "ls", "/", "-z", s.tls, "-b", ""}
	for _, line := range s.way(s.kafka, "p12") {
		args = append(args, "-X", line)
	}
	s.run(args...).want(exit.OK, "fresh", "")
	file := s.file(append(s.way(s.kafka, "jks"), "zookeeper.connect="+s.tls+"/ks")...)
	s.run("context", "import", "sec", file).want(exit.OK, "", "context sec is in")
	s.run("zk", "ls", "/", "--context", "sec").want(exit.OK, "", "")
}

// mistakes: each has a message of its own that names the setting.
func (s *securedZK) mistakes() {
	for _, tt := range []struct {
		name, addr  string
		lines       []string
		code        exit.Code
		cause, hint string
	}{
		{"plain client, port of TLS", s.tls, nil, exit.Unreachable, "the port speaks TLS, the client does not", "zookeeper.ssl.client.enable=true"},
		{"TLS client, plain port", s.plain, s.way(s.kafka, "jks"), exit.Unreachable, "the port does not speak TLS, the client does", "secureClientPort"},
		{"no client certificate", s.tls, s.way(nil, "pem"), exit.Unauthorized, "asks for a client certificate and got none", "zookeeper.ssl.keystore.location"},
		{"no client certificate, TLS 1.2", s.tls, append(s.way(nil, "pem"), "zookeeper.ssl.protocol=TLSv1.2"), exit.Unauthorized, "asks for a client certificate and got none", "zookeeper.ssl.keystore.location"},
		{"a stranger's certificate", s.tls, s.way(s.stranger, "jks"), exit.Unauthorized, "refuses the client's certificate", "zookeeper.ssl.keystore.location"},
		{"unknown authority", s.tls, append(s.way(s.kafka, "jks")[:2], s.way(s.kafka, "jks")[5:]...), exit.Unreachable, "signed by an unknown authority", "zookeeper.ssl.truststore.location"},
		{"wrong name", forward6(s.t, s.tls), s.way(s.kafka, "jks"), exit.Unreachable, "ZooKeeper's certificate is for localhost, 127.0.0.1, not for ::1", "zookeeper.ssl.endpoint.identification.algorithm"},
		{"wrong store password", s.tls, []string{"zookeeper.ssl.client.enable=true", "zookeeper.ssl.keystore.location=" + s.kafka["jks"], "zookeeper.ssl.keystore.password=wrongpw-Aa11"}, exit.Usage, "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.password is wrong"},
		{"wrong key password", s.tls, []string{"zookeeper.ssl.client.enable=true", "zookeeper.ssl.keystore.location=" + s.kafka["pem"], "zookeeper.ssl.keystore.password=wrongpw-Aa11"}, exit.Usage, "does not open the private key", "zookeeper.ssl.keystore.password is wrong"},
		{"SASL", s.tls, []string{"java.security.auth.login.config=/etc/jaas.conf"}, exit.Usage, "line 1: java.security.auth.login.config: kctl does not log in to ZooKeeper with SASL", "kctl.zookeeper.auth=digest:USER:PASSWORD"},
		{"nothing there", "127.0.0.1:1", s.way(s.kafka, "jks"), exit.Unreachable, "connection refused", ""},
	} {
		if tt.addr == "" {
			s.t.Log("this machine has no IPv6")
			continue
		}
		begun := time.Now()
		s.zk(tt.addr, tt.lines, "zk", "ls", "/")
		said := s.err.String()
		if s.code != int(tt.code) || s.out.Len() > 0 || !strings.Contains(said, tt.cause) || !strings.Contains(said, tt.hint) {
			s.t.Errorf("%s: exit %d, want %d, %q and %q\n%s%s", tt.name, s.code, tt.code, tt.cause, tt.hint, s.out, said)
		}
		if testing.Verbose() {
			s.t.Logf("%s: %s: exit %d: %s", tt.name, time.Since(begun), s.code, said)
		}
	}
}

// demanded: a ZooKeeper that closes sessions without a login says so, once and soon.
func (s *securedZK) demanded() {
	jars, err := realzk.JarsFromEnv()
	s.ca.check(err)
	zk, err := realzk.Start(s.t.Context(), realzk.Options{Jars: jars, Dir: s.t.TempDir(), Servers: 1, Properties: map[string]string{
		"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest",
	}})
	s.ca.check(err)
	defer zk.Close()
	s.until(exit.Unauthorized, "zk", "ls", "/", "-b", "", "-z", zk.Addr(0)) // which may take connections before it serves
	for addr, child := range map[string]string{zk.Addr(0): "zookeeper", zk.Addr(0) + "/zookeeper": "quota"} {
		s.zk(addr, nil, "zk", "ls", "/").want(exit.Unauthorized, "", "closes sessions that have not logged in")
		s.until(exit.Unauthorized, "brokers", "list", "-b", "", "-z", addr)
		s.want(exit.Unauthorized, "", "kctl.zookeeper.auth=digest:USER:PASSWORD")
		s.zk(addr, []string{"kctl.zookeeper.auth=digest:anybody:" + superPassword}, "zk", "ls", "/").want(exit.OK, child, "")
	}
}

// startKafka starts a broker that reaches ZooKeeper with the brokers' certificate and protects its znodes.
func (s *securedZK) startKafka() {
	props := append(s.way(s.kafka, "jks"), "zookeeper.connect="+s.tls+"/ks", "zookeeper.set.acl=true", "zookeeper.session.timeout.ms=18000")
	s.t.Cleanup(func() { s.sh("stop") })
	s.sh("start-broker", "0", strings.Join(props, " "))
	s.addr = map[string]string{"PLAINTEXT": s.plainAddr()}
	s.until(exit.OK, "topics", "create", "t", "--partitions", "1", "--replication-factor", "1", "-b", s.plainAddr())
}

// protected: who may read and change what Kafka protects.
func (s *securedZK) protected() {
	ks := s.tls + "/ks"
	mine, others := s.way(s.kafka, "jks"), s.way(s.other, "jks")
	s.zk(ks, mine, "zk", "ls", "/config/users").want(exit.OK, "", "")
	s.zk(ks, mine, "topics", "list", "-o", "name").want(exit.OK, "t", "") // the broker is found in ZooKeeper
	s.zk(ks, mine, "doctor").want(exit.OK, "mode standalone", "findings") // each server says what it is, over TLS
	s.zk(ks, others, "zk", "get", "/brokers/topics/t").want(exit.OK, "partitions", "")
	for _, tt := range []struct {
		name, addr string
		lines      []string
		hint       string
	}{
		{"another certificate", ks, others, "does not name the certificate of zookeeper.ssl.keystore.location"},
		{"nobody", s.plain + "/ks", nil, "kctl.zookeeper.auth=digest:USER:PASSWORD"},
		{"a wrong password", s.plain + "/ks", []string{"kctl.zookeeper.auth=digest:super:Kq-55"}, "check kctl.zookeeper.auth"},
	} {
		for _, args := range []string{"zk get /config/users", "zk ls /config/brokers", "zk create /admin/x --yes", "zk set /isr_change_notification x --yes --break-glass", "zk delete /admin/delete_topics --yes --break-glass"} {
			s.zk(tt.addr, tt.lines, strings.Fields(args)...)
			if s.code != int(exit.Unauthorized) || !strings.Contains(s.err.String(), "not authorised") || !strings.Contains(s.err.String(), tt.hint) {
				s.t.Errorf("%s: %s: exit %d\n%s%s", tt.name, args, s.code, s.out, s.err)
			}
		}
	}
	s.zk(s.plain+"/ks", []string{"kctl.zookeeper.auth=digest:super:" + superPassword}, "zk", "ls", "/config/users").want(exit.OK, "", "")
}

// created: znodes that kctl makes have the protection that the broker gives its own.
func (s *securedZK) created() {
	ks, mine := s.tls+"/ks", s.way(s.kafka, "p12")
	far := "127.0.0.1:1" // no broker in reach: ZooKeeper is written
	pw := s.ca.write("alice.pw", []byte(carolPassword+"\n"))
	zk := func(args ...string) {
		s.t.Helper()
		args = append(args, "-z", ks, "-b", far, "--command-config", s.file(mine...), "--yes")
		if s.run(args...); s.code != 0 {
			s.t.Errorf("kctl %v: exit %d\n%s%s", args, s.code, s.out, s.err)
		}
		s.noSecrets()
	}
	zk("zk", "create", "/admin/kctl-x", "x")
	zk("users", "set", "alice", "--password-file", pw, "--break-glass")
	zk("configs", "set", "topic/t", "retention.ms=86400000", "--break-glass")
	s.once(s.plain+"/ks", []string{"kctl.zookeeper.auth=digest:super:" + superPassword}, "zk", "create", "/admin/kctl-y", "--yes").want(exit.OK, "create", "will create")
	for path, world := range map[string]bool{
		"/admin/kctl-x": true, "/admin/kctl-y": true, "/config/users/alice": false, "/config/topics/t": true, "/admin": true, "/config/users": false,
	} {
		s.wantACL("/ks"+path, world)
	}
	s.until(exit.OK, "configs", "get", "topic/t", "retention.ms", "-b", s.plainAddr()) // the broker has read what was written
	s.untilOut("86400000", "configs", "get", "topic/t", "retention.ms", "-b", s.plainAddr())
	notices, _, err := s.look.Children(s.t.Context(), "/ks/config/changes")
	if err != nil || len(notices) == 0 {
		s.t.Fatalf("notifications %v, %v", notices, err)
	}
	for _, n := range notices {
		s.wantACL("/ks/config/changes/"+n, true)
	}
	fresh := s.tls + "/fresh"
	s.once(fresh, mine, "zk", "create", "/open", "--yes").want(exit.OK, "create", "will create")
	acl, _, err := s.look.GetACL(s.t.Context(), "/fresh/open")
	if err != nil || len(acl) != 1 || acl[0] != zkop.WorldAll()[0] {
		s.t.Errorf("below an open znode: %v, %v", acl, err)
	}
	s.once(fresh, append(mine, "zookeeper.set.acl=true"), "zk", "create", "/closed", "--yes").want(exit.OK, "create", "will create")
	s.wantACL("/fresh/closed", true)
}

// wantACL: all rights for the brokers' certificate, and read for everybody where there are no secrets.
func (s *securedZK) wantACL(path string, world bool) {
	s.t.Helper()
	acl, _, err := s.look.GetACL(s.t.Context(), path)
	want := 1
	if world {
		want = 2
	}
	ok := err == nil && len(acl) == want && acl[0] == (zkop.ACL{Perms: zkop.PermAll, Scheme: "x509", ID: "CN=kafka"})
	if !ok || world && acl[1] != (zkop.ACL{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}) {
		s.t.Errorf("%s: %+v, %v", path, acl, err)
	}
}

// tools: Kafka's own tool takes the same file, and reads what kctl wrote.
func (s *securedZK) tools() {
	file := filepath.Join(s.t.TempDir(), "zk-tls.properties")
	s.ca.check(os.WriteFile(file, []byte(strings.Join(s.way(s.kafka, "jks"), "\n")+"\n"), 0o600))
	out, err := exec.Command(s.script, "tool", "ConfigCommand", "--zookeeper", s.tls+"/ks", "--zk-tls-config-file", file,
		"--describe", "--entity-type", "users", "--entity-name", "alice").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "iterations=") {
		s.t.Errorf("Kafka's tool: %v\n%s", err, out)
	}
	s.run("zk", "get", "/config/users/alice", "-b", "", "-z", s.tls+"/ks", "--command-config", file).want(exit.OK, "SCRAM", "")
}
