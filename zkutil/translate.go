package zkutil

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"kctl/zkutil/zkop"
)

// rooted puts the chroot in front of a request's paths.
func rooted(chroot string, req zkop.Request) zkop.Request {
	if chroot == "" {
		return req
	}
	req.Path = underRoot(chroot, req.Path)
	if len(req.Ops) > 0 {
		ops := make([]zkop.Request, len(req.Ops))
		for i, op := range req.Ops {
			op.Path = underRoot(chroot, op.Path)
			ops[i] = op
		}
		req.Ops = ops
	}
	return req
}

func underRoot(chroot, path string) string {
	if path == "/" {
		return chroot
	}
	return chroot + path
}

// withoutRoot is the reverse; ok is false for a path outside the chroot.
func withoutRoot(chroot, path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, chroot)
	switch {
	case !ok:
		return path, false
	case rest == "":
		return "/", true
	}
	return rest, rest[0] == '/'
}

// check refuses what must not be sent; the path is as the caller gave it.
func check(req zkop.Request) error {
	switch req.Kind {
	case zkop.Get, zkop.Exists, zkop.Children, zkop.Create, zkop.Set, zkop.Delete, zkop.Check, zkop.Sync, zkop.GetACL:
		return checkPath(req)
	case zkop.Multi:
		for _, op := range req.Ops {
			switch op.Kind {
			case zkop.Create, zkop.Set, zkop.Delete, zkop.Check:
			default:
				return fmt.Errorf("%w: operation %d cannot be part of a multi", zkop.ErrBadArguments, op.Kind)
			}
			if err := checkPath(op); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: unknown operation %d", zkop.ErrBadArguments, req.Kind)
}

func checkPath(req zkop.Request) error {
	sequential := req.Kind == zkop.Create && (req.Mode == zkop.PersistentSequential || req.Mode == zkop.EphemeralSequential)
	switch p := req.Path; {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("%w: path %q does not start with /", zkop.ErrBadArguments, p)
	case len(p) > 1 && strings.HasSuffix(p, "/") && !sequential, strings.Contains(p, "//"):
		return fmt.Errorf("%w: path %q has an empty element", zkop.ErrBadArguments, p)
	case strings.Contains(p, watchMark):
		return fmt.Errorf("%w: path %q holds a noncharacter", zkop.ErrBadArguments, p)
	case req.Mode > zkop.EphemeralSequential:
		return fmt.Errorf("%w: create mode %d", zkop.ErrBadArguments, req.Mode)
	}
	return nil
}

func checkSize(req zkop.Request, maxBytes int) error {
	if n := encodedSize(req); n > maxBytes {
		return fmt.Errorf("%w: %d bytes for %s, at most %d", zkop.ErrTooLarge, n, req.Path, maxBytes)
	}
	return nil
}

// encodedSize is the length of the packet, without its length prefix.
func encodedSize(req zkop.Request) int {
	if req.Kind != zkop.Multi {
		return 8 + bodySize(req)
	}
	n := 8 + 9
	for _, op := range req.Ops {
		n += 9 + bodySize(op)
	}
	return n
}

func bodySize(req zkop.Request) int {
	n := 4 + len(req.Path)
	switch req.Kind {
	case zkop.Create:
		n += 4 + len(req.Data) + 4 + 4
		for _, a := range aclOf(req) {
			n += 4 + 4 + len(a.Scheme) + 4 + len(a.ID)
		}
	case zkop.Set:
		n += 4 + len(req.Data) + 4
	case zkop.Delete, zkop.Check:
		n += 4
	case zkop.Get, zkop.Exists, zkop.Children:
		n++
	}
	return n
}

func aclOf(req zkop.Request) []zkop.ACL {
	if len(req.ACL) == 0 {
		return zkop.WorldAll()
	}
	return req.ACL
}

func zkACL(req zkop.Request) []zk.ACL {
	list := aclOf(req)
	out := make([]zk.ACL, len(list))
	for i, a := range list {
		out[i] = zk.ACL(a)
	}
	return out
}

// run makes the go-zk call for a request and blocks until it is answered.
func run(c *zk.Conn, req zkop.Request) zkop.Response {
	switch req.Kind {
	case zkop.Get:
		return runGet(c, req)
	case zkop.Exists:
		return runExists(c, req)
	case zkop.Children:
		return runChildren(c, req)
	case zkop.Create:
		path, err := c.Create(req.Path, req.Data, int32(req.Mode), zkACL(req))
		return zkop.Response{Path: path, Err: translate(err)}
	case zkop.Set:
		stat, err := c.Set(req.Path, req.Data, req.Version)
		return respond(stat, err)
	case zkop.Delete:
		return zkop.Response{Err: translate(c.Delete(req.Path, req.Version))}
	case zkop.Sync:
		_, err := c.Sync(req.Path)
		return zkop.Response{Err: translate(err)}
	case zkop.GetACL:
		return runGetACL(c, req)
	case zkop.Check:
		r := runMulti(c, []zkop.Request{req})
		return zkop.Response{Err: r.Err}
	case zkop.Multi:
		return runMulti(c, req.Ops)
	}
	return zkop.Response{Err: zkop.ErrBadArguments}
}

func respond(stat *zk.Stat, err error) zkop.Response {
	r := zkop.Response{Err: translate(err)}
	if err == nil && stat != nil {
		r.Stat = zkop.Stat(*stat)
	}
	return r
}

// readPath carries the wish for a watch to wireConn.
func readPath(req zkop.Request) string {
	if req.Watch {
		return req.Path + watchMark
	}
	return req.Path
}

func runGet(c *zk.Conn, req zkop.Request) zkop.Response {
	data, stat, err := c.Get(readPath(req))
	r := respond(stat, err)
	if err == nil {
		r.Data = data
	}
	return r
}

func runExists(c *zk.Conn, req zkop.Request) zkop.Response {
	ok, stat, err := c.Exists(readPath(req))
	if err == nil && !ok {
		return zkop.Response{Err: zkop.ErrNoNode}
	}
	return respond(stat, err)
}

func runChildren(c *zk.Conn, req zkop.Request) zkop.Response {
	names, stat, err := c.Children(readPath(req))
	r := respond(stat, err)
	if err == nil {
		r.Children = names
	}
	return r
}

func runGetACL(c *zk.Conn, req zkop.Request) zkop.Response {
	acl, stat, err := c.GetACL(req.Path)
	r := respond(stat, err)
	if err != nil {
		return r
	}
	r.ACL = make([]zkop.ACL, len(acl))
	for i, a := range acl {
		r.ACL[i] = zkop.ACL(a)
	}
	return r
}

func runMulti(c *zk.Conn, reqs []zkop.Request) zkop.Response {
	ops := make([]any, len(reqs))
	for i, req := range reqs {
		switch req.Kind {
		case zkop.Create:
			ops[i] = &zk.CreateRequest{Path: req.Path, Data: req.Data, Acl: zkACL(req), Flags: int32(req.Mode)}
		case zkop.Set:
			ops[i] = &zk.SetDataRequest{Path: req.Path, Data: req.Data, Version: req.Version}
		case zkop.Delete:
			ops[i] = &zk.DeleteRequest{Path: req.Path, Version: req.Version}
		case zkop.Check:
			ops[i] = &zk.CheckVersionRequest{Path: req.Path, Version: req.Version}
		}
	}
	answers, err := c.Multi(ops...)
	out := zkop.Response{Err: translate(err)}
	if len(answers) != len(reqs) {
		return out
	}
	out.Results = make([]zkop.Response, len(answers))
	for i, a := range answers {
		r := zkop.Response{Path: a.String, Err: translate(a.Error)}
		if a.Stat != nil {
			r.Stat = zkop.Stat(*a.Stat)
		}
		if err != nil && (r.Err == nil || errors.Is(r.Err, errInconsistent)) {
			r = zkop.Response{Err: zkop.ErrRolledBack}
		}
		out.Results[i] = r
	}
	return out
}

// errInconsistent is code -2, by which a server marks the operations behind the one that failed a multi.
var errInconsistent = errors.New("zookeeper: runtime inconsistency")

// errNoLogin is what a server answers that closes sessions without a login.
var errNoLogin = fmt.Errorf("%w: it closes sessions that have not logged in as it asks (enforce.auth.schemes, sessionRequireClientSASLAuth)", ErrAuthFailed)

var fromZK = map[error]error{
	zk.ErrNoNode:                  zkop.ErrNoNode,
	zk.ErrNodeExists:              zkop.ErrNodeExists,
	zk.ErrBadVersion:              zkop.ErrBadVersion,
	zk.ErrNotEmpty:                zkop.ErrNotEmpty,
	zk.ErrNoChildrenForEphemerals: zkop.ErrNoChildrenForEphemeral,
	zk.ErrNoAuth:                  zkop.ErrNoAuth,
	zk.ErrAuthFailed:              ErrAuthFailed,
	zk.ErrInvalidACL:              zkop.ErrInvalidACL,
	zk.ErrBadArguments:            zkop.ErrBadArguments,
	zk.ErrInvalidPath:             zkop.ErrBadArguments,
	zk.ErrInvalidFlags:            zkop.ErrBadArguments,
	zk.ErrSessionExpired:          zkop.ErrSessionExpired,
	zk.ErrSessionMoved:            zkop.ErrSessionMoved,
	zk.ErrShortBuffer:             zkop.ErrTooLarge,
}

var fromCode = map[int64]error{
	-2:                        errInconsistent,
	int64(codeConnectionLoss): ErrNotSent,       // wireConn's mark of a stale request
	int64(codeMarshalling):    zkop.ErrTooLarge, // wireConn's mark of a reply above the limit
	-6:                        zkop.ErrUnimplemented,
	-124:                      errNoLogin,
}

// translate maps go-zk's errors. What is no answer of the server leaves the outcome open.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if to, ok := fromZK[err]; ok {
		return to
	}
	// go-zk has no value for the codes it does not know, only this text.
	if text, ok := strings.CutPrefix(err.Error(), "unknown error: "); ok {
		if code, perr := strconv.ParseInt(text, 10, 32); perr == nil {
			if to, ok := fromCode[code]; ok {
				return to
			}
			return fmt.Errorf("zookeeper: error %d", code)
		}
	}
	return fmt.Errorf("%w: %w", zkop.ErrOutcomeUnknown, err)
}
