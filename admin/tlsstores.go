package admin

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the seal of a JKS store
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// storeFormat is how a key or trust store is written.
type storeFormat string

const (
	formatPEM    storeFormat = "PEM"
	formatJKS    storeFormat = "JKS"
	formatPKCS12 storeFormat = "PKCS12"
)

// jksMagic opens a Java key store; jceksMagic one of Sun's JCE form, which holds nothing that a client needs.
var (
	jksMagic   = []byte{0xfe, 0xed, 0xfe, 0xed}
	jceksMagic = []byte{0xce, 0xce, 0xce, 0xce}
)

// formatOf tells from the content: Java reads PKCS12 where JKS is said and the reverse, so the type in a
// properties file says little.
func formatOf(data []byte) (storeFormat, bool) {
	switch {
	case bytes.HasPrefix(data, jksMagic):
		return formatJKS, true
	case bytes.Contains(data, []byte("-----BEGIN ")):
		return formatPEM, true
	case len(data) > 2 && data[0] == 0x30: // a DER sequence
		return formatPKCS12, true
	}
	return "", false
}

// store is a key or trust store that a property names.
type store struct {
	setting  string // ssl.truststore or ssl.keystore
	file     string
	data     []byte
	format   storeFormat
	password string
}

// readStore reads the file that PREFIX.location names; nil when the property is not set.
func (p Properties) readStore(prefix string) (*store, error) {
	file, ok := p[prefix+".location"]
	if !ok {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, badInput("%s.location: %v", prefix, err)
	}
	s := &store{setting: prefix, file: file, data: data, password: p[prefix+".password"]}
	if s.format, ok = formatOf(data); !ok {
		what := "neither PEM, JKS nor PKCS12"
		if bytes.HasPrefix(data, jceksMagic) {
			what = "a JCEKS store, which is not read: convert it with keytool -importkeystore -deststoretype PKCS12"
		}
		return nil, badInput("%s.location=%s is %s", prefix, file, what)
	}
	named := strings.ToUpper(p[prefix+".type"])
	switch {
	case named == "":
	case !slices.Contains([]string{"PEM", "JKS", "PKCS12"}, named):
		return nil, badInput("%s.type=%s is not one of PEM, JKS, PKCS12", prefix, p[prefix+".type"])
	case (named == "PEM") != (s.format == formatPEM):
		return nil, badInput("%s.location=%s is %s, but %s.type=%s", prefix, file, s.format, prefix, named)
	}
	return s, nil
}

// refused names the setting that is to be changed: mostly a password.
func (s *store) refused(err error) error {
	e := badInput("%s.location=%s (%s): %v", s.setting, s.file, s.format, err)
	switch {
	case s.password == "":
		e.Hint = fmt.Sprintf("set %s.password", s.setting)
	case errors.Is(err, pkcs12.ErrIncorrectPassword), strings.Contains(err.Error(), "invalid digest"):
		e.Hint = fmt.Sprintf("%s.password is wrong", s.setting)
	}
	return e
}

// trusted returns the certificates of a trust store. In a PKCS12 store those marked as trusted by keytool are
// taken, else all of them.
func (s *store) trusted() ([]*x509.Certificate, error) {
	switch s.format {
	case formatJKS:
		return s.trustedJKS()
	case formatPKCS12:
		certs, err := pkcs12.DecodeTrustStore(s.data, s.password)
		if err != nil && !errors.Is(err, pkcs12.ErrIncorrectPassword) {
			if _, leaf, chain, cerr := pkcs12.DecodeChain(s.data, s.password); cerr == nil {
				return append(chain, leaf), nil
			}
		}
		if err != nil {
			return nil, s.refused(err)
		}
		return certs, nil
	}
	return pemCertificates(s.data, fmt.Sprintf("%s.location=%s", s.setting, s.file))
}

func (s *store) jks() (*keystore.KeyStore, error) {
	ks, data := keystore.New(), s.data
	if s.password == "" {
		data = resealedJKS(data)
	}
	if err := ks.Load(bytes.NewReader(data), []byte(s.password)); err != nil {
		return nil, s.refused(err)
	}
	return &ks, nil
}

// resealedJKS returns a store as it would be with an empty password: Java reads one without its password too and then does
// not check whether it was altered, which is all that the password of a store is for; keys are locked by themselves.
func resealedJKS(data []byte) []byte {
	if len(data) < sha1.Size {
		return data
	}
	body := data[:len(data)-sha1.Size]
	sum := sha1.Sum(append([]byte("Mighty Aphrodite"), body...)) //nolint:gosec // what the format asks for
	return append(slices.Clone(body), sum[:]...)
}

func (s *store) trustedJKS() ([]*x509.Certificate, error) {
	ks, err := s.jks()
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for _, alias := range ks.Aliases() {
		var der []keystore.Certificate
		switch {
		case ks.IsTrustedCertificateEntry(alias):
			e, err := ks.GetTrustedCertificateEntry(alias)
			if err != nil {
				return nil, s.refused(err)
			}
			der = append(der, e.Certificate)
		case ks.IsPrivateKeyEntry(alias):
			if der, err = ks.GetPrivateKeyEntryCertificateChain(alias); err != nil {
				return nil, s.refused(err)
			}
		}
		for _, c := range der {
			cert, err := x509.ParseCertificate(c.Content)
			if err != nil {
				return nil, s.refused(fmt.Errorf("entry %s: %w", alias, err))
			}
			out = append(out, cert)
		}
	}
	return out, nil
}

// identity returns the own certificate chain and key of a key store. keyPassword is that of the key, where it
// differs from the store's.
func (s *store) identity(keyPassword string) (tls.Certificate, error) {
	switch s.format {
	case formatJKS:
		return s.identityJKS(keyPassword)
	case formatPKCS12:
		key, leaf, chain, err := pkcs12.DecodeChain(s.data, s.password)
		if err != nil {
			return tls.Certificate{}, s.refused(err)
		}
		cert := tls.Certificate{PrivateKey: key, Leaf: leaf, Certificate: [][]byte{leaf.Raw}}
		for _, c := range chain {
			cert.Certificate = append(cert.Certificate, c.Raw)
		}
		return cert, nil
	}
	return pemIdentity(s.data, s.data, keyPassword, fmt.Sprintf("%s.location=%s", s.setting, s.file))
}

func (s *store) identityJKS(keyPassword string) (tls.Certificate, error) {
	ks, err := s.jks()
	if err != nil {
		return tls.Certificate{}, err
	}
	if keyPassword == "" {
		keyPassword = s.password
	}
	for _, alias := range ks.Aliases() {
		if !ks.IsPrivateKeyEntry(alias) {
			continue
		}
		e, err := ks.GetPrivateKeyEntry(alias, []byte(keyPassword))
		if err != nil {
			bad := badInput("%s.location=%s: key %s: %v", s.setting, s.file, alias, err)
			bad.Hint = "set ssl.key.password to the key's own password"
			return tls.Certificate{}, bad
		}
		key, err := x509.ParsePKCS8PrivateKey(e.PrivateKey)
		if err != nil {
			return tls.Certificate{}, s.refused(fmt.Errorf("key %s: %w", alias, err))
		}
		cert := tls.Certificate{PrivateKey: key}
		for _, c := range e.CertificateChain {
			cert.Certificate = append(cert.Certificate, c.Content)
		}
		return cert, nil
	}
	return tls.Certificate{}, badInput("%s.location=%s holds no private key: it is a trust store", s.setting, s.file)
}

func pemCertificates(data []byte, from string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, badInput("%s: %v", from, err)
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, badInput("%s holds no certificate in PEM form", from)
	}
	return out, nil
}

// pemIdentity reads a chain and its key, which may be encrypted.
func pemIdentity(chain, key []byte, keyPassword, from string) (tls.Certificate, error) {
	key, err := openKey(key, keyPassword, from)
	if err != nil {
		return tls.Certificate{}, err
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return cert, badInput("%s: %v", from, err)
	}
	return cert, nil
}
