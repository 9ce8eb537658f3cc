package admin

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const keyPassword = `k;"=y`

func keyFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "keys", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEncryptedKey: keys that openssl encrypted in each way that Java reads open with their password, in a file and in the
// settings themselves; every other one says why not, and which setting to change.
func TestEncryptedKey(t *testing.T) {
	chain, plain := keyFile(t, "cert.crt"), keyFile(t, "plain.pem")
	for _, tt := range []struct{ name, password, want, hint string }{
		{"plain", "", "", ""},
		{"plain", "passed over", "", ""},
		{"aes-128-cbc", keyPassword, "", ""},
		{"aes-192-cbc", keyPassword, "", ""},
		{"aes-256-cbc", keyPassword, "", ""},
		{"des3", keyPassword, "", ""},
		{"hmacWithSHA1", keyPassword, "", ""},
		{"hmacWithSHA224", keyPassword, "", ""},
		{"hmacWithSHA384", keyPassword, "", ""},
		{"hmacWithSHA512", keyPassword, "", ""},
		{"aes-256-cbc", "", "is encrypted, and no password is set", "set ssl.key.password"},
		{"aes-256-cbc", "wrong", "the password does not open the private key", "ssl.key.password is wrong"},
		{"scrypt", keyPassword, "scrypt", "openssl pkcs8 -topk8"},
		{"pbes1", keyPassword, "", ""},
		{"pbes1-2key", keyPassword, "", ""},
		{"pbes1-md5", keyPassword, "", ""},
		{"pbes1-sha1", keyPassword, "", ""},
		{"pbes1", "wrong", "the password does not open the private key", "ssl.key.password is wrong"},
		{"pbes1-rc2", keyPassword, "in a way that is not read", "openssl pkcs8 -topk8"},
		{"old", keyPassword, "DEK-Info", "openssl pkcs8 -topk8"},
	} {
		t.Run(tt.name+" "+tt.password, func(t *testing.T) {
			key := keyFile(t, tt.name+".pem")
			file := filepath.Join(t.TempDir(), "store.pem")
			if err := os.WriteFile(file, append(bytes.Clone(key), chain...), 0o600); err != nil {
				t.Fatal(err)
			}
			oneLine := func(b []byte) string { return strings.ReplaceAll(string(b), "\n", " ") }
			for from, p := range map[string]Properties{
				"file":   {"ssl.keystore.location": file, "ssl.keystore.type": "PEM"},
				"inline": {"ssl.keystore.certificate.chain": string(chain), "ssl.keystore.key": string(key)},
				"blanks": {"ssl.keystore.certificate.chain": oneLine(chain), "ssl.keystore.key": oneLine(key)},
			} {
				if from == "blanks" && tt.name == "old" {
					continue // its headers need their lines
				}
				p["security.protocol"], p["ssl.key.password"] = "SSL", tt.password
				var cfg Config
				err := p.Apply(&cfg)
				if tt.want != "" {
					wantCause(t, err, tt.want, tt.hint, BadInput)
					if strings.Contains(err.Error()+HintOf(err), keyPassword) {
						t.Error("a password is printed")
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", from, err)
				}
				got, err := cfg.TLS.GetClientCertificate(nil)
				want, werr := tls.X509KeyPair(chain, plain)
				if err != nil || werr != nil || len(got.Certificate) != 1 || !bytes.Equal(got.Certificate[0], want.Certificate[0]) {
					t.Errorf("%s: another certificate: %v %v", from, err, werr)
				}
			}
		})
	}
}

// TestDamagedKey: no cut and no turned byte of an encrypted key is taken, and none ends the program.
func TestDamagedKey(t *testing.T) {
	block, _ := pem.Decode(keyFile(t, "des3.pem"))
	for i := range block.Bytes {
		if _, err := decryptKey(block.Bytes[:i], keyPassword); err == nil {
			t.Errorf("%d of %d bytes were taken", i, len(block.Bytes))
		}
	}
	if _, err := decryptKey(append(bytes.Clone(block.Bytes), 0), keyPassword); err == nil {
		t.Error("a byte too many was taken")
	}
}

// FuzzEncryptedKey: whatever a file holds, it is a key or an error.
func FuzzEncryptedKey(f *testing.F) {
	for _, name := range []string{"aes-256-cbc", "des3", "hmacWithSHA512", "scrypt", "pbes1"} {
		block, _ := pem.Decode(keyFile(f, name+".pem"))
		f.Add(block.Bytes)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		if len(der) > 4096 {
			return
		}
		key, err := decryptKey(der, keyPassword)
		if (err == nil) != (len(key) > 0) {
			t.Fatalf("%d bytes of a key, %v", len(key), err)
		}
	})
}
