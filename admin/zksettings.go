package admin

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kctl/zkutil"
)

// The settings of the way to ZooKeeper. All but zooKeeperAuth are Kafka's own: brokers have them in server.properties, its
// tools take them in the file of --zk-tls-config-file.
const (
	zooKeeperTLSOn   = "zookeeper.ssl.client.enable"
	zooKeeperSocket  = "zookeeper.clientCnxnSocket"
	zooKeeperTLS     = "zookeeper.ssl" // the prefix of the others
	zooKeeperCRL     = "zookeeper.ssl.crl.enable"
	zooKeeperOCSP    = "zookeeper.ssl.ocsp.enable"
	zooKeeperSASL    = "zookeeper.sasl.client"
	zooKeeperSetACL  = "zookeeper.set.acl"
	zooKeeperAuth    = "kctl.zookeeper.auth"
	nettySocket      = "org.apache.zookeeper.ClientCnxnSocketNetty"
	nioSocket        = "org.apache.zookeeper.ClientCnxnSocketNIO"
	authorizerPrefix = "authorizer."
)

func zooKeeperPropertyNames() [][2]string {
	return [][2]string{
		{zooKeeperTLSOn, "true: ZooKeeper is reached over TLS; the settings zookeeper.ssl.* need it"},
		{zooKeeperSocket, "ClientCnxnSocketNetty, which Java needs for TLS; kctl needs no such setting"},
		{"zookeeper.ssl.truststore.type", "PEM, JKS or PKCS12; found out when it is not set"},
		{"zookeeper.ssl.truststore.location", "file with the certificates to trust; the system's without it"},
		{"zookeeper.ssl.truststore.password", "its password, for JKS and PKCS12"},
		{"zookeeper.ssl.keystore.type", "PEM, JKS or PKCS12; found out when it is not set"},
		{"zookeeper.ssl.keystore.location", "file with own certificate and key; ZooKeeper takes its name for the user"},
		{"zookeeper.ssl.keystore.password", "password of the file and of the key in it"},
		{"zookeeper.ssl.endpoint.identification.algorithm", "https checks ZooKeeper's name, empty does not"},
		{"zookeeper.ssl.protocol", "TLSv1.2 or TLSv1.3: only this version; both without it"},
		{"zookeeper.ssl.enabled.protocols", "versions of TLS to take, instead of that one: TLSv1.2,TLSv1.3"},
		{"zookeeper.ssl.cipher.suites", "cipher suites to take, by their names in Java"},
		{zooKeeperCRL, "false: kctl looks up no revoked certificates"},
		{zooKeeperOCSP, "false: likewise"},
		{zooKeeperSASL, "false: kctl does not log in to ZooKeeper with SASL"},
		{zooKeeperSetACL, "true: znodes get Kafka's protection also where their parent is open to everybody"},
		{zooKeeperAuth, "digest:USER:PASSWORD, a user of ZooKeeper; without TLS the password is sent as it is"},
	}
}

// saslSettings are those by which Java logs in to ZooKeeper with SASL.
var saslSettings = []string{"java.security.auth.login.config", "java.security.krb5.conf", "zookeeper.sasl.", "zookeeper.server.principal", "zookeeper.server.realm"}

// explainUnknown says of a setting that is not understood what can be done instead; nil when nothing is known of it.
func explainUnknown(name string, known []string) *Error {
	for _, s := range saslSettings {
		if name == s || strings.HasSuffix(s, ".") && strings.HasPrefix(name, s) {
			return noSASL(name)
		}
	}
	if bare, ok := strings.CutPrefix(name, authorizerPrefix); ok && slices.Contains(known, bare) {
		e := badInput("unknown setting %q", name)
		e.Hint = "take the prefix " + authorizerPrefix + " off: " + bare
		return e
	}
	return nil
}

func noSASL(setting string) *Error {
	e := badInput("%s: kctl does not log in to ZooKeeper with SASL (DIGEST-MD5, Kerberos)", setting)
	e.Hint = "what it can: a client certificate (" + zooKeeperTLSOn + "=true, zookeeper.ssl.keystore.location), or " + zooKeeperAuth + "=digest:USER:PASSWORD"
	return e
}

// applyZooKeeper turns the settings of the way to ZooKeeper into cfg.
func (p Properties) applyZooKeeper(cfg *Config) (err error) {
	for _, name := range []string{zooKeeperCRL, zooKeeperOCSP} {
		if on, err := p.boolean(name); err != nil || on {
			return either(err, badInput("%s=true: kctl does not look up whether certificates are revoked, and does not pretend to: leave it out, or set it to false", name))
		}
	}
	if on, err := p.boolean(zooKeeperSASL); err != nil || on {
		return either(err, noSASL(zooKeeperSASL))
	}
	if cfg.ZooKeeperAuth, err = p.zooKeeperAuth(); err != nil {
		return err
	}
	if cfg.ZooKeeperTLS, err = p.zooKeeperTLS(); err != nil {
		return err
	}
	if cfg.ZooKeeperSetACL, err = p.boolean(zooKeeperSetACL); err != nil {
		return err
	}
	if cfg.ZooKeeperSetACL && !cfg.knownToZooKeeper() {
		e := badInput("%s=true protects znodes for the user that makes them, but no user is set", zooKeeperSetACL)
		e.Hint = "set zookeeper.ssl.keystore.location, or " + zooKeeperAuth + "=digest:USER:PASSWORD"
		return e
	}
	return nil
}

func either(err error, other *Error) error {
	if err != nil {
		return err
	}
	return other
}

// knownToZooKeeper reports whether ZooKeeper learns who is there: from a certificate or from a credential.
func (c *Config) knownToZooKeeper() bool {
	return len(c.ZooKeeperAuth) > 0 || c.ZooKeeperTLS != nil && c.ZooKeeperTLS.GetClientCertificate != nil
}

func (p Properties) boolean(name string) (bool, error) {
	switch v := strings.ToLower(strings.TrimSpace(p[name])); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, badInput("%s=%s is neither true nor false", name, p[name])
}

// zooKeeperAuth reads SCHEME:CREDENTIAL; what it refuses it does not print.
func (p Properties) zooKeeperAuth() ([]zkutil.Auth, error) {
	v, ok := p[zooKeeperAuth]
	if !ok {
		return nil, nil
	}
	scheme, credential, _ := strings.Cut(v, ":")
	user, password, has := strings.Cut(credential, ":")
	if !strings.EqualFold(scheme, "digest") || !has || user == "" || password == "" {
		return nil, badInput("%s is not digest:USER:PASSWORD", zooKeeperAuth)
	}
	return []zkutil.Auth{{Scheme: "digest", Credential: []byte(credential)}}, nil
}

// zooKeeperTLS is nil when TLS is not switched on. Settings of TLS without the switch are refused: they would be ignored
// silently. With the switch at false they rest.
func (p Properties) zooKeeperTLS() (*tls.Config, error) {
	on, err := p.boolean(zooKeeperTLSOn)
	if err != nil {
		return nil, err
	}
	if err := p.checkSocket(on); err != nil {
		return nil, err
	}
	if !on {
		_, said := p[zooKeeperTLSOn]
		for _, name := range slices.Sorted(maps.Keys(p)) {
			if !said && strings.HasPrefix(name, zooKeeperTLS+".") && name != zooKeeperCRL && name != zooKeeperOCSP {
				return nil, badInput("%s is set, but ZooKeeper is not reached over TLS: set %s=true", name, zooKeeperTLSOn)
			}
		}
		return nil, nil
	}
	cfg, err := p.tlsConfig(zooKeeperTLS)
	if err != nil {
		return nil, err
	}
	if err := p.tlsVersions(cfg); err != nil {
		return nil, err
	}
	return cfg, p.cipherSuites(cfg)
}

// checkSocket refuses what Java would refuse, or could not reach ZooKeeper with.
func (p Properties) checkSocket(on bool) error {
	v, ok := p[zooKeeperSocket]
	switch {
	case !ok || v == nettySocket || v == nioSocket && !on:
		return nil
	case v == nioSocket:
		return badInput("%s=%s speaks no TLS, but %s=true: set %s, or leave it out", zooKeeperSocket, v, zooKeeperTLSOn, nettySocket)
	}
	return badInput("%s=%s is neither %s nor %s", zooKeeperSocket, v, nettySocket, nioSocket)
}

// tlsVersions takes zookeeper.ssl.enabled.protocols, else zookeeper.ssl.protocol, as Java does. Older versions than 1.2 in a
// list beside newer ones are passed over: nobody offers them any more.
func (p Properties) tlsVersions(cfg *tls.Config) error {
	name := zooKeeperTLS + ".enabled.protocols"
	list := splitList(p[name])
	if len(list) == 0 {
		name = zooKeeperTLS + ".protocol"
		if list = splitList(p[name]); len(list) == 0 || len(list) == 1 && strings.EqualFold(list[0], "TLS") {
			return nil
		}
	}
	versions := map[string]uint16{"tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13}
	var found []uint16
	for _, v := range list {
		n, ok := versions[strings.ToLower(v)]
		if !ok && !slices.Contains([]string{"tlsv1", "tlsv1.1", "sslv3", "sslv2hello"}, strings.ToLower(v)) {
			return badInput("%s=%s: %s is no version of TLS: TLSv1.2 and TLSv1.3 are known", name, p[name], v)
		}
		if ok {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return badInput("%s=%s names no version that kctl speaks: TLSv1.2 and TLSv1.3", name, p[name])
	}
	cfg.MinVersion, cfg.MaxVersion = slices.Min(found), slices.Max(found)
	return nil
}

// cipherSuites takes zookeeper.ssl.cipher.suites. Those of TLS 1.3 cannot be chosen one by one; that none or only such
// ones are named decides about the version. Names that are not known here are passed over beside others: Java and ZooKeeper
// have suites that are not.
func (p Properties) cipherSuites(cfg *tls.Config) error {
	const name = zooKeeperTLS + ".cipher.suites"
	list := splitList(p[name])
	if len(list) == 0 {
		return nil
	}
	var older []uint16
	newer := false
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		switch {
		case !slices.Contains(list, suite.Name):
		case slices.Contains(suite.SupportedVersions, tls.VersionTLS12):
			older = append(older, suite.ID)
		default:
			newer = true
		}
	}
	low, high := uint16(tls.VersionTLS12), uint16(tls.VersionTLS13)
	if len(older) == 0 {
		low = tls.VersionTLS13
	}
	if !newer {
		high = tls.VersionTLS12
	}
	cfg.MinVersion = max(cfg.MinVersion, low)
	if cfg.MaxVersion == 0 || cfg.MaxVersion > high {
		cfg.MaxVersion = high
	}
	cfg.CipherSuites = older
	if len(older) == 0 && !newer || cfg.MinVersion > cfg.MaxVersion {
		return &Error{
			Kind: BadInput, Msg: fmt.Sprintf("%s=%s names no suite that kctl knows in a version of TLS that may be used", name, p[name]),
			Hint: "leave it out: the two sides agree on one",
		}
	}
	return nil
}

func splitList(v string) []string {
	var out []string
	for _, s := range strings.Split(v, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
