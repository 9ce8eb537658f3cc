package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ControlledShutdown asks this broker, as controller, to move leaders away from a broker that is about to stop.
// Version 0 has another request header and is of Kafka 0.8.
var controlledShutdownAPI = definition{key: 7, min: 1, max: 3, handle: (*Service).controlledShutdown}

func (s *Service) controlledShutdown(ctx context.Context, c *call) kmsg.Response {
	return s.Controller.HandleControlledShutdown(ctx, c.body.(*kmsg.ControlledShutdownRequest))
}
