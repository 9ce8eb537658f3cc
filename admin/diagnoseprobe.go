package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// spoken is what an address speaks.
type spoken uint8

const (
	nothingSpoken spoken = iota
	zookeeperSpoken
	kafkaSpoken
	tlsSpoken
)

// spokenBy tries the languages at once, each over a connection of its own, until one is answered or the time is over.
func spokenBy(ctx context.Context, addr string) spoken {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	probes := []struct {
		language spoken
		ask      func(context.Context, string) bool
	}{{zookeeperSpoken, isZooKeeper}, {kafkaSpoken, speaksKafka}, {tlsSpoken, speaksTLS}}
	answers := make(chan spoken, len(probes))
	for _, p := range probes {
		go func() {
			if p.ask(ctx, addr) {
				answers <- p.language
				return
			}
			answers <- nothingSpoken
		}()
	}
	found := nothingSpoken
	for range probes { // all of them are waited for: none outlives this call
		if a := <-answers; a != nothingSpoken && found == nothingSpoken {
			found = a
			cancel()
		}
	}
	return found
}

// exchange sends bytes and returns the first part of the answer, bounded in size and by ctx.
func exchange(ctx context.Context, addr string, send []byte) []byte {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	return exchangeOver(ctx, conn, send)
}

func exchangeOver(ctx context.Context, conn net.Conn, send []byte) []byte {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write(send); err != nil {
		return nil
	}
	buf := make([]byte, 256)
	n, _ := io.ReadAtLeast(conn, buf, 8)
	return buf[:n]
}

// isZooKeeper sends a four-letter word: a server answers it, or says that it is not in its whitelist.
func isZooKeeper(ctx context.Context, addr string) bool {
	a := exchange(ctx, addr, []byte("srvr"))
	return bytes.HasPrefix(a, []byte("Zookeeper version")) || bytes.Contains(a, []byte("srvr is not executed")) ||
		bytes.HasPrefix(a, []byte("This ZooKeeper instance"))
}

// probeCorrelation is the number that a broker's answer to versionsProbe carries.
const probeCorrelation = 0x6b63746c

// versionsProbe is ApiVersions v0, which every listener answers, before a login too.
func versionsProbe() []byte {
	req := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff}
	binary.BigEndian.PutUint32(req[8:], probeCorrelation)
	return req
}

func isKafkaAnswer(a []byte) bool {
	return len(a) >= 8 && binary.BigEndian.Uint32(a[4:]) == probeCorrelation
}

func speaksKafka(ctx context.Context, addr string) bool {
	return isKafkaAnswer(exchange(ctx, addr, versionsProbe()))
}

// kafkaOverTLS reports whether a broker stands behind TLS, with the certificates of the configuration.
func (c *Client) kafkaOverTLS(ctx context.Context, addr string) bool {
	conn, err := c.dial(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	return isKafkaAnswer(exchangeOver(ctx, conn, versionsProbe()))
}

func speaksTLS(ctx context.Context, addr string) bool {
	// Only whether a handshake starts is of interest; nothing is sent over this connection.
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", addr)
	if err != nil {
		_, isAlert := errors.AsType[tls.AlertError](err)
		var op *net.OpError
		return isAlert || errors.As(err, &op) && op.Op == "remote error"
	}
	_ = conn.Close()
	return true
}
