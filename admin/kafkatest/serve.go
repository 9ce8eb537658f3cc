package kafkatest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame bounds the requests that are read, in bytes.
const maxFrame = 64 << 20

// EachConn handles the connections of a listener beside each other until the test ends. One after the other would not do: kctl
// asks several questions at once, each over a connection of its own, and one that is not answered would hold back the others.
func EachConn(t testing.TB, ln net.Listener, handle func(net.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	open, over := map[net.Conn]bool{}, false
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if over {
				_ = conn.Close()
			}
			open[conn] = true
			mu.Unlock()
			wg.Go(func() { defer conn.Close(); handle(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		over = true
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
}

// Then is what becomes of a connection after a request.
type Then uint8

const (
	Answer Then = iota // the response is sent
	Ignore             // nothing is, as by a broker that fails over a request
	HangUp             // the connection is closed
)

// Serve reads requests from conn and sends what answer makes of them, in the version of the request unless the response of
// ApiVersions has set its own, until the connection ends. answer is called from the goroutines of several connections.
func Serve(conn net.Conn, answer func(kmsg.Request) (kmsg.Response, Then)) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[:])
		if size < 10 || size > maxFrame {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		req := parse(body)
		if req == nil {
			return
		}
		resp, then := answer(req)
		switch then {
		case Ignore:
			continue
		case HangUp:
			return
		case Answer:
		}
		if _, err := conn.Write(frame(body[4:8], req, resp)); err != nil {
			return
		}
	}
}

// parse decodes a request; one of ApiVersions in a version that nobody knows has no body.
func parse(body []byte) kmsg.Request {
	req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(body)))
	if req == nil {
		return nil
	}
	req.SetVersion(int16(binary.BigEndian.Uint16(body[2:])))
	if req.Key() == int16(kmsg.ApiVersions) {
		return req
	}
	rest := body[8:]
	if n := int(int16(binary.BigEndian.Uint16(rest))); n > len(rest)-2 {
		return nil
	} else if n > 0 {
		rest = rest[n:]
	}
	if rest = rest[2:]; req.IsFlexible() {
		if len(rest) == 0 {
			return nil
		}
		rest = rest[1:] // no tags in the header
	}
	if req.ReadFrom(rest) != nil {
		return nil
	}
	return req
}

func frame(correlation []byte, req kmsg.Request, resp kmsg.Response) []byte {
	out := append([]byte{0, 0, 0, 0}, correlation...)
	if resp.Key() != int16(kmsg.ApiVersions) {
		if resp.SetVersion(req.GetVersion()); resp.IsFlexible() {
			out = append(out, 0)
		}
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}
