package admin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// diagnoseTime bounds the search for the cause of a failed first contact. What stands at the address mostly answers at
// once; all of the time is used for one that says nothing, or for a machine that is busy. A longer timeout gives more.
const diagnoseTime = 2 * time.Second

// leastDiagnoseTime is left for that search when the operation has used all of its own time, as it does where ZooKeeper
// was waited for first.
const leastDiagnoseTime = 500 * time.Millisecond

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
	ctx, cancel := c.toDiagnose(ctx)
	defer cancel()
	if c.cfg.TLS != nil {
		return c.causeTLS(ctx, addr, errs)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return cause{text: short(err)}
	}
	_ = conn.Close()
	switch spokenBy(ctx, addr) {
	case zookeeperSpoken:
		return cause{
			text: "this is a ZooKeeper server, not a broker", kind: Unreachable,
			hint: fmt.Sprintf("give ZooKeeper with -z %s, and a broker (usually port 9092) with -b", addr),
		}
	case kafkaSpoken:
		return causeOfKafka(addr, errs, c.cfg.SASL != nil)
	case tlsSpoken:
		return cause{
			text: "the listener speaks TLS, the client does not", kind: Unreachable,
			hint: "set security.protocol=" + c.protocolWith("SSL") + ", with -X or --command-config",
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

// toDiagnose gives the search its time: that of ctx as far as it goes, and a cancellation of ctx ends it.
func (c *Client) toDiagnose(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := max(diagnoseTime, c.cfg.Timeout/5)
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(deadline), leastDiagnoseTime))
	}
	search, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return search, func() { stop(); cancel() }
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
	for _, err := range errs {
		if !errors.Is(err, syscall.ECONNREFUSED) { // which is another broker's: this one takes connections
			return cause{text: short(err)}
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
			return cause{text: brokersCertificate + " is signed by an unknown authority", hint: "set ssl.truststore.location to the authority's certificate (PEM, JKS or PKCS12)", kind: Unreachable}
		case errors.As(err, &host):
			return causeOfName(brokersCertificate, host)
		case errors.As(err, &invalid):
			return causeOfCertificate(brokersCertificate, invalid)
		}
		if cs, ok := causeOfAlert(err, len(c.cfg.TLS.Certificates) > 0 || c.cfg.TLS.GetClientCertificate != nil); ok {
			return cs
		}
	}
	if c.cfg.SASL == nil && slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, io.EOF) }) && c.kafkaOverTLS(ctx, addr) {
		return cause{
			text: "the broker closes the connection: its listener asks for a login", kind: Unauthorized,
			hint: "set security.protocol=SASL_SSL, sasl.mechanism and sasl.jaas.config, with -X or --command-config",
		}
	}
	if spokenBy(ctx, addr) == kafkaSpoken {
		return cause{
			text: "the listener does not speak TLS, the client does", kind: Unreachable,
			hint: "set security.protocol=" + c.protocolWith("PLAINTEXT") + ", or use the port of the TLS listener",
		}
	}
	return cause{text: short(errs[0])}
}
