package admin

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kctl/admin/plan"
)

// Properties are settings by their Java client names. Values may be secrets: never print them.
type Properties map[string]string

// PropertyNames lists the settings that are understood, with a line on each.
func PropertyNames() [][2]string {
	return slices.Concat([][2]string{
		{"bootstrap.servers", "brokers to start from: HOST:PORT,..."},
		{"zookeeper.connect", "ZooKeeper: HOST:PORT,.../chroot"},
		{"client.id", "name of this client in the brokers' logs and quotas"},
		{"request.timeout.ms", "time for one operation, as --timeout"},
		{"security.protocol", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"},
		{"sasl.mechanism", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"},
		{"sasl.jaas.config", "PlainLoginModule or ScramLoginModule with username=\"...\" password=\"...\";"},
		{"sasl.username", "user name, instead of sasl.jaas.config"},
		{"sasl.password", "password, instead of sasl.jaas.config"},
		{"ssl.truststore.type", "PEM, JKS or PKCS12; found out when it is not set"},
		{"ssl.truststore.location", "file with the certificates to trust"},
		{"ssl.truststore.password", "its password, for JKS and PKCS12"},
		{"ssl.truststore.certificates", "the certificates to trust themselves, PEM"},
		{"ssl.keystore.type", "PEM, JKS or PKCS12; found out when it is not set"},
		{"ssl.keystore.location", "file with own certificate and key"},
		{"ssl.keystore.password", "its password, for JKS and PKCS12"},
		{"ssl.key.password", "password of the key in it: of an encrypted PEM key, or where it is another one"},
		{"ssl.keystore.certificate.chain", "own certificate chain itself, PEM"},
		{"ssl.keystore.key", "own private key itself, PEM"},
		{"ssl.endpoint.identification.algorithm", "https checks the broker's name, empty does not"},
	}, zooKeeperPropertyNames())
}

// Check refuses unknown names, suggesting the nearest. Settings of Java clients that have no bearing on what
// kctl does are passed over, so that a client's file works as it is.
func (p Properties) Check() error {
	known := make([]string, 0, 20)
	for _, n := range PropertyNames() {
		known = append(known, n[0])
	}
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(known, name) || ofJavaClients(name) {
			continue
		}
		if e := explainUnknown(name, known); e != nil {
			return e
		}
		e := badInput("unknown setting %q", name)
		if near, ok := plan.Nearest(name, known); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		} else {
			e.Hint = "kctl -X list shows the settings"
		}
		return e
	}
	return nil
}

// ParseProperties reads a Java .properties file: comments, continuation lines, = or : or blanks as
// separator, and the escapes \t \n \r \f \\ \uXXXX.
func ParseProperties(r io.Reader) (Properties, error) {
	out, _, err := parseProperties(r)
	return out, err
}

// ReadProperties reads a Java .properties file as ParseProperties does, and refuses names that no Java client and
// not kctl know, with the line they stand in.
func ReadProperties(r io.Reader) (Properties, error) {
	out, lines, err := parseProperties(r)
	if err != nil {
		return nil, err
	}
	names := slices.SortedFunc(maps.Keys(out), func(a, b string) int { return lines[a] - lines[b] })
	for _, name := range names {
		if err := (Properties{name: ""}).Check(); err != nil {
			return nil, &Error{Kind: BadInput, Hint: HintOf(err), Msg: fmt.Sprintf("line %d: %v", lines[name], err)}
		}
	}
	return out, nil
}

// parseProperties also returns the line in which each setting begins.
func parseProperties(r io.Reader) (Properties, map[string]int, error) {
	out := Properties{}
	lines := map[string]int{}
	first := 0
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	var logical string
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimLeft(sc.Text(), " \t\f")
		if logical == "" && (line == "" || line[0] == '#' || line[0] == '!') {
			continue
		}
		if logical == "" {
			first = n
		}
		logical += line
		if continues(line) {
			logical = logical[:len(logical)-1]
			continue
		}
		key, value, err := splitProperty(logical)
		if err != nil {
			return nil, nil, badInput("line %d: %v", first, err)
		}
		if key != "" {
			out[key], lines[key] = value, first
		}
		logical = ""
	}
	if err := sc.Err(); err != nil {
		return nil, nil, badInput("reading properties: %v", err)
	}
	return out, lines, nil
}

// continues reports whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func splitProperty(line string) (key, value string, err error) {
	i := 0
	for ; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			break
		}
	}
	i = min(i, len(line))
	rest := strings.TrimLeft(line[i:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	if key, err = unescape(line[:i]); err != nil {
		return "", "", err
	}
	value, err = unescape(rest)
	return key, value, err
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+5 > len(s) {
				return "", errors.New(`\u needs four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", errors.New(`\u needs four hexadecimal digits`)
			}
			b.WriteRune(rune(n))
			i += 4
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// Apply turns the settings into cfg; fields that are already set win only where p does not name them.
func (p Properties) Apply(cfg *Config) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := p.applyAddresses(cfg); err != nil {
		return err
	}
	if err := p.applyZooKeeper(cfg); err != nil {
		return err
	}
	if v, ok := p["client.id"]; ok {
		cfg.ClientID = v
	}
	if v, ok := p["request.timeout.ms"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n <= 0 {
			return badInput("request.timeout.ms=%s is not a positive number of milliseconds", v)
		}
		cfg.Timeout = time.Duration(n) * time.Millisecond
	}
	return p.applySecurity(cfg)
}

func (p Properties) applyAddresses(cfg *Config) (err error) {
	if v, ok := p["bootstrap.servers"]; ok {
		if cfg.Bootstrap, err = ParseBootstrap(v); err != nil {
			return err
		}
	}
	if v, ok := p["zookeeper.connect"]; ok {
		if cfg.ZooKeeper, err = ParseZooKeeperAddress(v); err != nil {
			return err
		}
	}
	return nil
}

func (p Properties) applySecurity(cfg *Config) error {
	proto, given := p["security.protocol"]
	if !given {
		proto = "PLAINTEXT"
	}
	proto = strings.ToUpper(proto)
	if !slices.Contains([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, proto) {
		return badInput("security.protocol=%s is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", proto)
	}
	cfg.Security = proto
	if !given {
		if err := p.protocolForgotten(); err != nil {
			return err
		}
	}
	var err error
	if strings.HasSuffix(proto, "SSL") {
		if cfg.TLS, err = p.tlsConfig("ssl"); err != nil {
			return err
		}
	}
	if strings.HasPrefix(proto, "SASL_") {
		if cfg.SASL, err = p.saslMechanism(); err != nil {
			return err
		}
	}
	return nil
}

// protocolForgotten refuses settings of a login or of TLS when no protocol is chosen, which Java clients take for PLAINTEXT and say
// nothing. Beside a protocol that was chosen they are left alone, as there: it may override the one of a file.
func (p Properties) protocolForgotten() error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		switch {
		case strings.HasPrefix(name, "sasl."):
			return badInput("%s is set, but security.protocol is not, and PLAINTEXT does not use SASL: set security.protocol=SASL_SSL or SASL_PLAINTEXT", name)
		case strings.HasPrefix(name, "ssl."):
			return badInput("%s is set, but security.protocol is not, and PLAINTEXT does not use TLS: set security.protocol=SSL or SASL_SSL", name)
		}
	}
	return nil
}

func (p Properties) saslMechanism() (sasl.Mechanism, error) {
	user, pass, token := p["sasl.username"], p["sasl.password"], false
	mech := strings.ToUpper(p["sasl.mechanism"])
	if jaas, ok := p["sasl.jaas.config"]; ok {
		opts, err := parseJAAS(jaas)
		if err != nil {
			return nil, err
		}
		if err := checkModule(jaas, mech); err != nil {
			return nil, err
		}
		user, pass, token = opts["username"], opts["password"], opts["tokenauth"] == "true"
	}
	if user == "" {
		return nil, badInput("security.protocol=%s needs a user: set sasl.jaas.config, or sasl.username and sasl.password", p["security.protocol"])
	}
	switch mech {
	case "PLAIN":
		return plain.Auth{User: user, Pass: pass}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: pass, IsToken: token}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: pass, IsToken: token}.AsSha512Mechanism(), nil
	case "":
		return nil, badInput("sasl.mechanism is not set: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	}
	return nil, badInput("sasl.mechanism=%s is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", mech)
}

// checkModule refuses a login module that does not go with the mechanism, as a Java client would.
func checkModule(jaas, mech string) error {
	class, _, _ := strings.Cut(strings.TrimSpace(jaas), " ")
	name := class[strings.LastIndexByte(class, '.')+1:]
	want := map[string]string{"PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule"}
	switch {
	case name != "PlainLoginModule" && name != "ScramLoginModule":
		return badInput("sasl.jaas.config names the login module %s: PlainLoginModule and ScramLoginModule are known", name)
	case want[mech] != "" && want[mech] != name:
		return badInput("sasl.jaas.config names %s, but sasl.mechanism=%s goes with %s", name, mech, want[mech])
	}
	return nil
}

// tlsConfig reads the settings of TLS that begin with prefix: ssl for brokers, zookeeper.ssl for ZooKeeper.
func (p Properties) tlsConfig(prefix string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := p.trust(cfg, prefix); err != nil {
		return nil, err
	}
	if err := p.clientCertificate(cfg, prefix); err != nil {
		return nil, err
	}
	switch v, ok := p[prefix+".endpoint.identification.algorithm"]; {
	case ok && v == "":
		skipNameCheck(cfg)
	case ok && !strings.EqualFold(v, "https"):
		return nil, badInput("%s.endpoint.identification.algorithm=%s is neither https nor empty", prefix, v)
	}
	return cfg, nil
}

// trust sets the certificates that a server's is checked against; without any those of the system.
func (p Properties) trust(cfg *tls.Config, prefix string) error {
	var certs []*x509.Certificate
	s, err := p.readStore(prefix + ".truststore")
	if v, ok := p[prefix+".truststore.certificates"]; ok {
		certs, err = pemCertificates(loosePEM(v), prefix+".truststore.certificates")
	} else if s != nil {
		if certs, err = s.trusted(); err == nil && len(certs) == 0 {
			err = badInput("%s.location=%s holds no certificate", s.setting, s.file)
		}
	}
	if err != nil || certs == nil {
		return err
	}
	cfg.RootCAs = x509.NewCertPool()
	for _, c := range certs {
		cfg.RootCAs.AddCert(c)
	}
	return nil
}

// skipNameCheck verifies the chain but not the host name, as Java does with an empty algorithm.
func skipNameCheck(cfg *tls.Config) {
	roots := cfg.RootCAs
	cfg.InsecureSkipVerify = true // the chain is verified below
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range cs.PeerCertificates[1:] {
			opts.Intermediates.AddCert(c)
		}
		_, err := cs.PeerCertificates[0].Verify(opts)
		return err
	}
}

// passwordOfKey is the setting that opens a private key. ZooKeeper has one password for a store and the key in it.
func passwordOfKey(prefix string) string {
	if prefix == "ssl" {
		return "ssl.key.password"
	}
	return prefix + ".keystore.password"
}

// clientCertificate hands over the own certificate.
func (p Properties) clientCertificate(cfg *tls.Config, prefix string) error {
	var cert tls.Certificate
	s, err := p.readStore(prefix + ".keystore")
	chain, inline := p[prefix+".keystore.certificate.chain"]
	switch {
	case inline:
		cert, err = pemIdentity(loosePEM(chain), loosePEM(p["ssl.keystore.key"]), p["ssl.key.password"], "ssl.keystore.key and ssl.keystore.certificate.chain")
	case err == nil && s == nil:
		return nil
	case err == nil:
		cert, err = s.identity(p[passwordOfKey(prefix)])
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.Hint = strings.ReplaceAll(e.Hint, passwordOfKey("ssl"), passwordOfKey(prefix))
	}
	if err != nil {
		return err
	}
	// Handed over whoever signed it: a broker that refuses it says so, one that gets none only closes.
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	return nil
}
