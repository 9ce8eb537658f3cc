// Package zkop describes ZooKeeper requests, responses and watch events as plain data.
//
// The pure cores emit Requests as effects and receive Responses as events; the zkutil client runs them
// against a server, the simulation against the embedded server's tree. It imports no I/O.
package zkop

import "errors"

// Kind is the operation of a Request.
type Kind uint8

// The operations. Multi runs its Ops atomically; Create, Delete, Set and Check may be inside one.
const (
	Get Kind = iota + 1
	Exists
	Children
	Create
	Set
	Delete
	Check
	Multi
	Sync
	GetACL
	SetACL // the embedded server and its tree; clients answer ErrBadArguments. Version is the expected aversion
)

// Mode is the kind of a created node.
type Mode uint8

// The create modes.
const (
	Persistent Mode = iota
	Ephemeral
	PersistentSequential
	EphemeralSequential
	Container     // deleted by the server some time after its last child went
	PersistentTTL // deleted when unmodified for Request.TTL and without children
	PersistentSequentialTTL
)

// AnyVersion makes Set, Delete and Check ignore the node's version.
const AnyVersion int32 = -1

// ACL is one entry of a node's access list.
type ACL struct {
	Perms  int32 // bit set of PermRead and the others
	Scheme string
	ID     string
}

// Permission bits of an ACL.
const (
	PermRead int32 = 1 << iota
	PermWrite
	PermCreate
	PermDelete
	PermAdmin
	PermAll int32 = 0x1f
)

// WorldAll is the open ACL: anyone may do everything. A Create without ACL uses it.
func WorldAll() []ACL { return []ACL{{Perms: PermAll, Scheme: "world", ID: "anyone"}} }

// Request is one operation. Path is absolute within the client's chroot. Data nil creates a node with
// null data, as Kafka's own persistent paths are. Version is used by Set, Delete and Check. Watch leaves
// a one-shot watch and is used by Get, Exists and Children.
type Request struct {
	Kind    Kind
	Path    string
	Data    []byte
	Version int32
	Mode    Mode
	ACL     []ACL
	Watch   bool
	TTL     int64 // milliseconds, for the TTL modes
	Ops     []Request
}

// Response answers one Request. Err is nil or one of this package's errors (possibly wrapped).
type Response struct {
	Err      error
	Path     string // Create: the created path, with the sequence number
	Data     []byte
	Stat     Stat
	Children []string   // unsorted as the server sent them
	ACL      []ACL      // GetACL
	Results  []Response // Multi: one per op; after a failure the others hold ErrRolledBack
}

// Stat is ZooKeeper's node status. Times are milliseconds since the Unix epoch.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// The errors of operations. ErrOutcomeUnknown means that the connection broke before the reply: a write
// may or may not have been applied and must be read back, never blindly retried.
var (
	ErrNoNode                 = errors.New("zookeeper: node does not exist")
	ErrNodeExists             = errors.New("zookeeper: node already exists")
	ErrBadVersion             = errors.New("zookeeper: version does not match")
	ErrNotEmpty               = errors.New("zookeeper: node has children")
	ErrNoChildrenForEphemeral = errors.New("zookeeper: an ephemeral node cannot have children")
	ErrNoAuth                 = errors.New("zookeeper: not authorised")
	ErrInvalidACL             = errors.New("zookeeper: invalid ACL")
	ErrBadArguments           = errors.New("zookeeper: bad arguments")
	ErrUnimplemented          = errors.New("zookeeper: operation not supported by the server")
	ErrRolledBack             = errors.New("zookeeper: rolled back with the rest of the multi")
	ErrSessionExpired         = errors.New("zookeeper: session expired")
	ErrSessionMoved           = errors.New("zookeeper: session moved to another server")
	ErrOutcomeUnknown         = errors.New("zookeeper: connection lost, outcome unknown")
	ErrTooLarge               = errors.New("zookeeper: request larger than jute.maxbuffer")
	ErrClosed                 = errors.New("zookeeper: client closed")
)

// EventType says what a watch saw.
type EventType uint8

// The watch event types.
const (
	NodeCreated EventType = iota + 1
	NodeDeleted
	NodeDataChanged
	NodeChildrenChanged
)

// Event is one fired watch. Path is within the client's chroot.
type Event struct {
	Type EventType
	Path string
}
