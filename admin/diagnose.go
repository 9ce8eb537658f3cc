package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"crypto/x509"
)

// diagnoseTime bounds the search for the cause of a failed first contact.
const diagnoseTime = time.Second

// diagnose turns the failures of all bootstrap servers into one error that names the cause and the setting
// to change. A failure without a plain cause is looked into with a connection of its own.
func (c *Client) diagnose(ctx context.Context, errs []error) error {
	for _, err := range errs {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return wrap(ctx.Err(), "ask the cluster")
		}
	}
	seeds, err := c.seedAddrs(ctx)
	if err != nil {
		return err
	}
	for _, err := range errs {
		if e := c.loginRefused(ctx, seeds, err); e != nil {
			return e
		}
	}
	causes := make([]cause, len(seeds))
	var wg sync.WaitGroup
	for i, addr := range seeds {
		wg.Go(func() { causes[i] = c.causeOf(ctx, addr, errs) })
	}
	wg.Wait()
	e := &Error{Kind: Unreachable}
	var parts []string
	for i, cs := range causes {
		parts = append(parts, seeds[i]+": "+cs.text)
		if cs.hint != "" {
			e.Hint, e.Kind = cs.hint, cs.kind
		}
	}
	e.Msg = "no broker answers: " + strings.Join(parts, "; ")
	if e.Hint == "" {
		e.Hint = "check the address (-b, KCTL_BOOTSTRAP_SERVER or the context) and that the brokers run"
	}
	return e
}

type cause struct {
	text, hint string
	kind       Kind
}

// causeOf looks at one address: is anything there, and what does it speak?
func (c *Client) causeOf(ctx context.Context, addr string, errs []error) cause {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	if c.cfg.TLS != nil {
		return c.causeTLS(ctx, addr, errs)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return cause{text: short(err)}
	}
	_ = conn.Close()
	if isZooKeeper(ctx, addr) {
		return cause{
			text: "this is a ZooKeeper server, not a broker", kind: Unreachable,
			hint: fmt.Sprintf("give ZooKeeper with -z %s, and a broker (usually port 9092) with -b", addr),
		}
	}
	if speaksKafka(ctx, addr) {
		return causeOfKafka(addr, errs, c.cfg.SASL != nil)
	}
	if speaksTLS(ctx, addr) {
		return cause{
			text: "the listener speaks TLS, the client does not", kind: Unreachable,
			hint: "set security.protocol=SSL (or SASL_SSL), with -X or --command-config",
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }) {
		return cause{
			text: "it takes connections but does not answer in time", kind: Unreachable,
			hint: "the broker is overloaded, starting or hangs; --timeout gives it more time",
		}
	}
	return cause{
		text: "something listens there but does not answer as a Kafka broker does", kind: Unreachable,
		hint: "check the port: a broker's listener is meant (brokers before Kafka 0.10 are not understood)",
	}
}

func causeOfKafka(addr string, errs []error, loggedIn bool) cause {
	for _, err := range errs {
		if errors.Is(err, io.EOF) && !loggedIn {
			return cause{
				text: "the broker closes the connection: its listener asks for a login", kind: Unauthorized,
				hint: "set security.protocol=SASL_PLAINTEXT (or SASL_SSL), sasl.mechanism and sasl.jaas.config, with -X or --command-config",
			}
		}
	}
	return cause{text: short(errs[0])}
}

func (c *Client) causeTLS(ctx context.Context, addr string, errs []error) cause {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return cause{text: short(err)}
	}
	_ = conn.Close()
	for _, err := range errs {
		var unknown x509.UnknownAuthorityError
		var host x509.HostnameError
		var invalid x509.CertificateInvalidError
		switch {
		case errors.As(err, &unknown):
			return cause{text: "the broker's certificate is signed by an unknown authority", hint: "set ssl.truststore.location to the authority's certificate (PEM)", kind: Unreachable}
		case errors.As(err, &host):
			return cause{text: host.Error(), hint: "use the name in the certificate, or set ssl.endpoint.identification.algorithm= (empty)", kind: Unreachable}
		case errors.As(err, &invalid):
			return causeOfCertificate(invalid)
		}
		if cs, ok := causeOfAlert(err, len(c.cfg.TLS.Certificates) > 0 || c.cfg.TLS.GetClientCertificate != nil); ok {
			return cs
		}
	}
	if speaksKafka(ctx, addr) {
		return cause{
			text: "the listener does not speak TLS, the client does", kind: Unreachable,
			hint: "set security.protocol=PLAINTEXT (or SASL_PLAINTEXT), or use the port of the TLS listener",
		}
	}
	return cause{text: short(errs[0])}
}

// exchange sends bytes and returns the first part of the answer, bounded in size and time.
func exchange(ctx context.Context, addr string, send []byte) []byte {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if d, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(d)
	}
	if _, err := conn.Write(send); err != nil {
		return nil
	}
	buf := make([]byte, 256)
	n, _ := io.ReadAtLeast(conn, buf, 8)
	return buf[:n]
}

// isZooKeeper sends a four-letter word: a server answers it, or says that it is not in its whitelist.
func isZooKeeper(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime/3)
	defer cancel()
	a := exchange(ctx, addr, []byte("srvr"))
	return bytes.HasPrefix(a, []byte("Zookeeper version")) || bytes.Contains(a, []byte("srvr is not executed")) ||
		bytes.HasPrefix(a, []byte("This ZooKeeper instance"))
}

// speaksKafka sends ApiVersions v0 and looks for its correlation id in the answer.
func speaksKafka(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime/3)
	defer cancel()
	const correlation = 0x6b63746c
	req := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff}
	binary.BigEndian.PutUint32(req[8:], correlation)
	a := exchange(ctx, addr, req)
	return len(a) >= 8 && binary.BigEndian.Uint32(a[4:]) == correlation
}

func speaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime/3)
	defer cancel()
	// Only whether a handshake starts is of interest; nothing is sent over this connection.
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", addr)
	if err != nil {
		_, isAlert := errors.AsType[tls.AlertError](err)
		var op *net.OpError
		return isAlert || errors.As(err, &op) && op.Op == "remote error"
	}
	_ = conn.Close()
	return true
}
