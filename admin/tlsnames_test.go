package admin

import (
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
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestCommonName: a broker whose certificate names it in the common name only is reached under that name, as Java does it,
// and under no other; the chain is checked all the same.
func TestCommonName(t *testing.T) {
	for _, tt := range []struct {
		name, common string
		alternative  []string
		host         string
		strange      bool // the client trusts another authority
		want, hint   string
	}{
		{name: "its name", common: "localhost", host: "localhost"},
		{name: "in other letters", common: "LocalHost", host: "localhost"},
		{name: "another name", common: "broker1.example", host: "localhost", want: "is for broker1.example (its common name, which counts for host names only), not for localhost", hint: "ssl.endpoint.identification.algorithm"},
		{name: "an address", common: "127.0.0.1", host: "127.0.0.1", want: "which counts for host names only), not for 127.0.0.1", hint: "ssl.endpoint.identification.algorithm"},
		{name: "alternative names come first", common: "localhost", alternative: []string{"broker1.example"}, host: "localhost", want: "is for broker1.example, not for localhost", hint: "ssl.endpoint.identification.algorithm"},
		{name: "unknown authority", common: "localhost", host: "localhost", strange: true, want: "unknown authority", hint: "ssl.truststore.location"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cert, key := namedOnly(t, tt.common, tt.alternative)
			trusted := cert
			if tt.strange {
				trusted, _ = identityFor(t, "somebody")
			}
			file := filepath.Join(t.TempDir(), "trust.pem")
			if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			b := startFake(t, tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}),
				map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.Metadata: emptyMetadata})
			_, port, err := net.SplitHostPort(b.addr)
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{Timeout: time.Minute}
			if err := (Properties{"security.protocol": "SSL", "ssl.truststore.location": file}).Apply(&cfg); err != nil {
				t.Fatal(err)
			}
			cfg.Bootstrap = []string{net.JoinHostPort(tt.host, port)}
			_, err = openFake(t, cfg).Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
			if tt.want != "" {
				wantCause(t, err, tt.want, tt.hint, Unreachable)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// namedOnly makes a certificate that signs itself.
func namedOnly(t *testing.T, common string, alternative []string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(8), Subject: pkix.Name{CommonName: common}, DNSNames: alternative,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
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
