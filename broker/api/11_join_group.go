package api

// JoinGroup enters a group and blocks until the rebalance is over.
//
//	v1      rebalance time-out; v4 MEMBER_ID_REQUIRED (KIP-394); v5 static members (KIP-345); v7 protocol type
//	v8      reason (KIP-800); v9 skip_assignment
var joinGroupAPI = definition{key: 11, min: 0, max: 9, handle: (*Service).joinGroup}
