package api

// ListGroups lists the groups that this broker coordinates; by state from v4 (KIP-518), by type from v5.
var listGroupsAPI = definition{key: 16, min: 0, max: 5, handle: (*Service).listGroups}
