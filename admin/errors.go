package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

// Kind sorts errors by what a caller can do about them.
type Kind uint8

// The kinds of errors.
const (
	Failed       Kind = iota // the cluster refused or the operation went wrong
	BadInput                 // nothing was contacted or written
	NotFound                 // a named topic, partition, broker or znode does not exist
	Unauthorized             // the principal may not do this
	Unreachable              // nobody answered, or not in time
)

// Error is an error of this package: what was tried, the cause, and what to do (Hint, may be empty).
type Error struct {
	Kind Kind
	Msg  string
	Hint string
	Err  error
}

// Error returns what was tried and the cause; the hint is printed apart.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func badInput(format string, args ...any) *Error {
	return &Error{Kind: BadInput, Msg: fmt.Sprintf(format, args...)}
}

// NewBadInput makes an error about input that was refused before anything was contacted.
func NewBadInput(err error) *Error { return &Error{Kind: BadInput, Msg: err.Error()} }

// KindOf returns the kind of err; errors of other packages are sorted by their cause.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return classify(err)
}

// HintOf returns the hint of err, if it has one. What an authorizer refuses has one always.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Hint != "" {
		return e.Hint
	}
	if d, ok := errors.AsType[*denial](err); ok {
		return d.hint()
	}
	if d, ok := errors.AsType[*zkDenial](err); ok {
		return d.hint
	}
	if errors.Is(err, kerr.RequestTimedOut) {
		return "the broker waited in vain, for the controller, for ZooKeeper or for other replicas: kctl doctor; look before you repeat a change"
	}
	if isAuthorization(err) && !errors.Is(err, zkop.ErrNoAuth) {
		return "the user lacks a permission: an administrator sees its rules with kctl acls list --principal User:NAME, and gives one with kctl acls create"
	}
	return ""
}

func classify(err error) Kind {
	if isAuthorization(err) {
		return Unauthorized
	}
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isNet, errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, zkop.ErrOutcomeUnknown),
		errors.Is(err, kerr.RequestTimedOut): // what the broker waited for did not answer it
		return Unreachable
	case errors.Is(err, zkop.ErrNoNode), errors.Is(err, kerr.UnknownTopicOrPartition):
		return NotFound
	}
	return Failed
}

func isAuthorization(err error) bool {
	for _, e := range []error{
		kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.TransactionalIDAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.DelegationTokenAuthorizationFailed,
		zkop.ErrNoAuth, zkutil.ErrAuthFailed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// wrap says what was tried; the kind comes from the cause. An *Error in err keeps its kind and hint.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	msg := fmt.Sprintf(format, args...)
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Kind: e.Kind, Hint: e.Hint, Msg: msg, Err: err}
	}
	return &Error{Kind: classify(err), Msg: msg, Err: err}
}

// printedRequest begins what Apache Kafka says of a refusal by its authorizer in many requests on the cluster: the request as Java
// prints it, with addresses of memory, several hundred characters long.
const printedRequest = "Request Request("

// brokerErr makes an error from the Kafka error code and the message (may be nil) in the answer to a request of that key,
// nil for code 0. A refusal by the authorizer says which permission the request needs.
func brokerErr(key kmsg.Key, code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	if message != nil && *message != "" && !strings.HasPrefix(*message, printedRequest) {
		err = &refusal{err, *message}
	}
	return needs(key, err)
}

// refusal is a Kafka error with the broker's own words instead of the general ones.
type refusal struct {
	err  error
	said string
}

func (r *refusal) Error() string {
	if ke, ok := errors.AsType[*kerr.Error](r.err); ok {
		return ke.Message + ": " + r.said
	}
	return r.err.Error() + ": " + r.said
}

func (r *refusal) Unwrap() error { return r.err }

// short is the cause of a failed request in one line, without the library's wrapping.
func short(err error) string {
	if err == nil {
		return ""
	}
	if d, ok := errors.AsType[*denial](err); ok {
		return short(d.err) + " (it takes " + d.what() + ")"
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke.Message
	}
	if a, ok := errors.AsType[*advertisedError](err); ok {
		return a.Error()
	}
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dns):
		return "unknown host " + dns.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &op) && op.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF):
		return "connection closed by the broker"
	}
	return err.Error()
}
