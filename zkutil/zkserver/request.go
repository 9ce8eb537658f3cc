package zkserver

import (
	"bytes"
	"time"

	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/jute"
	"kctl/zkutil/zkserver/ztree"
)

// request is one decoded client request, or an internal entry of the commit queue.
type request struct {
	c        *conn
	session  int64
	xid, op  int32
	code     int32 // an error found while decoding; answered in its turn
	write    bool
	size     int
	received time.Time
	auth     []ztree.Identity
	z        zkop.Request
	opCodes  []int32 // of a multi's operations: they decide the form of the results
	watches  *setWatches
	kind     ztree.WatchKind // removeWatches, checkWatches
	mode     int32           // addWatch
	timeout  time.Duration   // open and reattach

	txn  *ztree.Txn // once prepared
	resp zkop.Response
	skip bool // of a connection that lost its session meanwhile: neither run nor answered
}

type setWatches struct {
	relative                                  int64
	data, exist, child, persistent, recursive []string
}

// decodeRequest reads the body of an operation. Wrong bytes give codeMarshalling, unknown operations
// codeUnimplemented; both leave the connection usable, as in ZooKeeper. What a write keeps is copied from body.
func decodeRequest(r *request, body []byte) {
	d := jute.NewDecoder(body)
	switch r.op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL, opCheck:
		r.code = decodeOp(&d, r.op, &r.z)
	case opExists, opGetData, opGetChildren, opGetChildren2:
		r.code = decodeOp(&d, r.op, &r.z)
	case opGetACL:
		r.z.Kind, r.z.Path = zkop.GetACL, d.String()
	case opSync:
		r.z.Kind, r.z.Path = zkop.Sync, d.String()
	case opMulti, opMultiRead:
		decodeMulti(&d, r)
	case opSetWatches, opSetWatches2:
		r.watches = &setWatches{relative: d.Long(), data: d.Strings(), exist: d.Strings(), child: d.Strings()}
		if r.op == opSetWatches2 {
			r.watches.persistent, r.watches.recursive = d.Strings(), d.Strings()
		}
	case opAddWatch:
		r.z.Path, r.mode = d.String(), d.Int()
	case opCheckWatches, opRemoveWatches:
		r.z.Path, r.kind = d.String(), ztree.WatchKind(d.Int())
	case opGetEphemerals, opAllChildren:
		r.z.Path = d.String()
	case opWhoAmI, opCloseSession:
	default:
		r.code = codeUnimplemented
	}
	if d.Err() != nil {
		r.code = codeMarshalling
	}
	switch r.op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL, opMulti, opCloseSession:
		r.write = r.code == codeOK
	}
}

func decodeOp(d *jute.Decoder, op int32, z *zkop.Request) int32 {
	z.Path = d.String()
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		z.Kind = zkop.Create
		z.Data = bytes.Clone(d.Buffer())
		z.ACL = decodeACL(d)
		mode, ok := createMode(op, d.Int())
		z.Mode = mode
		if op == opCreateTTL {
			z.TTL = d.Long()
		}
		if !ok {
			return codeBadArguments
		}
	case opDelete:
		z.Kind, z.Version = zkop.Delete, d.Int()
	case opSetData:
		z.Kind, z.Data, z.Version = zkop.Set, bytes.Clone(d.Buffer()), d.Int()
	case opSetACL:
		z.Kind, z.ACL, z.Version = zkop.SetACL, decodeACL(d), d.Int()
	case opCheck:
		z.Kind, z.Version = zkop.Check, d.Int()
	case opExists:
		z.Kind, z.Watch = zkop.Exists, d.Bool()
	case opGetData:
		z.Kind, z.Watch = zkop.Get, d.Bool()
	case opGetChildren, opGetChildren2:
		z.Kind, z.Watch = zkop.Children, d.Bool()
	default:
		return codeUnimplemented
	}
	return codeOK
}

// decodeACL returns a non-nil list: on the wire an empty one is invalid, not the open ACL.
func decodeACL(d *jute.Decoder) []zkop.ACL {
	n := d.Count(12)
	acl := make([]zkop.ACL, n)
	for i := range acl {
		acl[i] = zkop.ACL{Perms: d.Int(), Scheme: d.String(), ID: d.String()}
	}
	return acl
}

// createMode translates the flags; each create operation takes its own modes only.
func createMode(op, flags int32) (zkop.Mode, bool) {
	switch {
	case op == opCreateTTL && flags == 5:
		return zkop.PersistentTTL, true
	case op == opCreateTTL && flags == 6:
		return zkop.PersistentSequentialTTL, true
	case op == opCreateTTL:
		return 0, false
	case flags == 4:
		return zkop.Container, true
	case op == opCreateContainer:
		return 0, false
	case flags == 0:
		return zkop.Persistent, true
	case flags == 1:
		return zkop.Ephemeral, true
	case flags == 2:
		return zkop.PersistentSequential, true
	case flags == 3:
		return zkop.EphemeralSequential, true
	default:
		return 0, false
	}
}

func decodeMulti(d *jute.Decoder, r *request) {
	r.z.Kind = zkop.Multi
	for {
		op, done := d.Int(), d.Bool()
		d.Int() // error, meaningless in requests
		if d.Err() != nil || done {
			return
		}
		if read := op == opGetData || op == opGetChildren; read != (r.op == opMultiRead) {
			r.code = codeMarshalling
			return
		}
		var z zkop.Request
		switch op {
		case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opCheck, opGetData, opGetChildren:
			if code := decodeOp(d, op, &z); code != codeOK {
				r.code = code
				return
			}
		default:
			r.code = codeMarshalling
			return
		}
		r.z.Ops = append(r.z.Ops, z)
		r.opCodes = append(r.opCodes, op)
	}
}

// exclusive tells whether answering a read changes the tree's watches.
func (r *request) exclusive() bool {
	switch r.op {
	case opSetWatches, opSetWatches2, opAddWatch, opRemoveWatches:
		return true
	case opMultiRead:
		for i := range r.z.Ops {
			if r.z.Ops[i].Watch {
				return true
			}
		}
	}
	return r.z.Watch
}
