package api

// SyncGroup brings the leader's assignment, or waits for it.
var syncGroupAPI = definition{key: 14, min: 0, max: 5, handle: (*Service).syncGroup}
