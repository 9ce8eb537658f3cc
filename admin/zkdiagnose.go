package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"kctl/zkutil"
)

// zkDialer makes the connections to ZooKeeper, with TLS where it is configured; zkutil.Dialer.
type zkDialer struct{ tls *tls.Config }

// DialContext connects within ctx, the TLS handshake included.
func (d zkDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	var plain net.Dialer
	if d.tls == nil {
		return plain.DialContext(ctx, network, addr)
	}
	cfg := d.tls.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	conn, err := dialTLS(ctx, &plain, network, addr, cfg)
	if op, ok := errors.AsType[*net.OpError](err); err != nil && (!ok || op.Op != "dial") {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return conn, err
}

// alertTime is how long a server that has taken the handshake may need to object to the client's certificate: with TLS 1.3
// it looks at it after the client has finished.
const alertTime = time.Second

// greetZooKeeper connects as a client does and waits for an objection to its certificate.
func (c *Client) greetZooKeeper(ctx context.Context, addr string) error {
	conn, err := zkDialer{c.cfg.ZooKeeperTLS}.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.SetReadDeadline(time.Now().Add(alertTime)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1)) // a server says nothing before it is asked
	return err
}

// refusedByZooKeeper names the cause of a connection that did not come about, and the setting to change; nil when nothing
// better is known than err. caller's end means that nobody waits for a diagnosis.
func (c *Client) refusedByZooKeeper(caller context.Context, err error) *Error {
	if errors.Is(err, zkutil.ErrKafkaBroker) {
		return c.zkError("", causeKafkaThere)
	}
	if errors.Is(err, zkutil.ErrAuthFailed) {
		return &Error{Kind: Unauthorized, Msg: "ZooKeeper " + c.cfg.ZooKeeper.String(), Err: err, Hint: zkLoginHint}
	}
	if cs, ok := causeOfZooKeeperTLS(err, c.ownCertificate()); ok {
		return c.zkError("", cs)
	}
	if caller.Err() != nil || !errors.Is(err, zkutil.ErrUnreachable) && !errors.Is(err, zkutil.ErrNotZooKeeper) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), diagnoseTime)
	defer cancel()
	causes := make([]cause, len(c.cfg.ZooKeeper.Servers)) // a slot for each server: no two goroutines share one
	var wg sync.WaitGroup
	for i, addr := range c.cfg.ZooKeeper.Servers {
		wg.Go(func() { causes[i] = c.causeOfServer(ctx, addr) })
	}
	wg.Wait()
	for i, cs := range causes {
		if cs.text != "" {
			return c.zkError(c.cfg.ZooKeeper.Servers[i], cs)
		}
	}
	return nil
}

func (c *Client) ownCertificate() bool {
	return c.cfg.ZooKeeperTLS != nil && c.cfg.ZooKeeperTLS.GetClientCertificate != nil
}

// zkError is the error of a cause; server is named where there are several.
func (c *Client) zkError(server string, cs cause) *Error {
	msg := "ZooKeeper " + c.cfg.ZooKeeper.String() + ": "
	if server != "" && len(c.cfg.ZooKeeper.Servers) > 1 {
		msg += server + ": "
	}
	return &Error{Kind: cs.kind, Msg: msg + cs.text, Hint: cs.hint}
}

var causeKafkaThere = cause{
	text: "this is a Kafka broker, not a ZooKeeper server", kind: Unreachable,
	hint: "this is a broker's address: give it with -b, and ZooKeeper's (usually port 2181) with -z",
}

// causeOfServer looks at one server that did not answer: what does it speak, and what does it object to? Empty when it
// cannot tell.
func (c *Client) causeOfServer(ctx context.Context, addr string) cause {
	if c.cfg.ZooKeeperTLS != nil {
		if cs, ok := causeOfZooKeeperTLS(c.greetZooKeeper(ctx, addr), c.ownCertificate()); ok {
			return cs
		}
	}
	switch spokenBy(ctx, addr) {
	case kafkaSpoken:
		return causeKafkaThere
	case tlsSpoken:
		if c.cfg.ZooKeeperTLS == nil {
			return cause{
				text: "the port speaks TLS, the client does not", kind: Unreachable,
				hint: "set " + zooKeeperTLSOn + "=true, zookeeper.ssl.truststore.location and mostly zookeeper.ssl.keystore.location, with -X or --command-config; or use the plain port (clientPort)",
			}
		}
	case zookeeperSpoken:
		if c.cfg.ZooKeeperTLS != nil {
			return cause{
				text: "the port does not speak TLS, the client does", kind: Unreachable,
				hint: "use the port of TLS (secureClientPort, often 2182), or set " + zooKeeperTLSOn + "=false",
			}
		}
	case nothingSpoken:
	}
	return cause{}
}

// causeOfZooKeeperTLS tells why a TLS handshake with ZooKeeper failed. ours says whether a certificate was handed over.
func causeOfZooKeeperTLS(err error, ours bool) (cause, bool) {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	cs := cause{kind: Unreachable}
	switch {
	case errors.As(err, &unknown):
		cs.text, cs.hint = zooKeeperCertificate+" is signed by an unknown authority", "set zookeeper.ssl.truststore.location (and its password) to the authority's certificate"
	case errors.As(err, &host):
		cs = causeOfName(zooKeeperCertificate, host)
		cs.hint = "use the name in the certificate (-z), or set zookeeper.ssl.endpoint.identification.algorithm= (empty)"
	case errors.As(err, &invalid):
		cs = causeOfCertificate(zooKeeperCertificate, invalid)
		cs.hint = "renew ZooKeeper's certificate (ssl.keyStore.location in zoo.cfg), or set this machine's clock"
	default:
		return causeOfZooKeeperAlert(err, ours)
	}
	return cs, true
}

func causeOfZooKeeperAlert(err error, ours bool) (cause, bool) {
	code, ok := alertOfPeer(err)
	const keystore = "set zookeeper.ssl.keystore.location (and its password) to a certificate that ZooKeeper trusts"
	switch {
	case !ok:
	case code == alertProtocolVersion:
		return cause{
			text: "ZooKeeper speaks none of the versions of TLS that the client does", kind: Unreachable,
			hint: "check zookeeper.ssl.enabled.protocols and zookeeper.ssl.protocol, and ssl.enabledProtocols in zoo.cfg",
		}, true
	case code == alertCertRequired, !ours && code >= alertHandshakeFailure && code <= alertUnknownCA:
		return cause{text: "ZooKeeper asks for a client certificate and got none", kind: Unauthorized, hint: keystore}, true
	case ours && code >= alertBadCertificate && code <= alertUnknownCA:
		return cause{text: "ZooKeeper refuses the client's certificate: " + alertText(err), kind: Unauthorized, hint: keystore}, true
	case code == alertHandshakeFailure:
		return cause{
			text: "ZooKeeper and the client have no cipher suite in common", kind: Unreachable,
			hint: "check zookeeper.ssl.cipher.suites, and ssl.ciphersuites in zoo.cfg",
		}, true
	}
	return cause{}, false
}

// alertText is what the other side said, without the connection around it.
func alertText(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
