package zkutil

import (
	"errors"
	"fmt"

	"kctl/zkutil/zkop"
)

// The errors of Connect and of the connection, beside those of zkop.
var (
	// ErrConnectString is a connect string that cannot be meant; the text says what to write instead.
	ErrConnectString = errors.New("bad ZooKeeper connect string")
	// ErrUnreachable: no server of the list accepted a connection and opened a session in time. The text
	// names each server with what went wrong.
	ErrUnreachable = errors.New("ZooKeeper is not reachable")
	// ErrNotZooKeeper: something answered that does not speak ZooKeeper's protocol.
	ErrNotZooKeeper = errors.New("not a ZooKeeper server")
	// ErrKafkaBroker: the address is that of a Kafka broker; it is also ErrNotZooKeeper.
	ErrKafkaBroker = fmt.Errorf("%w but a Kafka broker", ErrNotZooKeeper)
	// ErrAuthFailed: the server refused a credential.
	ErrAuthFailed = errors.New("ZooKeeper refused the credentials")
	// ErrNoChroot: the chroot of the connect string does not exist.
	ErrNoChroot = errors.New("the ZooKeeper chroot does not exist")
	// ErrNotSent: the request was not handed to a connection. It is also ErrOutcomeUnknown, so a caller
	// that reads back in that case is right; one that knows the difference may send it again.
	ErrNotSent = fmt.Errorf("not sent: %w", zkop.ErrOutcomeUnknown)
)
