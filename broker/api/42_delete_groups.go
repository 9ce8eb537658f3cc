package api

// DeleteGroups deletes empty groups with their offsets (KIP-229).
var deleteGroupsAPI = definition{key: 42, min: 0, max: 2, handle: (*Service).deleteGroups}
