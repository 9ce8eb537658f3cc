package zkutil

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kctl/zkutil/zkop"
)

func errOutcome() error { return zkop.ErrOutcomeUnknown }

// serve runs handle for every connection until the test ends.
func serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, handle)
}

func serveOn(t *testing.T, l net.Listener, handle func(net.Conn)) string {
	var work sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			work.Go(func() {
				defer func() { _ = c.Close() }()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return l.Addr().String()
}

func deadAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// kafkaBroker closes the connection at a ZooKeeper session request and answers ApiVersions.
func kafkaBroker(c net.Conn) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return
	}
	if head[4] != 0 || head[5] != 18 {
		return
	}
	rest := make([]byte, int(head[3])-4)
	if _, err := io.ReadFull(c, rest); err != nil {
		return
	}
	reply := append([]byte{0, 0, 0, 10}, rest[:4]...)
	_, _ = c.Write(append(reply, 0, 0, 0, 0, 0, 0))
}

func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func web(c net.Conn) {
	_, _ = c.Read(make([]byte, 64))
	_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
}

func TestConnectFailuresSayWhatIsThere(t *testing.T) {
	dead := deadAddr(t)
	cases := []struct {
		name, addr string
		is         error
		text       string
	}{
		{"dead", dead, ErrUnreachable, dead + ": connect: connection refused"},
		{"kafka", serve(t, kafkaBroker), ErrKafkaBroker, "not a ZooKeeper server but a Kafka broker"},
		{"web", serve(t, web), ErrNotZooKeeper, `"HTTP"`},
		{"silent", serve(t, silent), ErrUnreachable, "did not answer the session request within"},
		{"closing", serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 4)) }), ErrUnreachable, "closed the connection during the session handshake"},
		{"name", "no-such-host.invalid:2181", ErrUnreachable, "no-such-host.invalid"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := Connect(ctx, Config{Connect: c.addr, ConnectTimeout: 2 * time.Second})
			if !errors.Is(err, ErrUnreachable) || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), c.addr) {
				t.Errorf("error %v does not name %s", err, c.addr)
			}
			if ctx.Err() != nil {
				t.Error("it did not end by its own limit")
			}
		})
	}
}

func TestConnectNamesEveryServer(t *testing.T) {
	a, b := deadAddr(t), deadAddr(t)
	_, err := Connect(t.Context(), Config{Connect: a + "," + b})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Errorf("error %v", err)
	}
}

func TestConnectKeepsTryingUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dials := refusingDialer{dialled: make(chan struct{}, 100)}
	go func() {
		for range 5 {
			<-dials.dialled
		}
		cancel()
	}()
	_, err := Connect(ctx, Config{Connect: "127.0.0.1:1", KeepTrying: true, Dialer: dials})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
	if ctx.Err() == nil {
		t.Error("it gave up before the context ended")
	}
}

// refusingDialer refuses, and says that it was asked.
type refusingDialer struct{ dialled chan struct{} }

func (d refusingDialer) DialContext(context.Context, string, string) (net.Conn, error) {
	select {
	case d.dialled <- struct{}{}:
	default:
	}
	return nil, syscall.ECONNREFUSED
}

// TestDialThatEndsBehindClose: a connection that is made when Close has already looked for one to close is closed by the
// dialer, so that Close does not wait for a server that says nothing.
func TestDialThatEndsBehindClose(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	c := &conn{servers: ConnectString{Servers: []string{"silent:2181"}}, failures: map[string]error{}, roundDone: make(chan struct{})}
	c.life, c.endLife = context.WithCancel(t.Context())
	c.cfg = Config{Dialer: dialFunc(func() (net.Conn, error) {
		c.endLife()
		c.closeWire()
		return near, nil
	})}.withDefaults()
	c.sessions = newSessions(c.cfg.Logger)
	if nc, err := c.dial("tcp", "silent:2181", 0); nc != nil || !errors.Is(err, zkop.ErrClosed) {
		t.Errorf("dial gave %v, %v", nc, err)
	}
	_ = near.SetWriteDeadline(time.Now()) // nobody reads; refused when it is closed
	if _, err := near.Write([]byte{0}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is still open: %v", err)
	}
}

// dialFunc makes connections without looking at its context.
type dialFunc func() (net.Conn, error)

func (d dialFunc) DialContext(context.Context, string, string) (net.Conn, error) { return d() }

func TestConnectRefusesBadStrings(t *testing.T) {
	_, err := Connect(t.Context(), Config{Connect: "h1:2181/kc,h2:2181/kc"})
	if !errors.Is(err, ErrConnectString) {
		t.Errorf("error %v", err)
	}
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "zk"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestTLS opens a session through TLS with the smallest server that grants one.
func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	addr := serveOn(t, l, func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, 44)); err == nil {
			_, _ = c.Write(sessionReply(7))
			silent(c)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Connect(ctx, Config{Connect: addr, TLS: &tls.Config{RootCAs: pool}})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Session(); s.ID != 7 || s.State != Connected || s.Epoch != 1 {
		t.Errorf("session %+v", s)
	}
	_ = c.Close()
	_, err = Connect(ctx, Config{Connect: addr, TLS: &tls.Config{}})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "TLS handshake") {
		t.Errorf("error of an unknown authority: %v", err)
	}
	_, err = Connect(ctx, Config{Connect: addr, ConnectTimeout: time.Second})
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("plain text on a TLS port: %v", err)
	}
}

func TestCloseDuringConnectIsQuick(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addr := serve(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 44)) // the session request is here: Connect waits for the answer
		cancel()
		silent(c)
	})
	start := time.Now()
	_, err := Connect(ctx, Config{Connect: addr, ConnectTimeout: 5 * time.Minute})
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "has not answered the session request") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("it took %s", d)
	}
}
