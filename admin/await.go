package admin

import (
	"context"
	"time"
)

// await looks again and again until a change shows. A change that was accepted but does not show when ctx ends is an
// error that says so.
func (c *Client) await(ctx context.Context, what string, shows func(context.Context) (bool, error)) error {
	for {
		ok, err := shows(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return &Error{Kind: Failed, Msg: "the change was accepted, but " + what + " do not show it", Err: err, Hint: "look again: the brokers may learn of it late"}
		case <-time.After(pollEvery):
		}
	}
}
