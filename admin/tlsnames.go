package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// dialTLS connects with TLS. A certificate that names its host in the common name only, without a subject alternative name,
// is refused by crypto/tls and taken by Java (RFC 2818, section 3.1); since a Java client's file must work as it is, such a
// broker is asked once more with that name checked. IP addresses never stand in a common name.
func dialTLS(ctx context.Context, d *net.Dialer, network, addr string, cfg *tls.Config) (net.Conn, error) {
	conn, err := (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, network, addr)
	host, ok := errors.AsType[x509.HostnameError](err)
	if !ok || !namedInCommon(host.Certificate, cfg.ServerName) {
		return conn, err
	}
	again := cfg.Clone()
	skipNameCheck(again)
	chain, name := again.VerifyConnection, cfg.ServerName
	again.VerifyConnection = func(cs tls.ConnectionState) error {
		if leaf := cs.PeerCertificates[0]; !namedInCommon(leaf, name) {
			return x509.HostnameError{Certificate: leaf, Host: name}
		}
		return chain(cs)
	}
	return (&tls.Dialer{NetDialer: d, Config: again}).DialContext(ctx, network, addr)
}

// namedInCommon reports whether the common name is all that a certificate has, and is name, or a wildcard for it.
func namedInCommon(cert *x509.Certificate, name string) bool {
	if cert == nil || len(cert.DNSNames) > 0 || cert.Subject.CommonName == "" {
		return false
	}
	return (&x509.Certificate{DNSNames: []string{cert.Subject.CommonName}}).VerifyHostname(name) == nil
}
