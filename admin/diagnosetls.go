package admin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"
)

// The certificates that a diagnosis speaks of.
const (
	brokersCertificate   = "the broker's certificate"
	zooKeeperCertificate = "ZooKeeper's certificate"
)

// causeOfCertificate tells an expired certificate from one that begins in the future and from others.
func causeOfCertificate(whose string, invalid x509.CertificateInvalidError) cause {
	cs := cause{text: whose + " is not valid: " + invalid.Error(), kind: Unreachable, hint: "renew the broker's certificate"}
	if invalid.Reason == x509.Expired && invalid.Cert != nil {
		from, until := invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339)
		cs.text = fmt.Sprintf("%s has expired or does not hold yet: it holds from %s until %s", whose, from, until)
		cs.hint = "renew the broker's certificate (ssl.keystore.location of the broker), or set this machine's clock"
	}
	return cs
}

// causeOfName names what a certificate is for.
func causeOfName(whose string, host x509.HostnameError) cause {
	cs := cause{text: host.Error(), kind: Unreachable, hint: "use the name in the certificate, or set ssl.endpoint.identification.algorithm= (empty)"}
	if host.Certificate == nil {
		return cs
	}
	names := slices.Clone(host.Certificate.DNSNames)
	for _, ip := range host.Certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && host.Certificate.Subject.CommonName != "" {
		names = []string{host.Certificate.Subject.CommonName + " (its common name, which counts for host names only)"}
	}
	if len(names) > 0 {
		cs.text = fmt.Sprintf("%s is for %s, not for %s", whose, strings.Join(names, ", "), host.Host)
	}
	return cs
}

// protocolWith names the security.protocol over a transport, SSL or PLAINTEXT: where a login is configured the one with it.
func (c *Client) protocolWith(transport string) string {
	if c.cfg.SASL != nil {
		return "SASL_" + transport
	}
	return transport + " (or SASL_" + transport + ")"
}

// certificateRefused reports whether err is about the broker's certificate: no question to the broker gets further.
func certificateRefused(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := alertOfPeer(err)
	return ok || alert
}

// The alerts of TLS (RFC 8446, section 6) that have a plain cause.
const (
	alertHandshakeFailure = 40
	alertBadCertificate   = 42
	alertUnknownCA        = 48
	alertProtocolVersion  = 70
	alertCertRequired     = 116
)

// causeOfAlert explains why the broker ended the handshake. ours says whether a certificate was handed over.
func causeOfAlert(err error, ours bool) (cause, bool) {
	code, ok := alertOfPeer(err)
	if !ok {
		return cause{}, false
	}
	const keystore = "set ssl.keystore.location (and its password) to a certificate that the broker trusts"
	switch {
	case code == alertProtocolVersion:
		return cause{
			text: "the broker speaks no version of TLS that the client does (1.2 and 1.3)", kind: Unreachable,
			hint: "set ssl.enabled.protocols=TLSv1.2,TLSv1.3 on the broker",
		}, true
	case code == alertCertRequired, !ours && code >= alertHandshakeFailure && code <= alertUnknownCA:
		return cause{text: "the broker asks for a client certificate and got none", kind: Unauthorized, hint: keystore}, true
	case ours && code >= alertBadCertificate && code <= alertUnknownCA:
		return cause{text: "the broker refuses the client's certificate: " + err.Error(), kind: Unauthorized, hint: keystore}, true
	case code == alertHandshakeFailure:
		return cause{text: "the broker and the client have no cipher suite in common", kind: Unreachable, hint: "check ssl.cipher.suites of the broker"}, true
	}
	return cause{}, false
}

// alertOfPeer returns the number of the alert that the other side sent. crypto/tls does not export its type for
// them, but they are its numbers.
func alertOfPeer(err error) (uint64, bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" || op.Err == nil {
		return 0, false
	}
	if v := reflect.ValueOf(op.Err); v.Kind() == reflect.Uint8 {
		return v.Uint(), true
	}
	return 0, false
}
