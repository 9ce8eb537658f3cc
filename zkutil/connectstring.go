package zkutil

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ConnectString is a parsed zookeeper.connect.
type ConnectString struct {
	Servers []string // host:port, brackets around IPv6
	Chroot  string   // "" or "/a/b"
}

// String writes it back in Kafka's form.
func (c ConnectString) String() string { return strings.Join(c.Servers, ",") + c.Chroot }

const defaultPort = "2181"

// ParseConnectString reads "h1:2181,h2:2181/chroot". A trailing slash is dropped. A chroot behind each
// server, which ZooKeeper's own client silently misreads, is ErrConnectString with the corrected text.
func ParseConnectString(s string) (ConnectString, error) {
	s = strings.TrimSpace(s)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		return ConnectString{}, fmt.Errorf("%w %q: it has no scheme: write %q", ErrConnectString, s, rest)
	}
	servers, chroot := s, ""
	if i := strings.IndexByte(s, '/'); i >= 0 {
		servers, chroot = s[:i], s[i:]
	}
	if strings.Contains(chroot, ",") {
		return ConnectString{}, repeatedChroot(s)
	}
	chroot, err := cleanChroot(chroot)
	if err != nil {
		return ConnectString{}, fmt.Errorf("%w %q: %w", ErrConnectString, s, err)
	}
	c := ConnectString{Chroot: chroot}
	for _, item := range strings.Split(servers, ",") {
		addr, err := serverAddress(strings.TrimSpace(item))
		if err != nil {
			return ConnectString{}, fmt.Errorf("%w %q: %w", ErrConnectString, s, err)
		}
		c.Servers = append(c.Servers, addr)
	}
	return c, nil
}

// repeatedChroot explains what to write instead of h1:2181/kc,h2:2181/kc.
func repeatedChroot(s string) error {
	var servers []string
	chroots := map[string]bool{}
	last := ""
	for _, item := range strings.Split(s, ",") {
		server, chroot, _ := strings.Cut(strings.TrimSpace(item), "/")
		if server != "" {
			servers = append(servers, server)
		}
		if chroot = strings.TrimRight(chroot, "/"); chroot != "" {
			chroots[chroot] = true
			last = "/" + chroot
		}
	}
	if len(chroots) > 1 {
		return fmt.Errorf("%w %q: the servers name different chroots; there is one chroot, behind the last server",
			ErrConnectString, s)
	}
	return fmt.Errorf("%w %q: the chroot stands once, behind the last server: write %q",
		ErrConnectString, s, strings.Join(servers, ",")+last)
}

func cleanChroot(chroot string) (string, error) {
	chroot = strings.TrimRight(chroot, "/")
	if chroot == "" {
		return "", nil
	}
	for _, part := range strings.Split(chroot[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("chroot %q has an empty or dotted element", chroot)
		}
	}
	for _, r := range chroot {
		if r < 0x20 || r == 0x7f || r == ' ' {
			return "", fmt.Errorf("chroot %q has a blank or control character", chroot)
		}
	}
	return chroot, nil
}

func serverAddress(item string) (string, error) {
	if item == "" {
		return "", fmt.Errorf("a server is empty")
	}
	host, port, err := net.SplitHostPort(item)
	switch {
	case err == nil:
	case strings.HasPrefix(item, "[") && strings.HasSuffix(item, "]"):
		host, port = item[1:len(item)-1], defaultPort
	case strings.Count(item, ":") > 1:
		return "", fmt.Errorf("server %q: an IPv6 address stands in brackets, as in [::1]:2181", item)
	case !strings.Contains(item, ":"):
		host, port = item, defaultPort
	default:
		return "", fmt.Errorf("server %q is not host:port", item)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("server %q: %q is not a port", item, port)
	}
	if host == "" || strings.ContainsAny(host, " \t[]@?") {
		return "", fmt.Errorf("server %q: bad host", item)
	}
	return net.JoinHostPort(host, port), nil
}
