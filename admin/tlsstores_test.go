package admin

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
	"software.sslmate.com/src/go-pkcs12"
)

// TestStores: a broker that demands a client certificate is reached with trust and key stores of every kind that
// a Java client's file may name, whatever type it says; each mistake names the setting.
func TestStores(t *testing.T) {
	serverCert, serverKey := identityFor(t, "broker")
	clientCert, clientKey := identityFor(t, "client")
	dir := t.TempDir()
	write := func(name string, data []byte, err error) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	trustP12, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{serverCert}, "storepw")
	p12Trust := write("trust.p12", trustP12, err)
	keyP12, err := pkcs12.Modern.Encode(clientKey, clientCert, nil, "storepw")
	p12Key := write("key.p12", keyP12, err)
	legacy, err := pkcs12.LegacyDES.Encode(clientKey, clientCert, nil, "storepw")
	p12Old := write("old.p12", legacy, err)
	der, err := x509.MarshalPKCS8PrivateKey(clientKey)
	if err != nil {
		t.Fatal(err)
	}
	jksTrust, jksKey := keystore.New(), keystore.New()
	if err := jksTrust.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: serverCert.Raw}}); err != nil {
		t.Fatal(err)
	}
	if err := jksKey.SetPrivateKeyEntry("me", keystore.PrivateKeyEntry{
		CreationTime: time.Now(), PrivateKey: der, CertificateChain: []keystore.Certificate{{Type: "X509", Content: clientCert.Raw}},
	}, []byte("keypw!")); err != nil {
		t.Fatal(err)
	}
	store := func(name string, ks keystore.KeyStore) string {
		var b bytes.Buffer
		err := ks.Store(&b, []byte("storepw"))
		return write(name, b.Bytes(), err)
	}
	trustJKS, keyJKS := store("trust.jks", jksTrust), store("key.jks", jksKey)
	clients := x509.NewCertPool()
	clients.AddCert(clientCert)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := startFake(t, tls.NewListener(ln, &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{serverCert.Raw}, PrivateKey: serverKey}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}), map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.Metadata: emptyMetadata})

	trusted := Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.password": "storepw"}
	for _, tt := range []struct {
		name  string
		props Properties
		want  string // part of the error; empty: it works
		hint  string
	}{
		{"pkcs12", Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.password": "storepw", "ssl.truststore.type": "PKCS12", "ssl.keystore.location": p12Key, "ssl.keystore.password": "storepw", "ssl.keystore.type": "pkcs12"}, "", ""},
		{"jks", Properties{"ssl.truststore.location": trustJKS, "ssl.truststore.password": "storepw", "ssl.keystore.location": keyJKS, "ssl.keystore.password": "storepw", "ssl.key.password": "keypw!"}, "", ""},
		{"pkcs12 that is called JKS", Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.password": "storepw", "ssl.truststore.type": "JKS", "ssl.keystore.location": p12Old, "ssl.keystore.password": "storepw"}, "", ""},
		{"jks without its password, as Java takes it", Properties{"ssl.truststore.location": trustJKS, "ssl.keystore.location": keyJKS, "ssl.key.password": "keypw!"}, "", ""},
		{"wrong store password", Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.password": "no"}, "ssl.truststore.location", "ssl.truststore.password is wrong"},
		{"no store password", Properties{"ssl.truststore.location": p12Trust}, "ssl.truststore.location", "set ssl.truststore.password"},
		{"wrong JKS password", Properties{"ssl.truststore.location": trustJKS, "ssl.truststore.password": "no"}, "ssl.truststore.location", "ssl.truststore.password is wrong"},
		{"wrong key password", Properties{"ssl.keystore.location": keyJKS, "ssl.keystore.password": "storepw"}, "key me", "ssl.key.password"},
		{"a trust store as key store", Properties{"ssl.keystore.location": trustJKS, "ssl.keystore.password": "storepw"}, "holds no private key", ""},
		{"PEM that is none", Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.type": "PEM"}, "is PKCS12, but ssl.truststore.type=PEM", ""},
		{"unknown type", Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.type": "BKS"}, "is not one of PEM, JKS, PKCS12", ""},
		{"no store", Properties{"ssl.truststore.location": write("text", []byte("hello"), nil)}, "neither PEM, JKS nor PKCS12", ""},
		{"no file", Properties{"ssl.truststore.location": filepath.Join(dir, "none")}, "no such file", ""},
		{"algorithm", Properties{"ssl.truststore.location": p12Trust, "ssl.truststore.password": "storepw", "ssl.endpoint.identification.algorithm": "http"}, "neither https nor empty", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.props["ssl.endpoint.identification.algorithm"] = "HTTPS"
			} else if tt.props["ssl.truststore.location"] == "" {
				for k, v := range trusted {
					tt.props[k] = v
				}
			}
			tt.props["security.protocol"] = "SSL"
			cfg := Config{Timeout: time.Minute}
			err := tt.props.Apply(&cfg)
			if err == nil {
				_, err = openFake(t, cfg, b).Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
			}
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" {
				wantCause(t, err, tt.want, tt.hint, BadInput)
				if strings.Contains(err.Error()+HintOf(err), "storepw") {
					t.Error("a password is printed")
				}
			}
		})
	}
}

// TestJavaFile: a client's file works as it is; what no client knows is refused with its line.
func TestJavaFile(t *testing.T) {
	props, err := ReadProperties(strings.NewReader(`# as shipped to every team
bootstrap.servers=broker1:9092
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="alice" \
    password="it's; \\"x\\"=1";
acks=all
key.serializer=org.apache.kafka.common.serialization.StringSerializer
sasl.login.refresh.buffer.seconds=10
group.id=x
`))
	if err != nil {
		t.Fatal(err)
	}
	var cfg Config
	if err := props.Apply(&cfg); err != nil || cfg.SASL.Name() != "SCRAM-SHA-512" || cfg.Security != "SASL_PLAINTEXT" {
		t.Errorf("%+v %v", cfg, err)
	}
	for in, want := range map[string]string{
		"acks=all\n\n# x\nclient.id=a\nkey=b\n":             `line 5: unknown setting "key"`,
		"a.b=\\\n  c\nacks=1":                               `line 1: unknown setting "a.b"`,
		"acks=1\nbootstrap.server=a":                        `line 2: unknown setting "bootstrap.server"`,
		"client.id=a\nacks=\\u12":                           "line 2: ",
		"client.id=a\nssl.trustore.location=a\nsasl.x=\\u1": "line 3: ",
	} {
		if _, err := ReadProperties(strings.NewReader(in)); err == nil || !strings.HasPrefix(err.Error(), want) || KindOf(err) != BadInput {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	for _, tt := range []struct{ jaas, mech, want string }{
		{`org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";`, "SCRAM-SHA-256", "goes with ScramLoginModule"},
		{`com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;`, "GSSAPI", "Krb5LoginModule"},
		{`org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b"`, "SCRAM-SHA-256", "semicolon"},
	} {
		props := Properties{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": tt.mech, "sasl.jaas.config": tt.jaas}
		if err := props.Apply(&Config{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.jaas, err, tt.want)
		}
	}
}
