package api

// FindCoordinator names the broker that coordinates a group; it makes the offsets topic when there is none.
//
//	v1      kind of coordinator; v4 several keys (KIP-699)
var findCoordinatorAPI = definition{key: 10, min: 0, max: 6, handle: (*Service).findCoordinator}
