package zkserver

import (
	"encoding/binary"
	"errors"

	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/jute"
)

// appendReply appends the framed reply to r, which the caller has run.
func appendReply(b []byte, r *request, zxid int64, code int32) []byte {
	start := len(b)
	b = jute.AppendInt(b, 0)
	b = jute.AppendInt(b, r.xid)
	b = jute.AppendLong(b, zxid)
	b = jute.AppendInt(b, code)
	if code == codeOK {
		b = appendBody(b, r)
	}
	return endFrame(b, start)
}

func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

func appendBody(b []byte, r *request) []byte {
	switch r.op {
	case opCreate, opSync:
		return jute.AppendString(b, r.resp.Path)
	case opCreate2, opCreateContainer, opCreateTTL:
		return appendStat(jute.AppendString(b, r.resp.Path), &r.resp.Stat)
	case opExists, opSetData, opSetACL, opCheck:
		return appendStat(b, &r.resp.Stat)
	case opGetData:
		return appendStat(jute.AppendBuffer(b, r.resp.Data), &r.resp.Stat)
	case opGetACL:
		return appendStat(appendACL(b, r.resp.ACL), &r.resp.Stat)
	case opGetChildren:
		return jute.AppendStrings(b, r.resp.Children)
	case opGetChildren2:
		return appendStat(jute.AppendStrings(b, r.resp.Children), &r.resp.Stat)
	case opMulti, opMultiRead:
		return appendMulti(b, r)
	case opAddWatch:
		return jute.AppendInt(b, 0)
	case opGetEphemerals:
		return jute.AppendStrings(b, r.resp.Children)
	case opAllChildren:
		return jute.AppendInt(b, r.resp.Stat.NumChildren)
	case opWhoAmI:
		b = jute.AppendInt(b, int32(len(r.auth)))
		for _, id := range r.auth {
			b = jute.AppendString(jute.AppendString(b, id.Scheme), publicID(id))
		}
		return b
	default: // delete, setWatches, checkWatches, removeWatches, closeSession, auth
		return b
	}
}

// appendMulti writes one result per operation. Before the failed one ZooKeeper reports 0, after it
// RUNTIMEINCONSISTENCY: that is how clients find it.
func appendMulti(b []byte, r *request) []byte {
	failed := false
	for i := range r.resp.Results {
		res := &r.resp.Results[i]
		code := codeOf(res.Err)
		if r.op == opMulti && r.resp.Err != nil {
			switch {
			case !errors.Is(res.Err, zkop.ErrRolledBack):
				failed = true
			case failed:
				code = codeRuntimeInconsistency
			default:
				code = codeOK
			}
			b = appendMultiError(b, code)
			continue
		}
		if code != codeOK {
			b = appendMultiError(b, code)
			continue
		}
		op := r.opCodes[i]
		b = multiHeader(b, op, false, codeOK)
		switch op {
		case opCreate:
			b = jute.AppendString(b, res.Path)
		case opCreate2, opCreateContainer, opCreateTTL:
			b = appendStat(jute.AppendString(b, res.Path), &res.Stat)
		case opSetData:
			b = appendStat(b, &res.Stat)
		case opGetData:
			b = appendStat(jute.AppendBuffer(b, res.Data), &res.Stat)
		case opGetChildren:
			b = jute.AppendStrings(b, res.Children)
		}
	}
	return multiHeader(b, -1, true, -1)
}

func multiHeader(b []byte, op int32, done bool, code int32) []byte {
	return jute.AppendInt(jute.AppendBool(jute.AppendInt(b, op), done), code)
}

func appendMultiError(b []byte, code int32) []byte {
	return jute.AppendInt(multiHeader(b, opError, false, code), code)
}

func appendStat(b []byte, s *zkop.Stat) []byte {
	b = jute.AppendLong(b, s.Czxid)
	b = jute.AppendLong(b, s.Mzxid)
	b = jute.AppendLong(b, s.Ctime)
	b = jute.AppendLong(b, s.Mtime)
	b = jute.AppendInt(b, s.Version)
	b = jute.AppendInt(b, s.Cversion)
	b = jute.AppendInt(b, s.Aversion)
	b = jute.AppendLong(b, s.EphemeralOwner)
	b = jute.AppendInt(b, s.DataLength)
	b = jute.AppendInt(b, s.NumChildren)
	return jute.AppendLong(b, s.Pzxid)
}

func appendACL(b []byte, acl []zkop.ACL) []byte {
	b = jute.AppendInt(b, int32(len(acl)))
	for _, a := range acl {
		b = jute.AppendInt(b, a.Perms)
		b = jute.AppendString(jute.AppendString(b, a.Scheme), a.ID)
	}
	return b
}

// appendEvent appends the framed notification of a fired watch.
func appendEvent(b []byte, ev zkop.Event, zxid int64) []byte {
	const syncConnected = 3
	start := len(b)
	b = jute.AppendInt(b, 0)
	b = jute.AppendInt(b, xidWatch)
	b = jute.AppendLong(b, zxid)
	b = jute.AppendInt(b, codeOK)
	b = jute.AppendInt(b, int32(ev.Type))
	b = jute.AppendInt(b, syncConnected)
	b = jute.AppendString(b, ev.Path)
	return endFrame(b, start)
}
