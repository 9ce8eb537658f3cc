package api

// OffsetDelete deletes single offsets of a group (KIP-496).
var offsetDeleteAPI = definition{key: 47, min: 0, max: 0, handle: (*Service).offsetDelete}
