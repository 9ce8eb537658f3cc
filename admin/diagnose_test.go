package admin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/kafkatest"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// wantCause checks an error's words, hint and kind.
func wantCause(t *testing.T, err error, text, hint string, kind Kind) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(HintOf(err), hint) || KindOf(err) != kind {
		t.Errorf("got %v\nhint %q kind %d\nwant %q, hint %q, kind %d", err, HintOf(err), KindOf(err), text, hint, kind)
	}
}

func emptyMetadata(kmsg.Request) kmsg.Response { return kmsg.NewPtrMetadataResponse() }

// TestLoginMistakes: a wrong password, a mechanism that is not offered, and a login where none is asked for.
func TestLoginMistakes(t *testing.T) {
	handshake := func(code int16, offered ...string) func(kmsg.Request) kmsg.Response {
		return func(kmsg.Request) kmsg.Response {
			r := kmsg.NewPtrSASLHandshakeResponse()
			r.ErrorCode, r.SupportedMechanisms = code, offered
			return r
		}
	}
	refuse := func(kmsg.Request) kmsg.Response {
		r := kmsg.NewPtrSASLAuthenticateResponse()
		msg := "Authentication failed during authentication due to invalid credentials"
		r.ErrorCode, r.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &msg
		return r
	}
	for _, tt := range []struct {
		name, mechanism string
		handshake       func(kmsg.Request) kmsg.Response
		text, hint      string
	}{
		{"wrong SCRAM password", "SCRAM-SHA-512", handshake(0, "SCRAM-SHA-512"), "refused the login (SCRAM-SHA-512)", "that the user exists for SCRAM-SHA-512 (kctl users list)"},
		{"wrong PLAIN password", "PLAIN", handshake(0, "PLAIN"), "refused the login (PLAIN)", "sasl.jaas.config on the brokers has the user (user_NAME)"},
		{"mechanism not offered", "SCRAM-SHA-256", handshake(33, "PLAIN", "SCRAM-SHA-512"), "does not offer the login mechanism SCRAM-SHA-256: it offers PLAIN, SCRAM-SHA-512", "sasl.mechanism=PLAIN"},
		{"no login there", "PLAIN", handshake(34), "does not take a login", "security.protocol=PLAINTEXT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
				kmsg.Metadata: emptyMetadata, kmsg.SASLHandshake: tt.handshake, kmsg.SASLAuthenticate: refuse,
			})
			cfg := Config{Timeout: time.Minute}
			props := Properties{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": tt.mechanism, "sasl.username": "alice", "sasl.password": "s3cret"}
			if err := props.Apply(&cfg); err != nil {
				t.Fatal(err)
			}
			_, err := openFake(t, cfg, b).Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
			wantCause(t, err, tt.text, tt.hint, Unauthorized)
			if err != nil && strings.Contains(err.Error()+HintOf(err), "s3cret") {
				t.Error("the password is printed")
			}
		})
	}
}

// TestTLSMistakes: what the broker refuses in the handshake, and a certificate that does not hold now.
func TestTLSMistakes(t *testing.T) {
	server, serverPEM := certificate(t, "127.0.0.1", time.Now().Add(24*time.Hour))
	early, earlyPEM := certificate(t, "127.0.0.1", time.Now().Add(96*time.Hour)) // holds for the 48 h before that
	_, otherPEM := certificate(t, "other", time.Now().Add(24*time.Hour))
	others := x509.NewCertPool()
	others.AppendCertsFromPEM(otherPEM)
	mine, minePEM := certificate(t, "client", time.Now().Add(24*time.Hour))
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := x509.MarshalPKCS8PrivateKey(mine.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	own := write("own.pem", slices.Concat(minePEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	trust := write("ca.pem", serverPEM)
	for _, tt := range []struct {
		name   string
		server *tls.Config
		props  Properties
		text   string
		hint   string
		kind   Kind
	}{
		{"no client certificate", &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAnyClientCert}, Properties{"ssl.truststore.location": trust},
			"asks for a client certificate and got none", "ssl.keystore.location", Unauthorized},
		{"no client certificate, TLS 1.2", &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12},
			Properties{"ssl.truststore.location": trust}, "asks for a client certificate and got none", "ssl.keystore.location", Unauthorized},
		{"client certificate of a stranger", &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: others},
			Properties{"ssl.truststore.location": trust, "ssl.keystore.location": own}, "refuses the client's certificate", "that the broker trusts", Unauthorized},
		{"old TLS", &tls.Config{Certificates: []tls.Certificate{server}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
			Properties{"ssl.truststore.location": trust}, "no version of TLS", "ssl.enabled.protocols", Unreachable},
		{"not yet", &tls.Config{Certificates: []tls.Certificate{early}}, Properties{"ssl.truststore.location": write("early.pem", earlyPEM)},
			"does not hold yet", "clock", Unreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			b := startFake(t, tls.NewListener(ln, tt.server), map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.Metadata: emptyMetadata})
			cfg := Config{Timeout: time.Minute}
			tt.props["security.protocol"] = "SSL"
			if err := tt.props.Apply(&cfg); err != nil {
				t.Fatal(err)
			}
			_, err = openFake(t, cfg, b).Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
			wantCause(t, err, tt.text, tt.hint, tt.kind)
		})
	}
}

// nobodyThere is an address at which nobody listens, whatever else runs on the machine: port 1 is given to no one who asks for
// a free one.
const nobodyThere = "127.0.0.1:1"

// endingContext ends as if its deadline had passed, when the test says so.
type endingContext struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func newEndingContext(t *testing.T) *endingContext {
	return &endingContext{Context: t.Context(), done: make(chan struct{})}
}

func (c *endingContext) end()                  { c.once.Do(func() { close(c.done) }) }
func (c *endingContext) Done() <-chan struct{} { return c.done }

func (c *endingContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return c.Context.Err()
	}
}

// TestAdvertisedAddress: the bootstrap server answers, but the address that it advertises for the controller is
// one that nobody serves. Rows of a single broker name the address as well. Whatever is being done when the time ends, the
// error is the one that was met before, and says that nothing was changed.
func TestAdvertisedAddress(t *testing.T) {
	for _, where := range []string{"metadata", "dial", "first dial"} {
		t.Run("the time ends in "+where, func(t *testing.T) { testAdvertisedAddress(t, where) })
	}
}

func testAdvertisedAddress(t *testing.T, where string) {
	nobody := &fakeBroker{addr: nobodyThere}
	f := newFakeCluster(t, 1, 1)
	f.imbalanced = func(int, int) bool { return true }
	ctx := newEndingContext(t)
	var refused atomic.Bool
	meta := f.answer[kmsg.Metadata]
	f.answer[kmsg.Metadata] = func(r kmsg.Request) kmsg.Response {
		if where == "metadata" && refused.Load() {
			ctx.end()
		}
		m := meta(r).(*kmsg.MetadataResponse)
		m.Brokers, m.ControllerID = []kmsg.MetadataResponseBroker{f.node(1), nobody.node(2)}, 2
		return m
	}
	c := openFake(t, Config{}, f.fakeBroker)
	planned, s, via, err := c.PlanElections(ctx, nil, ElectOptions{})
	if err != nil || len(plan.Moves(planned)) != 1 {
		t.Fatalf("%v %v", planned, err)
	}
	dial := func(dctx context.Context, network, addr string) (net.Conn, error) {
		if where == "first dial" || where == "dial" && refused.Load() { // as one who is asked and does not answer
			ctx.end()
			<-dctx.Done()
			return nil, &net.OpError{Op: "dial", Net: network, Err: dctx.Err()}
		}
		defer refused.Store(true)
		return (&net.Dialer{}).DialContext(dctx, network, addr)
	}
	if c.conns[nobody.addr], err = kgo.NewClient(append(c.options([]string{nobody.addr}), kgo.Dialer(dial))...); err != nil {
		t.Fatal(err)
	}
	why := "connection refused"
	if where == "first dial" {
		why = "no answer in time"
	}
	_, err = c.Elect(ctx, planned, via, ElectOptions{})
	wantCause(t, err, "advertised address "+nobody.addr+": "+why, "advertised.listeners", Unreachable)
	if s.Brokers[1].ID != 2 {
		t.Errorf("%+v", s.Brokers)
	}
	if where == "metadata" {
		_, err = c.probe(t.Context(), 2)
		if want := "its advertised address " + nobody.addr + ": connection refused"; short(err) != want {
			t.Errorf("in a row: %q, want %q", short(err), want)
		}
	}
}

// TestVersionTooOld: a request that the broker does not know is refused before it is sent, with the version
// of Kafka that has it.
func TestVersionTooOld(t *testing.T) {
	b := startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.Metadata: emptyMetadata})
	c := openFake(t, Config{}, b)
	_, err := c.askAddr(t.Context(), b.addr, kmsg.NewPtrDescribeUserSCRAMCredentialsRequest())
	wantCause(t, err, "too old for DescribeUserSCRAMCredentials: Apache Kafka has it from version 2.7 on", "upgrade", Failed)
	c.learn(nil)
	c.mu.Lock()
	c.addrs[cluster.BrokerID(1)] = b.addr
	c.mu.Unlock()
	_, err = c.askBroker(t.Context(), 1, kmsg.NewPtrDescribeProducersRequest())
	wantCause(t, err, "from version 2.8 on", "upgrade", Failed)
}

// TestNotKafka: an HTTP server, and one that closes at once, are not brokers.
func TestNotKafka(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.EachConn(t, ln, func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	c := openFake(t, Config{}, &fakeBroker{addr: ln.Addr().String()})
	_, err = c.Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
	wantCause(t, err, "does not answer as a Kafka broker", "check the port", Unreachable)
}

// identityFor makes a self-signed certificate with a key of its own, for stores.
func identityFor(t *testing.T, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
