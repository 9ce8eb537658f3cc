package admin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// loginRefused explains a failure of the login itself; nil when err is something else.
func (c *Client) loginRefused(ctx context.Context, seeds []string, err error) error {
	mech := "none"
	if c.cfg.SASL != nil {
		mech = c.cfg.SASL.Name()
	}
	switch {
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		e := &Error{
			Kind: Unauthorized, Msg: "the listener does not offer the login mechanism " + mech,
			Hint: "set sasl.mechanism to one that the listener offers (sasl.enabled.mechanisms of the broker)",
		}
		if offered := c.offeredMechanisms(ctx, seeds); len(offered) > 0 {
			e.Msg += ": it offers " + strings.Join(offered, ", ")
			e.Hint = "set sasl.mechanism=" + offered[0] + " and sasl.jaas.config for it"
		}
		return e
	case errors.Is(err, kerr.IllegalSaslState):
		return &Error{
			Kind: Unauthorized, Msg: "the listener does not take a login", Err: err,
			Hint: "set security.protocol=" + strings.TrimPrefix(c.cfg.Security, "SASL_") + ", or use the port of the SASL listener",
		}
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		known := "that the user exists for " + mech + " (kctl users list)"
		if mech == "PLAIN" { // the brokers' own settings hold those
			known = "that the listener's sasl.jaas.config on the brokers has the user (user_NAME) for PLAIN"
		}
		return &Error{
			Kind: Unauthorized, Msg: fmt.Sprintf("the broker refused the login (%s)", mech), Err: err,
			Hint: "check the user and password of sasl.jaas.config, and " + known,
		}
	case isAuthorization(err):
		return &Error{Kind: Unauthorized, Msg: "not allowed", Err: err, Hint: "the user lacks a permission: kctl acls list shows what it may do"}
	}
	return nil
}

// offeredMechanisms asks with a handshake for a mechanism that nobody has: the refusal lists those there are.
func (c *Client) offeredMechanisms(ctx context.Context, seeds []string) []string {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	for _, addr := range seeds {
		conn, err := c.dial(ctx, "tcp", addr)
		if err != nil {
			continue
		}
		if d, ok := ctx.Deadline(); ok {
			_ = conn.SetDeadline(d)
		}
		r, err := askMechanisms(conn)
		_ = conn.Close()
		if err == nil && len(r.SupportedMechanisms) > 0 {
			return r.SupportedMechanisms
		}
	}
	return nil
}

// answerMax bounds an answer that is read without the client library.
const answerMax = 64 << 10

func askMechanisms(conn io.ReadWriter) (*kmsg.SASLHandshakeResponse, error) {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Version, req.Mechanism = 1, "NONE"
	out := []byte{0, 0, 0, 0, 0, byte(req.Key()), 0, 1, 0, 0, 0, 1, 0xff, 0xff}
	out = req.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	if _, err := conn.Write(out); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 4 || n > answerMax {
		return nil, io.ErrUnexpectedEOF
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrSASLHandshakeResponse()
	resp.Version = 1
	return resp, resp.ReadFrom(body[4:])
}
