package admin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/kafkatest"
	"kctl/admin/model"
)

// certificate makes a self-signed certificate for a name and returns it with its PEM form.
func certificate(t *testing.T, name string, until time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if ip := net.ParseIP(name); ip != nil {
		tmpl.DNSNames, tmpl.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serve answers ApiVersions and Metadata of an empty cluster on ln; login makes it close after ApiVersions, as
// a broker does on a listener that asks for SASL.
func serve(t *testing.T, ln net.Listener, login bool) string {
	t.Helper()
	kafkatest.EachConn(t, ln, func(conn net.Conn) {
		kafkatest.Serve(conn, func(req kmsg.Request) (kmsg.Response, kafkatest.Then) { return answerKafka(req, login) })
	})
	return ln.Addr().String()
}

func answerKafka(req kmsg.Request, login bool) (kmsg.Response, kafkatest.Then) {
	switch kmsg.Key(req.Key()) {
	case kmsg.ApiVersions:
		r := kmsg.NewPtrApiVersionsResponse()
		for k, highest := range map[int16]int16{1: 11, 3: 1, 18: 1} {
			a := kmsg.NewApiVersionsResponseApiKey()
			a.ApiKey, a.MaxVersion = k, highest
			r.ApiKeys = append(r.ApiKeys, a)
		}
		if r.SetVersion(req.GetVersion()); req.GetVersion() > 1 {
			r.SetVersion(0)
			r.ErrorCode = kerr.UnsupportedVersion.Code
		}
		return r, kafkatest.Answer
	case kmsg.Metadata:
		if !login {
			return kmsg.NewPtrMetadataResponse(), kafkatest.Answer
		}
	case kmsg.Fetch:
		return oneBatch(time.UnixMilli(batchTime)), kafkatest.Answer
	}
	return nil, kafkatest.HangUp
}

// batchTime is the base timestamp of the batch that the fake broker returns for every Fetch.
const batchTime = 1_700_000_000_000

// oneBatch is a Fetch response with the header of one empty batch.
func oneBatch(at time.Time) *kmsg.FetchResponse {
	batch := make([]byte, 61)
	batch[16] = 2
	binary.BigEndian.PutUint64(batch[27:], uint64(at.UnixMilli()))
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = batch
	t := kmsg.NewFetchResponseTopic()
	t.Topic, t.Partitions = "t", append(t.Partitions, p)
	r := kmsg.NewPtrFetchResponse()
	r.Topics = append(r.Topics, t)
	return r
}

// TestSecurityMistakes: each mistake names its cause and the setting to change, not "EOF".
func TestSecurityMistakes(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour)
	good, goodPEM := certificate(t, "127.0.0.1", tomorrow)
	wrongName, wrongNamePEM := certificate(t, "broker.example", tomorrow)
	expired, expiredPEM := certificate(t, "127.0.0.1", time.Now().Add(-time.Hour))
	plain := func(t *testing.T) net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	secure := func(c tls.Certificate) func(*testing.T) net.Listener {
		return func(t *testing.T) net.Listener {
			return tls.NewListener(plain(t), &tls.Config{Certificates: []tls.Certificate{c}})
		}
	}
	trust := func(pemBytes []byte) string {
		path := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(path, pemBytes, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name   string
		listen func(*testing.T) net.Listener
		login  bool
		props  Properties
		want   string // part of the error; empty: it works
		hint   string
		kind   Kind
	}{
		{"plain to plain", plain, false, nil, "", "", 0},
		{"tls to tls", secure(good), false, Properties{"security.protocol": "SSL", "ssl.truststore.location": trust(goodPEM)}, "", "", 0},
		{"plain client, tls listener", secure(good), false, nil, "speaks TLS", "security.protocol=SSL", Unreachable},
		{"tls client, plain listener", plain, false, Properties{"security.protocol": "SSL"}, "does not speak TLS", "security.protocol=PLAINTEXT", Unreachable},
		{"unknown authority", secure(good), false, Properties{"security.protocol": "SSL"}, "unknown authority", "ssl.truststore.location", Unreachable},
		{"wrong name", secure(wrongName), false, Properties{"security.protocol": "SSL", "ssl.truststore.location": trust(wrongNamePEM)}, "127.0.0.1", "ssl.endpoint.identification.algorithm", Unreachable},
		{"wrong name, not checked", secure(wrongName), false, Properties{"security.protocol": "SSL", "ssl.truststore.location": trust(wrongNamePEM), "ssl.endpoint.identification.algorithm": ""}, "", "", 0},
		{"expired", secure(expired), false, Properties{"security.protocol": "SSL", "ssl.truststore.location": trust(expiredPEM)}, "expired", "renew", Unreachable},
		{"login asked for", plain, true, nil, "asks for a login", "sasl.jaas.config", Unauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Bootstrap: []string{serve(t, tt.listen(t), tt.login)}, Timeout: time.Minute}
			if err := tt.props.Apply(&cfg); err != nil {
				t.Fatal(err)
			}
			c, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(HintOf(err), tt.hint) || KindOf(err) != tt.kind):
				t.Errorf("got %v\nhint %q kind %d", err, HintOf(err), KindOf(err))
			}
		})
	}
}

// TestSilentServer: the first bootstrap server takes the connection and never answers; the second is asked
// soon, long before the first is given up, and a cluster of silent servers is given up within the timeout. (The bounds
// are far from both what it takes and what it would take otherwise, so that a busy machine keeps them.)
func TestSilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	good, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, good, false)
	for _, tt := range []struct {
		seeds          []string
		ok             bool
		timeout, atMax time.Duration
	}{{[]string{silent.Addr().String(), addr}, true, 4 * time.Minute, time.Minute}, {[]string{silent.Addr().String()}, false, 2 * time.Second, 20 * time.Second}} {
		c, err := Open(t.Context(), Config{Bootstrap: tt.seeds, Timeout: tt.timeout})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = c.Snapshot(t.Context(), SnapshotOptions{NoTopics: true})
		took := time.Since(start)
		_ = c.Close()
		if (err == nil) != tt.ok || took > tt.atMax || !tt.ok && KindOf(err) != Unreachable {
			t.Errorf("%v: %v after %s", tt.seeds, err, took)
		}
	}
}

// TestLagTimes: the lag in time is the age of the first record that a follower lacks, read from the leader;
// it is looked up only for followers behind the leader's high watermark.
func TestLagTimes(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, ln, false)
	c, err := Open(t.Context(), Config{Bootstrap: []string{addr}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.addrs[1] = addr
	rows := []model.ReplicaPosition{
		{Topic: "t", Broker: 1, Leader: true, LogEndOffset: 100, HighWatermark: 90},
		{Topic: "t", Broker: 2, LogEndOffset: 50, LagRecords: 50, LagMs: -1}, // behind the high watermark
		{Topic: "t", Broker: 3, LogEndOffset: 95, LagRecords: 5, LagMs: -1},  // what it lacks cannot be read yet
		{Topic: "t", Broker: 4, LogEndOffset: 100, LagRecords: 0, LagMs: 0},
	}
	before := time.Now().UnixMilli() - batchTime
	c.lagTimes(t.Context(), rows)
	after := time.Now().UnixMilli() - batchTime
	if got := rows[1].LagMs; got < before || got > after {
		t.Errorf("lag of %d ms, want %d to %d", got, before, after)
	}
	if rows[2].LagMs != -1 || rows[3].LagMs != 0 {
		t.Errorf("%d %d", rows[2].LagMs, rows[3].LagMs)
	}
}
