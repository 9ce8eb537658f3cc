package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeAcls, CreateAcls and DeleteAcls answer SECURITY_DISABLED, as Apache Kafka does without an authorizer:
// there is none, so there is nothing to list and a rule would protect nothing.
var (
	describeACLsAPI = definition{key: 29, min: 0, max: 3, handle: (*Service).describeACLs}
	createACLsAPI   = definition{key: 30, min: 0, max: 3, handle: (*Service).createACLs}
	deleteACLsAPI   = definition{key: 31, min: 0, max: 3, handle: (*Service).deleteACLs}
)

const noAuthorizer = "No Authorizer is configured on the broker"

func (s *Service) describeACLs(_ context.Context, c *call) kmsg.Response {
	resp := c.body.ResponseKind().(*kmsg.DescribeACLsResponse)
	resp.ErrorCode, resp.ErrorMessage = kerr.SecurityDisabled.Code, ptr(noAuthorizer)
	return resp
}

func (s *Service) createACLs(_ context.Context, c *call) kmsg.Response {
	resp := c.body.ResponseKind().(*kmsg.CreateACLsResponse)
	for range c.body.(*kmsg.CreateACLsRequest).Creations {
		r := kmsg.NewCreateACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = kerr.SecurityDisabled.Code, ptr(noAuthorizer)
		resp.Results = append(resp.Results, r)
	}
	return resp
}

func (s *Service) deleteACLs(_ context.Context, c *call) kmsg.Response {
	resp := c.body.ResponseKind().(*kmsg.DeleteACLsResponse)
	for range c.body.(*kmsg.DeleteACLsRequest).Filters {
		r := kmsg.NewDeleteACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = kerr.SecurityDisabled.Code, ptr(noAuthorizer)
		resp.Results = append(resp.Results, r)
	}
	return resp
}
