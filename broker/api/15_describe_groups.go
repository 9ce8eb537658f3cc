package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeGroups tells state and members of groups; authorised operations from v3 (KIP-430).
var describeGroupsAPI = definition{key: 15, min: 0, max: 5, handle: (*Service).describeGroups}

func (s *Service) describeGroups(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.DescribeGroupsRequest)
	resp := s.Groups.DescribeGroups(ctx, req)
	if req.Version >= 3 && req.IncludeAuthorizedOperations {
		for i := range resp.Groups {
			if resp.Groups[i].ErrorCode == 0 {
				resp.Groups[i].AuthorizedOperations = groupOperations
			}
		}
	}
	return resp
}
