package api

// OffsetFetch reads a group's offsets. Version 0 read them from ZooKeeper and is not served.
//
//	v2      all partitions; v5 leader epochs; v7 require_stable (KIP-447); v8 several groups; v9 member epoch
var offsetFetchAPI = definition{key: 9, min: 1, max: 9, handle: (*Service).offsetFetch}
