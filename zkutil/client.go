package zkutil

import (
	"context"

	"kctl/zkutil/zkop"
)

// Client is a ZooKeeper connection that keeps a session alive and opens a new one after expiry.
//
// All methods may be called from any goroutine. Implementations: Connect (real servers); tests use the
// embedded server of zkutil/zkserver behind the same implementation.
type Client interface {
	// Do sends reqs pipelined, in order, and returns one response for each, in order. Only reads of different nodes that
	// stand beside each other may overtake one another. It blocks until all are answered, the connection breaks
	// (ErrOutcomeUnknown for those already sent) or ctx ends (likewise).
	// session is the Session.Epoch the caller believes in: when another session is current, nothing is sent
	// and every response holds ErrSessionExpired. AnySession skips that check.
	Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response

	// Session returns the current session.
	Session() Session

	// Subscribe returns a feed of every watch event and every session change, in the order in which the
	// client saw them. The feed never drops; its queue grows until it is read. Cancel ends it.
	Subscribe() (feed <-chan Notice, cancel func())

	// Close ends the session (ephemerals vanish at once) and releases everything.
	Close() error
}

// AnySession makes Do run in whatever session is current.
const AnySession uint64 = 0

// SessionState is what the client knows about its session.
type SessionState uint8

// The session states. Suspended: not connected, the session may still live. Presumed lost: no contact for
// two thirds of the timeout, so a holder of ephemerals must stop acting on them (the server may expire the
// session before the client learns of it).
const (
	Connecting SessionState = iota
	Connected
	Suspended
	PresumedLost
	Expired
	Closed
)

// Session describes one session of a Client. Epoch counts the sessions of this client, from 1.
type Session struct {
	Epoch uint64
	ID    int64
	State SessionState
}

// Notice is one entry of a feed: a watch event, or a change of the session when Watch is nil.
type Notice struct {
	Watch   *zkop.Event
	Session Session
}
