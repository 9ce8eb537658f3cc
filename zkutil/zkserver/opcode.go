package zkserver

import (
	"errors"

	"kctl/zkutil/zkop"
)

// The operation codes of the protocol.
const (
	opCreate          int32 = 1
	opDelete          int32 = 2
	opExists          int32 = 3
	opGetData         int32 = 4
	opSetData         int32 = 5
	opGetACL          int32 = 6
	opSetACL          int32 = 7
	opGetChildren     int32 = 8
	opSync            int32 = 9
	opPing            int32 = 11
	opGetChildren2    int32 = 12
	opCheck           int32 = 13
	opMulti           int32 = 14
	opCreate2         int32 = 15
	opCheckWatches    int32 = 17
	opRemoveWatches   int32 = 18
	opCreateContainer int32 = 19
	opCreateTTL       int32 = 21
	opMultiRead       int32 = 22
	opAuth            int32 = 100
	opSetWatches      int32 = 101
	opGetEphemerals   int32 = 103
	opAllChildren     int32 = 104
	opSetWatches2     int32 = 105
	opAddWatch        int32 = 106
	opWhoAmI          int32 = 107
	opCloseSession    int32 = -11
	opError           int32 = -1

	// Entries of the commit queue that no client sends.
	opOpenSession   int32 = -1000
	opReattach      int32 = -1001
	opExpire        int32 = -1002
	opDeleteExpired int32 = -1003
)

// The transaction ids of packets outside the request order.
const (
	xidWatch int32 = -1
	xidPing  int32 = -2
	xidAuth  int32 = -4
)

// The error codes of the protocol.
const (
	codeOK                   int32 = 0
	codeRuntimeInconsistency int32 = -2
	codeMarshalling          int32 = -5
	codeUnimplemented        int32 = -6
	codeBadArguments         int32 = -8
	codeNoNode               int32 = -101
	codeNoAuth               int32 = -102
	codeBadVersion           int32 = -103
	codeNoChildrenEphemeral  int32 = -108
	codeNodeExists           int32 = -110
	codeNotEmpty             int32 = -111
	codeSessionExpired       int32 = -112
	codeInvalidACL           int32 = -114
	codeAuthFailed           int32 = -115
	codeSessionMoved         int32 = -118
	codeNoWatcher            int32 = -121
)

var errorCodes = []struct {
	err  error
	code int32
}{
	{zkop.ErrNoNode, codeNoNode},
	{zkop.ErrNodeExists, codeNodeExists},
	{zkop.ErrBadVersion, codeBadVersion},
	{zkop.ErrNotEmpty, codeNotEmpty},
	{zkop.ErrNoChildrenForEphemeral, codeNoChildrenEphemeral},
	{zkop.ErrNoAuth, codeNoAuth},
	{zkop.ErrInvalidACL, codeInvalidACL},
	{zkop.ErrBadArguments, codeBadArguments},
	{zkop.ErrUnimplemented, codeUnimplemented},
	{zkop.ErrSessionExpired, codeSessionExpired},
	{zkop.ErrSessionMoved, codeSessionMoved},
}

func codeOf(err error) int32 {
	if err == nil {
		return codeOK
	}
	for _, e := range errorCodes {
		if errors.Is(err, e.err) {
			return e.code
		}
	}
	return codeRuntimeInconsistency
}
