package admin

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// apiVersion returns the highest version of a request that the first broker to answer serves, -1 when it does
// not know the request at all. Asked once.
func (c *Client) apiVersion(ctx context.Context, key kmsg.Key) (int16, error) {
	known, err := c.supports(ctx, int16(key))
	if err != nil || !known {
		return -1, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[int16(key)], nil
}

// tooOld says which version brings what the brokers lack, and what can be done instead.
func tooOld(what, since, instead string) *Error {
	e := &Error{Kind: Failed, Msg: fmt.Sprintf("the brokers are too old for %s: Apache Kafka has it from version %s on", what, since), Hint: instead}
	if instead == "" {
		e.Hint = "upgrade the brokers, or use the tools of their own version"
	}
	return e
}
