package zktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy forwards TCP connections to one target and can be told to fail. Its methods may be called from any
// goroutine.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex // guards the rest
	cond   *sync.Cond
	conns  map[net.Conn]struct{}
	silent bool // nothing is forwarded in either direction
	mute   bool // replies are not forwarded
	refuse bool // new connections are closed at once
	closed bool
	held   int // forwards that wait for the end of silence or muteness
}

// NewProxy starts a proxy to target; it ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listener: l, conns: map[net.Conn]struct{}{}}
	p.cond = sync.NewCond(&p.mu)
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut closes every connection that there is; new ones are taken.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Silence stops all forwarding, also on new connections, without closing anything: a cut cable.
func (p *Proxy) Silence() { p.change(func() { p.silent = true }) }

// Mute forwards requests and holds every reply back.
func (p *Proxy) Mute() { p.change(func() { p.mute = true }) }

// Refuse closes new connections at once and cuts those there are.
func (p *Proxy) Refuse() {
	p.change(func() { p.refuse = true })
	p.Cut()
}

// Retarget sends new connections to another address.
func (p *Proxy) Retarget(addr string) { p.change(func() { p.target = addr }) }

// Heal ends silence, muteness and refusal.
func (p *Proxy) Heal() { p.change(func() { p.silent, p.mute, p.refuse = false, false, false }) }

// Holds reports whether something has been sent through the proxy that it now holds back.
func (p *Proxy) Holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held > 0
}

func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.cond.Broadcast()
}

func (p *Proxy) close() {
	p.change(func() { p.closed = true })
	_ = p.listener.Close()
	p.Cut()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse, target := p.refuse || p.closed, p.target
		p.mu.Unlock()
		if refuse {
			_ = c.Close()
			continue
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = c.Close()
			continue
		}
		p.add(c, server)
		p.work.Go(func() { p.forward(server, c, false) })
		p.work.Go(func() { p.forward(c, server, true) })
	}
}

func (p *Proxy) add(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
		if p.closed {
			_ = c.Close()
		}
	}
}

func (p *Proxy) drop(conns ...net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
	p.cond.Broadcast()
}

func (p *Proxy) forward(to, from net.Conn, reply bool) {
	defer p.drop(to, from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.mayPass(from, reply) {
				return
			}
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				p.mayPass(from, reply)
			}
			return
		}
	}
}

// mayPass blocks while forwarding is off; false when the connection has been dropped meanwhile.
func (p *Proxy) mayPass(from net.Conn, reply bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.silent || reply && p.mute) && !p.closed {
		if _, ok := p.conns[from]; !ok {
			return false
		}
		p.held++
		p.cond.Wait()
		p.held--
	}
	return !p.closed
}
