package admin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/admin/kafkatest"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
)

const zkPassword = "zkpw:Xy-93" // may hold a colon

// TestZooKeeperSettings: what is taken, and what is refused by the name of the setting; a secret is never in a message.
func TestZooKeeperSettings(t *testing.T) {
	on := func(more ...string) Properties {
		p := Properties{zooKeeperTLSOn: "true"}
		for i := 0; i < len(more); i += 2 {
			p[more[i]] = more[i+1]
		}
		return p
	}
	for _, tt := range []struct {
		props      Properties
		want, hint string // empty: taken
	}{
		{Properties{zooKeeperTLSOn: "TRUE", zooKeeperSocket: nettySocket, zooKeeperCRL: "false", zooKeeperOCSP: "False"}, "", ""},
		{Properties{zooKeeperTLSOn: "false", "zookeeper.ssl.truststore.location": "/nowhere"}, "", ""},
		{Properties{zooKeeperSocket: nioSocket, zooKeeperSASL: "false", zooKeeperCRL: "false"}, "", ""},
		{Properties{zooKeeperAuth: "digest:kafka:" + zkPassword, zooKeeperSetACL: "true"}, "", ""},
		{Properties{"zookeeper.ssl.truststore.location": "/nowhere"}, "zookeeper.ssl.truststore.location is set, but ZooKeeper is not reached over TLS", ""},
		{Properties{zooKeeperTLSOn: "yes"}, "zookeeper.ssl.client.enable=yes is neither true nor false", ""},
		{on(zooKeeperSocket, nioSocket), "speaks no TLS", ""},
		{on(zooKeeperSocket, "x.Y"), "is neither", ""},
		{on("zookeeper.ssl.truststore.location", "/nowhere"), "zookeeper.ssl.truststore.location: open /nowhere", ""},
		{on("zookeeper.ssl.endpoint.identification.algorithm", "http"), "zookeeper.ssl.endpoint.identification.algorithm=http is neither https nor empty", ""},
		{on("zookeeper.ssl.enabled.protocols", "TLSv1,TLSv1.1"), "names no version that kctl speaks", ""},
		{on("zookeeper.ssl.protocol", "TLSv9"), "zookeeper.ssl.protocol=TLSv9: TLSv9 is no version of TLS", ""},
		{on("zookeeper.ssl.cipher.suites", "TLS_NULL"), "names no suite", "leave it out"},
		{on("zookeeper.ssl.protocol", "TLSv1.3", "zookeeper.ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"), "names no suite", ""},
		{on(zooKeeperCRL, "true"), "zookeeper.ssl.crl.enable=true: kctl does not look up", ""},
		{Properties{zooKeeperOCSP: "true"}, "zookeeper.ssl.ocsp.enable=true: kctl does not look up", ""},
		{Properties{zooKeeperSASL: "true"}, "does not log in to ZooKeeper with SASL", zooKeeperAuth},
		{Properties{"java.security.auth.login.config": "/etc/jaas.conf"}, "java.security.auth.login.config: kctl does not log in to ZooKeeper with SASL", "zookeeper.ssl.keystore.location"},
		{Properties{"zookeeper.sasl.clientconfig": "Client"}, "does not log in to ZooKeeper with SASL", zooKeeperAuth},
		{Properties{"authorizer.zookeeper.ssl.keystore.location": "x"}, "unknown setting", "take the prefix authorizer. off"},
		{Properties{"zookeeper.ssl.keyStore.location": "x"}, `unknown setting "zookeeper.ssl.keyStore.location"`, `did you mean "zookeeper.ssl.keystore.location"?`},
		{Properties{"zookeeper.session.timeout.ms": "1"}, "unknown setting", ""},
		{Properties{zooKeeperAuth: "kafka:" + zkPassword}, "kctl.zookeeper.auth is not digest:USER:PASSWORD", ""},
		{Properties{zooKeeperAuth: "digest:" + strings.ReplaceAll(zkPassword, ":", "")}, "kctl.zookeeper.auth is not digest:USER:PASSWORD", ""},
		{Properties{zooKeeperSetACL: "true"}, "no user is set", "zookeeper.ssl.keystore.location"},
	} {
		var cfg Config
		err := tt.props.Apply(&cfg)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || KindOf(err) != BadInput || !strings.Contains(err.Error(), tt.want) || !strings.Contains(HintOf(err), tt.hint)) {
			t.Errorf("%v: %v, hint %q; want %q, %q", tt.props, err, HintOf(err), tt.want, tt.hint)
		}
		if err != nil && strings.Contains(err.Error()+HintOf(err), "Xy-93") {
			t.Errorf("a password is printed: %v", err)
		}
	}
}

// TestZooKeeperTLSVersions: versions and suites as Java takes them.
func TestZooKeeperTLSVersions(t *testing.T) {
	const v2, v3 = tls.VersionTLS12, tls.VersionTLS13
	for _, tt := range []struct {
		protocol, enabled, suites string
		low, high                 uint16
		n                         int
	}{
		{"", "", "", v2, 0, 0},
		{"TLS", "", "", v2, 0, 0},
		{"TLSv1.2", "", "", v2, v2, 0},
		{"TLSv1.2", "TLSv1.2, TLSv1.3", "", v2, v3, 0},
		{"", "TLSv1.1,TLSv1.3", "", v3, v3, 0},
		{"", "", "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", v2, v3, 1},
		{"", "", "TLS_AES_256_GCM_SHA384", v3, v3, 0},
		{"", "", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", v2, v2, 1},
		{"TLSv1.2", "", "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", v2, v2, 1},
	} {
		p := Properties{zooKeeperTLSOn: "true", "zookeeper.ssl.protocol": tt.protocol, "zookeeper.ssl.enabled.protocols": tt.enabled, "zookeeper.ssl.cipher.suites": tt.suites}
		var cfg Config
		if err := p.Apply(&cfg); err != nil {
			t.Errorf("%+v: %v", tt, err)
		} else if c := cfg.ZooKeeperTLS; c.MinVersion != tt.low || c.MaxVersion != tt.high || len(c.CipherSuites) != tt.n {
			t.Errorf("%+v: %x to %x, %d suites", tt, c.MinVersion, c.MaxVersion, len(c.CipherSuites))
		}
	}
}

// TestZnodeACL: a new znode is as protected as its parent; secrets are not readable because the folder above them is.
func TestZnodeACL(t *testing.T) {
	kafka := zkop.ACL{Perms: zkop.PermAll, Scheme: "x509", ID: "CN=kafka"}
	read := zkop.ACL{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}
	all, creator := zkop.WorldAll()[0], zkop.ACL{Perms: zkop.PermAll, Scheme: "auth"}
	for _, tt := range []struct {
		path   string
		parent []zkop.ACL
		secure bool
		want   []zkop.ACL
	}{
		{"/admin/x", []zkop.ACL{all}, false, []zkop.ACL{all}},
		{"/admin/x", nil, false, []zkop.ACL{all}},
		{"/admin/x", []zkop.ACL{kafka, all}, false, []zkop.ACL{all}},
		{"/admin/x", []zkop.ACL{kafka, read}, false, []zkop.ACL{kafka, read}},
		{"/admin/x", []zkop.ACL{kafka, read}, true, []zkop.ACL{kafka, read}},
		{"/admin/x", []zkop.ACL{all}, true, []zkop.ACL{creator, read}},
		{"/config/users", []zkop.ACL{kafka, read}, false, []zkop.ACL{kafka}},
		{"/config/users/alice", []zkop.ACL{kafka}, false, []zkop.ACL{kafka}},
		{"/config/brokers/1", []zkop.ACL{all}, true, []zkop.ACL{creator}},
		{"/config/topics/t", []zkop.ACL{kafka, read}, false, []zkop.ACL{kafka, read}},
		{"/config/users", []zkop.ACL{read}, false, []zkop.ACL{read}},
		{"/consumers", []zkop.ACL{all}, true, []zkop.ACL{all}},
	} {
		if got := znodeACL(tt.path, tt.parent, tt.secure); !slices.Equal(got, tt.want) {
			t.Errorf("%s below %v, secure %v: %v, want %v", tt.path, tt.parent, tt.secure, got, tt.want)
		}
	}
	for path, want := range map[string]string{"/a": "/", "/a/b": "/a", "/a/b/": "/a/b", "/a/seq-": "/a"} {
		if got := parentPath(path); got != want {
			t.Errorf("parent of %s: %s", path, got)
		}
	}
}

// secured starts a ZooKeeper with /open, and /kafka that only the user kafka may change.
func secured(t *testing.T) (*zkserver.Server, zkutil.Ops) {
	t.Helper()
	srv, err := zkserver.Start(t.Context(), zkserver.Config{MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{
		Connect: srv.Addr(), SessionTimeout: time.Minute, ConnectTimeout: time.Minute,
		Auth: []zkutil.Auth{{Scheme: "digest", Credential: []byte("kafka:" + zkPassword)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	ops := zkutil.Any(zk)
	mine := []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth"}}
	for _, p := range []struct {
		path string
		acl  []zkop.ACL
	}{{"/open", nil}, {"/kafka", mine}, {"/kafka/config", append(mine, zkop.ACL{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"})}} {
		if _, err := ops.CreateACL(t.Context(), p.path, []byte("x"), zkop.Persistent, p.acl); err != nil {
			t.Fatal(err)
		}
	}
	return srv, ops
}

// zkClient is a Client with settings.
func zkClient(t *testing.T, addr string, props Properties) *Client {
	t.Helper()
	cfg := Config{Timeout: time.Minute}
	if err := props.Apply(&cfg); err != nil {
		t.Fatal(err)
	}
	var err error
	if cfg.ZooKeeper, err = ParseZooKeeperAddress(addr); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestZooKeeperDigest: with the right user protected znodes are read and changed; without one, or with the wrong one,
// the refusal names the setting.
func TestZooKeeperDigest(t *testing.T) {
	srv, ops := secured(t)
	for _, tt := range []struct{ auth, hint string }{
		{"", "kctl.zookeeper.auth=digest:USER:PASSWORD"},
		{"digest:kafka:wrong", "does not tell a wrong password"},
		{"digest:other:" + zkPassword, "check kctl.zookeeper.auth"},
	} {
		props := Properties{}
		if tt.auth != "" {
			props[zooKeeperAuth] = tt.auth
		}
		c := zkClient(t, srv.Addr(), props)
		_, err := c.Znode(t.Context(), "/kafka")
		wantCause(t, err, "read znode /kafka", tt.hint, Unauthorized)
		_, err = c.PlanZnodeWrite(t.Context(), CreateZnode, "/kafka/x", nil, AnyZnodeVersion)
		if err == nil {
			_, err = c.WriteZnode(t.Context(), &ZnodeWrite{Action: CreateZnode, Path: "/kafka/x"})
		}
		wantCause(t, err, "", tt.hint, Unauthorized)
		if !errors.Is(err, zkop.ErrNoAuth) || strings.Contains(err.Error()+HintOf(err), "Xy-93") {
			t.Errorf("%v, %s", err, HintOf(err))
		}
	}
	c := zkClient(t, srv.Addr(), Properties{zooKeeperAuth: "digest:kafka:" + zkPassword})
	if z, err := c.Znode(t.Context(), "/kafka"); err != nil || string(z.Data) != "x" {
		t.Fatalf("%v, %v", z, err)
	}
	for _, path := range []string{"/kafka/mine", "/kafka/config/users", "/kafka/config/topics", "/open/new"} {
		if _, err := c.WriteZnode(t.Context(), &ZnodeWrite{Action: CreateZnode, Path: path}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		acl, _, err := ops.GetACL(t.Context(), path)
		parent, _, perr := ops.GetACL(t.Context(), parentPath(path))
		if err = errors.Join(err, perr); err != nil || !slices.Equal(acl, parent) {
			t.Errorf("%s has %v, its parent %v, %v", path, acl, parent, err)
		}
	}
	rooted := zkClient(t, srv.Addr()+"/kafka", Properties{zooKeeperAuth: "digest:kafka:" + zkPassword})
	if _, err := rooted.WriteZnode(t.Context(), &ZnodeWrite{Action: CreateZnode, Path: "/config/brokers"}); err != nil {
		t.Fatal(err)
	}
	acl, _, err := ops.GetACL(t.Context(), "/kafka/config/brokers")
	if err != nil || len(acl) != 1 || acl[0].Scheme != "digest" {
		t.Errorf("broker settings, which may hold passwords, have %v, %v", acl, err)
	}
}

// TestZooKeeperSetACL: below an open parent zookeeper.set.acl gives what Kafka gives, in one batch too.
func TestZooKeeperSetACL(t *testing.T) {
	srv, ops := secured(t)
	c := zkClient(t, srv.Addr()+"/open", Properties{zooKeeperAuth: "digest:kafka:" + zkPassword, zooKeeperSetACL: "true"})
	zk, err := c.zookeeper(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	multi := zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{
		{Kind: zkop.Create, Path: "/config"}, {Kind: zkop.Create, Path: "/config/users"}, {Kind: zkop.Create, Path: "/config/topics"},
		{Kind: zkop.Create, Path: "/config/topics/n-", Mode: zkop.PersistentSequential},
	}}
	if r := zk.Do(t.Context(), zkutil.AnySession, multi)[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	if len(multi.Ops[0].ACL) > 0 {
		t.Error("the caller's request was changed")
	}
	for path, want := range map[string]int{"/open/config": 2, "/open/config/users": 1, "/open/config/topics": 2, "/open/config/topics/n-0000000000": 2} {
		acl, _, err := ops.GetACL(t.Context(), path)
		if err != nil || len(acl) != want || acl[0].Scheme != "digest" || want == 2 && acl[1] != (zkop.ACL{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}) {
			t.Errorf("%s: %v, %v", path, acl, err)
		}
	}
	if r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: "/none/x"})[0]; !errors.Is(r.Err, zkop.ErrNoNode) {
		t.Errorf("below nothing: %v", r.Err)
	}
}

// TestZnodesOfKafka: what Kafka makes right below an open root is as protected as /brokers is; what others make is not.
func TestZnodesOfKafka(t *testing.T) {
	srv, ops := secured(t)
	mine := []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth"}, {Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}}
	if _, err := ops.CreateACL(t.Context(), "/open/brokers", nil, zkop.Persistent, mine); err != nil {
		t.Fatal(err)
	}
	c := zkClient(t, srv.Addr()+"/open", nil)
	_, err := c.WriteZnode(t.Context(), &ZnodeWrite{Action: CreateZnode, Path: "/kafka-acl"})
	wantCause(t, err, "the ACL of /brokers, which the new znode takes over, is hidden", zooKeeperAuth, Unauthorized)
	c = zkClient(t, srv.Addr()+"/open", Properties{zooKeeperAuth: "digest:kafka:" + zkPassword})
	for path, protected := range map[string]bool{"/kafka-acl": true, "/kafka-acl-extended": true, "/config": true, "/mine": false} {
		if _, err := c.WriteZnode(t.Context(), &ZnodeWrite{Action: CreateZnode, Path: path}); err != nil {
			t.Fatal(err)
		}
		if acl, _, err := ops.GetACL(t.Context(), "/open"+path); err != nil || openACL(acl) == protected {
			t.Errorf("%s: %v, %v", path, acl, err)
		}
	}
}

// tlsFront is a server's port of TLS: what arrives is handed to a plain one.
func tlsFront(t *testing.T, cfg *tls.Config, to string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.EachConn(t, tls.NewListener(ln, cfg), func(conn net.Conn) {
		if conn.(*tls.Conn).HandshakeContext(t.Context()) != nil {
			return
		}
		behind, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		done := make(chan struct{})
		go func() { // ends with the connections
			defer close(done)
			_, _ = io.Copy(behind, conn)
			_ = behind.Close()
		}()
		_, _ = io.Copy(conn, behind)
		_ = conn.Close()
		_ = behind.Close()
		<-done
	})
	return ln.Addr().String()
}

// TestZooKeeperOverTLS: a client certificate is handed over, and each mistake names its cause and the setting to change.
func TestZooKeeperOverTLS(t *testing.T) {
	srv, _ := secured(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	good, goodPEM := certificate(t, "127.0.0.1", tomorrow)
	named, namedPEM := certificate(t, "zk.example", tomorrow)
	expired, expiredPEM := certificate(t, "127.0.0.1", time.Now().Add(-time.Hour))
	mine, minePEM := certificate(t, "kctl", tomorrow)
	stranger, strangerPEM := certificate(t, "stranger", tomorrow)
	dir := t.TempDir()
	write := func(name string, data ...[]byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, slices.Concat(data...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	store := func(name string, c tls.Certificate, chain []byte) string {
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		return write(name, chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(minePEM)
	front := func(c tls.Certificate, change func(*tls.Config)) string {
		cfg := &tls.Config{Certificates: []tls.Certificate{c}}
		if change != nil {
			change(cfg)
		}
		return tlsFront(t, cfg, srv.Addr())
	}
	mutual := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, clients }
	trust := func(more ...string) Properties {
		p := Properties{zooKeeperTLSOn: "true", "zookeeper.ssl.truststore.location": write("good.pem", goodPEM)}
		for i := 0; i < len(more); i += 2 {
			p["zookeeper.ssl."+more[i]] = more[i+1]
		}
		return p
	}
	own, other := store("mine.pem", mine, minePEM), store("stranger.pem", stranger, strangerPEM)
	for _, tt := range []struct {
		name, addr string
		props      Properties
		text, hint string // empty: it works
		kind       Kind
	}{
		{"tls", front(good, nil), trust(), "", "", 0},
		{"client certificate", front(good, mutual), trust("keystore.location", own), "", "", 0},
		{"client certificate, TLS 1.2", front(good, mutual), trust("keystore.location", own, "protocol", "TLSv1.2"), "", "", 0},
		{"one server of two", nobodyThere + "," + front(good, mutual), trust("keystore.location", own), "", "", 0},
		{"name not checked", front(named, nil), trust("truststore.location", write("named.pem", namedPEM), "endpoint.identification.algorithm", ""), "", "", 0},
		{"plain client, port of TLS", front(good, nil), nil, "the port speaks TLS, the client does not", "zookeeper.ssl.client.enable=true", Unreachable},
		{"plain client, port of TLS with client certificates", front(good, mutual), nil, "the port speaks TLS, the client does not", "zookeeper.ssl.client.enable=true", Unreachable},
		{"TLS client, plain port", srv.Addr(), trust(), "the port does not speak TLS, the client does", "zookeeper.ssl.client.enable=false", Unreachable},
		{"unknown authority", front(good, nil), Properties{zooKeeperTLSOn: "true"}, "signed by an unknown authority", "zookeeper.ssl.truststore.location", Unreachable},
		{"wrong name", front(named, nil), trust("truststore.location", write("named.pem", namedPEM)), "ZooKeeper's certificate is for zk.example, not for 127.0.0.1", "zookeeper.ssl.endpoint.identification.algorithm", Unreachable},
		{"expired", front(expired, nil), trust("truststore.location", write("expired.pem", expiredPEM)), "ZooKeeper's certificate has expired", "renew ZooKeeper's certificate", Unreachable},
		{"no client certificate", front(good, mutual), trust(), "asks for a client certificate and got none", "zookeeper.ssl.keystore.location", Unauthorized},
		{"no client certificate, TLS 1.2", front(good, mutual), trust("protocol", "TLSv1.2"), "asks for a client certificate and got none", "zookeeper.ssl.keystore.location", Unauthorized},
		{"a stranger's certificate", front(good, mutual), trust("keystore.location", other), "refuses the client's certificate", "zookeeper.ssl.keystore.location", Unauthorized},
		{"no version in common", front(good, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }), trust("protocol", "TLSv1.2"), "none of the versions of TLS", "zookeeper.ssl.enabled.protocols", Unreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := zkClient(t, tt.addr, tt.props)
			z, err := c.Znode(t.Context(), "/open")
			switch {
			case tt.text != "":
				wantCause(t, err, tt.text, tt.hint, tt.kind)
			case err != nil || string(z.Data) != "x":
				t.Errorf("%v, %v", z, err)
			}
		})
	}
}

// TestShutOut: what else was asked of a server that demands a login was not done either.
func TestShutOut(t *testing.T) {
	out := []zkop.Response{{Err: zkop.ErrOutcomeUnknown}, {Err: zkutil.ErrAuthFailed}, {Err: zkop.ErrNoNode}}
	if shutOut(out); !errors.Is(out[0].Err, zkutil.ErrAuthFailed) || !errors.Is(out[2].Err, zkop.ErrNoNode) || KindOf(wrap(out[0].Err, "read")) != Unauthorized {
		t.Errorf("%v", out)
	}
	out = []zkop.Response{{Err: zkop.ErrOutcomeUnknown}, {}}
	if shutOut(out); !errors.Is(out[0].Err, zkop.ErrOutcomeUnknown) {
		t.Errorf("%v", out)
	}
}
