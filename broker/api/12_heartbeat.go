package api

// Heartbeat keeps a member in its group.
var heartbeatAPI = definition{key: 12, min: 0, max: 4, handle: (*Service).heartbeat}
