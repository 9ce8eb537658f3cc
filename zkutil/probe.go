package zkutil

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// isHandshakeFailure tells a server that took the connection and then did not open a session from one that
// could not be dialled.
func isHandshakeFailure(err error) bool {
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

// probeKafka asks a server that is not ZooKeeper whether it is a Kafka broker: ApiVersions version 0 is
// answered by every broker, on plain and on TLS listeners, before any login.
func probeKafka(ctx context.Context, cfg Config, server string) bool {
	const limit = time.Second
	const correlation = 0x6b63746c
	nc, err := dialWithin(ctx, cfg, server, limit)
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Now().Add(limit / 4)) })
	defer stop()
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(limit))
	req := binary.BigEndian.AppendUint32(nil, 14)
	req = binary.BigEndian.AppendUint16(req, 18)
	req = binary.BigEndian.AppendUint16(req, 0)
	req = binary.BigEndian.AppendUint32(req, correlation)
	req = binary.BigEndian.AppendUint16(req, 4)
	req = append(req, "kctl"...)
	if _, err := nc.Write(req); err != nil {
		return false
	}
	var head [8]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return false
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	return size >= 4 && size < 1<<20 && binary.BigEndian.Uint32(head[4:]) == correlation
}
