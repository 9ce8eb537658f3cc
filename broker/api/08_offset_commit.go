package api

// OffsetCommit stores a group's offsets and answers when they are replicated. Version 0 stored them in ZooKeeper
// and is not served.
//
//	v1      member and generation; v2-v4 retention time; v6 leader epochs; v7 static members (KIP-345)
var offsetCommitAPI = definition{key: 8, min: 1, max: 9, handle: (*Service).offsetCommit}
