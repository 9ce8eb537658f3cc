package admin

import (
	"context"
	"time"
)

// pollEvery is how often a wait looks again.
const pollEvery = 100 * time.Millisecond

// pause waits until it is time to look again; false when ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pollEvery):
		return true
	}
}

// await looks again and again until a change shows. A change that was accepted but does not show when ctx ends is an
// error that says so.
func (c *Client) await(ctx context.Context, what string, shows func(context.Context) (bool, error)) error {
	for {
		ok, err := shows(ctx)
		if ok {
			return nil
		}
		if isAuthorization(err) { // it will not show, however long one waits
			return wrap(err, "the change was accepted, but whether %s show it cannot be read", what)
		}
		if !pause(ctx) {
			return &Error{Kind: Failed, Msg: "the change was accepted, but " + what + " do not show it", Err: err, Hint: "look again: the brokers may learn of it late"}
		}
	}
}
