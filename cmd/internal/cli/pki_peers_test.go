//go:build peers && secure

package cli_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

const storePassword = "storepw-Zq81"

// authority signs certificates and writes them, and stores of them, into a folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.pem = certPEM(a.cert)
	return a
}

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// sign makes a certificate and its key; the first one of an authority signs itself.
func (a *authority) sign(tmpl *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	a.check(err)
	if tmpl.SerialNumber = serial; tmpl.NotAfter.IsZero() {
		tmpl.NotAfter = time.Now().Add(24 * time.Hour)
	}
	tmpl.NotBefore = tmpl.NotAfter.Add(-48 * time.Hour)
	parent, signer := a.cert, crypto.Signer(a.key)
	if parent == nil {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	a.check(err)
	cert, err := x509.ParseCertificate(der)
	a.check(err)
	return cert, key
}

func (a *authority) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) write(name string, data []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	a.check(os.WriteFile(path, data, 0o600))
	return path
}

// server writes a PEM key store for a listener.
func (a *authority) server(name string, until time.Time) string {
	a.t.Helper()
	tmpl := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature}
	if tmpl.DNSNames = []string{name}; name == "localhost" {
		tmpl.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	cert, key := a.sign(tmpl)
	return a.write(name+until.Format("-06")+".pem", append(a.keyPEM(key), certPEM(cert)...))
}

func (a *authority) keyPEM(key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	a.check(err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// client writes the stores of a client: PKCS12, JKS and PEM with an encrypted key, and returns their paths.
func (a *authority) client(name, keyPassword string) map[string]string {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature})
	p12, err := pkcs12.Modern.Encode(key, cert, nil, storePassword)
	a.check(err)
	out := map[string]string{"p12": a.write(name+".p12", p12), "jks": filepath.Join(a.dir, name+".jks"), "pem": filepath.Join(a.dir, name+"-enc.pem")}
	a.tool("keytool", "-importkeystore", "-noprompt", "-srckeystore", out["p12"], "-srcstoretype", "PKCS12", "-srcstorepass", storePassword,
		"-destkeystore", out["jks"], "-deststoretype", "JKS", "-deststorepass", storePassword)
	plain := a.write(name+"-key.pem", a.keyPEM(key))
	enc := a.tool("openssl", "pkcs8", "-topk8", "-in", plain, "-v2", "aes-256-cbc", "-passout", "pass:"+keyPassword)
	a.check(os.WriteFile(out["pem"], append(enc, certPEM(cert)...), 0o600))
	return out
}

// trust writes the trust stores of a client.
func (a *authority) trust() map[string]string {
	a.t.Helper()
	out := map[string]string{"pem": a.write("ca.pem", a.pem), "jks": filepath.Join(a.dir, "ca.jks"), "p12": filepath.Join(a.dir, "ca.p12")}
	for kind, named := range map[string]string{"jks": "JKS", "p12": "PKCS12"} {
		a.tool("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", out["pem"], "-keystore", out[kind], "-storetype", named, "-storepass", storePassword)
	}
	return out
}

func (a *authority) tool(name string, args ...string) []byte {
	a.t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.Output()
	if err != nil {
		a.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return out
}
