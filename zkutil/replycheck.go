package zkutil

import "encoding/binary"

// statLen is the length of a node's status on the wire.
const statLen = 68

// checkReply walks the body of a successful reply and says whether its lengths fit.
func checkReply(op int32, b []byte) bool {
	switch op {
	case opGetData:
		rest, ok := skipBytes(b)
		return ok && len(rest) >= statLen
	case opExists, opSetData:
		return len(b) >= statLen
	case opCreate, opSync:
		_, ok := skipBytes(b)
		return ok
	case opGetChildren2:
		return checkChildren(b)
	case opMulti:
		return checkMulti(b)
	case opGetACL:
		return checkACL(b)
	}
	return true
}

// checkACL is a list of permissions, scheme and id, and the status.
func checkACL(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	count := int(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	if count < 0 || count > len(b)/12 {
		return false
	}
	for range count {
		ok := len(b) >= 4
		if ok {
			b, ok = skipBytes(b[4:])
		}
		if ok {
			b, ok = skipBytes(b)
		}
		if !ok {
			return false
		}
	}
	return len(b) >= statLen
}

func checkChildren(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	count := int(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	if count < 0 || count > len(b)/4 {
		return false
	}
	ok := true
	for range count {
		if b, ok = skipBytes(b); !ok {
			return false
		}
	}
	return len(b) >= statLen
}

func checkMulti(b []byte) bool {
	for len(b) >= 9 {
		kind, done := int32(binary.BigEndian.Uint32(b)), b[4] != 0
		b = b[9:]
		if done {
			return true
		}
		ok := true
		switch kind {
		case -1:
			ok = len(b) >= 4
			b = b[min(4, len(b)):]
		case opCreate:
			b, ok = skipBytes(b)
		case opSetData:
			ok = len(b) >= statLen
			b = b[min(statLen, len(b)):]
		}
		if !ok {
			return false
		}
	}
	return false
}

func checkWatchEvent(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	_, ok := skipBytes(b[8:])
	return ok
}

// skipBytes steps over a string or buffer: length, then bytes; length -1 is null.
func skipBytes(b []byte) (rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, false
	}
	n := int(int32(binary.BigEndian.Uint32(b)))
	if n < -1 || n > len(b)-4 {
		return nil, false
	}
	return b[4+max(n, 0):], true
}
