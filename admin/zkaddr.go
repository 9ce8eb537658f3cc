package admin

import (
	"net"
	"strings"
	"unicode"
)

// ZooKeeperAddress is a parsed connect string: servers as host:port, and the chroot ("" or "/path").
type ZooKeeperAddress struct {
	Servers []string
	Chroot  string
}

// String writes the connect string in its one correct form.
func (a ZooKeeperAddress) String() string { return strings.Join(a.Servers, ",") + a.Chroot }

// ParseZooKeeperAddress reads HOST[:PORT],HOST[:PORT]/chroot as Kafka does: the chroot stands once, at the
// end. A chroot behind each server is refused with the corrected string. The default port is 2181; IPv6
// addresses stand in brackets; one trailing slash is ignored.
func ParseZooKeeperAddress(s string) (ZooKeeperAddress, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return ZooKeeperAddress{}, badInput("the ZooKeeper address is empty: the form is HOST:PORT,HOST:PORT/chroot")
	}
	var a ZooKeeperAddress
	chroots := map[string]bool{}
	parts := strings.Split(s, ",")
	for i, part := range parts {
		part = strings.TrimSpace(part)
		host, chroot, has := strings.Cut(part, "/")
		if host == "" {
			return a, badInput("ZooKeeper address %q: server %d is empty: the form is HOST:PORT,HOST:PORT/chroot", s, i+1)
		}
		server, err := hostPort(host, "2181")
		if err != nil {
			return a, badInput("ZooKeeper address %q: %v", s, err)
		}
		a.Servers = append(a.Servers, server)
		if has && i < len(parts)-1 {
			chroots["/"+strings.Trim(chroot, "/")] = true
		}
		if has {
			a.Chroot = "/" + strings.Trim(chroot, "/")
		}
	}
	if a.Chroot == "/" {
		a.Chroot = ""
	}
	if strings.TrimSpace(a.Chroot) != a.Chroot {
		return a, badInput("ZooKeeper address %q: the chroot ends with a blank", s)
	}
	if strings.Contains(a.Chroot, "//") {
		return a, badInput("ZooKeeper address %q: the chroot has an empty element", s)
	}
	if len(chroots) > 0 {
		fixed := a
		if fixed.Chroot == "" {
			for c := range chroots {
				fixed.Chroot = strings.TrimSuffix(c, "/")
			}
		}
		return a, badInput("ZooKeeper address %q has a chroot before its end: it stands once, behind the last server: %s", s, fixed)
	}
	return a, nil
}

// ParseBootstrap reads HOST[:PORT],...; the default port is 9092. Empty items are refused.
func ParseBootstrap(s string) ([]string, error) {
	var out []string
	for i, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, badInput("bootstrap server %d in %q is empty: the form is HOST:PORT,HOST:PORT", i+1, s)
		}
		if _, rest, ok := strings.Cut(part, "://"); ok {
			part = rest // a listener as it stands in server.properties
		}
		if strings.Contains(part, "/") {
			return nil, badInput("bootstrap server %q has a path; a ZooKeeper address belongs to --zookeeper", part)
		}
		addr, err := hostPort(part, "9092")
		if err != nil {
			return nil, badInput("bootstrap server %q: %v", part, err)
		}
		out = append(out, addr)
	}
	return out, nil
}

func hostPort(s, defaultPort string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		bare := strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
		if strings.HasPrefix(s, "[") != strings.HasSuffix(s, "]") || strings.Contains(bare, ":") && !strings.HasPrefix(s, "[") {
			return "", badInput("%q is not HOST:PORT (an IPv6 address stands in brackets: [::1]:%s)", s, defaultPort)
		}
		host, port = bare, defaultPort
	}
	if host == "" {
		return "", badInput("%q has no host", s)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", badInput("%q is not HOST:PORT: its host has a blank", s)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n < 1 {
		return "", badInput("%q: port %q is not between 1 and 65535", s, port)
	}
	addr := net.JoinHostPort(host, port)
	if h, p, err := net.SplitHostPort(addr); err != nil || h != host || p != port {
		return "", badInput("%q is not HOST:PORT", s)
	}
	return addr, nil
}
