package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterReplicaLogDirs moves replicas between the log directories of this broker (KIP-113). v2 is flexible.
var alterReplicaLogDirsAPI = definition{key: 34, min: 0, max: 2, handle: (*Service).alterReplicaLogDirs}

// DirMover is a replica manager that can move replicas between log directories; without it AlterReplicaLogDirs is
// not announced.
type DirMover interface {
	AlterReplicaLogDirs(ctx context.Context, req *kmsg.AlterReplicaLogDirsRequest) *kmsg.AlterReplicaLogDirsResponse
}

func (s *Service) alterReplicaLogDirs(ctx context.Context, c *call) kmsg.Response {
	return s.Replication.(DirMover).AlterReplicaLogDirs(ctx, c.body.(*kmsg.AlterReplicaLogDirsRequest))
}
