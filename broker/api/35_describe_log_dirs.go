package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeLogDirs tells size and lag of this broker's replicas by directory (KIP-113); v4 the volume's size
// (KIP-827).
var describeLogDirsAPI = definition{key: 35, min: 0, max: 4, handle: (*Service).describeLogDirs}

func (s *Service) describeLogDirs(ctx context.Context, c *call) kmsg.Response {
	return s.Replication.DescribeLogDirs(ctx, c.body.(*kmsg.DescribeLogDirsRequest))
}
