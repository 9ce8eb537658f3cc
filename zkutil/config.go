package zkutil

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"
)

// Config says how to reach ZooKeeper. Connect is required, the rest has defaults.
type Config struct {
	// Connect is Kafka's zookeeper.connect: "h1:2181,h2:2181/chroot". IPv6 addresses stand in brackets.
	// Port 2181 is assumed where none is given.
	Connect string
	// CreateChroot makes the chroot's nodes when they are missing, as a broker does. When false (a tool
	// that only looks) a missing chroot is ErrNoChroot: it never shows an empty cluster.
	CreateChroot bool
	// KeepTrying makes Connect go on until its context ends when no server can be reached, as a broker
	// does. When false, it fails as soon as every server has been tried once.
	KeepTrying bool
	// SessionTimeout is what is asked of the server, which may change it; 18 s by default, as in Kafka.
	SessionTimeout time.Duration
	// ConnectTimeout bounds the dial, TLS and session handshake with one server; 5 s by default.
	ConnectTimeout time.Duration
	// Auth is presented on every new connection before anything else.
	Auth []Auth
	// TLS wraps every connection when it is not nil. ServerName defaults to the host dialled.
	TLS *tls.Config
	// Dialer makes the TCP connections; a net.Dialer by default.
	Dialer Dialer
	// MaxRequestBytes is jute.maxbuffer of the servers: a larger request is ErrTooLarge, unsent. 1 MiB less
	// one byte by default.
	MaxRequestBytes int
	// MaxResponseBytes bounds what is read; 64 MiB by default, so that large child lists can be shown.
	MaxResponseBytes int
	// Logger is used for connection and session changes; silent when nil.
	Logger *slog.Logger
}

// Auth is one credential: scheme "digest" takes "user:password".
type Auth struct {
	Scheme     string
	Credential []byte
}

// Dialer opens TCP connections; net.Dialer is one.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	if c.SessionTimeout <= 0 {
		c.SessionTimeout = 18 * time.Second
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	if c.Dialer == nil {
		c.Dialer = &net.Dialer{}
	}
	if c.MaxRequestBytes <= 0 {
		c.MaxRequestBytes = 0xfffff
	}
	if c.MaxResponseBytes <= 0 {
		c.MaxResponseBytes = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
