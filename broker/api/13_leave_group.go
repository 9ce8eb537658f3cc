package api

// LeaveGroup takes members out of a group; several at once from v3 (KIP-345).
var leaveGroupAPI = definition{key: 13, min: 0, max: 5, handle: (*Service).leaveGroup}
