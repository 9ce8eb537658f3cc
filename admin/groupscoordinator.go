package admin

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// The kinds of keys that FindCoordinator knows.
const (
	forGroups       int8 = 0
	forTransactions int8 = 1
)

// answers collects what several coordinators say.
type answers[T any] struct {
	mu sync.Mutex // guards m
	m  map[string]T
}

func newAnswers[T any]() *answers[T] { return &answers[T]{m: map[string]T{}} }

func (a *answers[T]) set(key string, v T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.m[key] = v
}

func (a *answers[T]) get(key string) (T, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.m[key]
	return v, ok
}

// coordinatorMoved reports whether a code says that the coordinator is another one or not ready yet.
func coordinatorMoved(code int16) bool {
	return code == kerr.NotCoordinator.Code || code == kerr.CoordinatorNotAvailable.Code || code == kerr.CoordinatorLoadInProgress.Code
}

// perCoordinator finds the coordinator of each key and calls fn once per coordinator, all at once. fn returns the
// error code of each key that it got an answer for. Keys whose coordinator moved or is loading are looked for
// and asked again until ctx ends: nothing was done about those. The result holds the error of each key that got
// no answer.
func (c *Client) perCoordinator(ctx context.Context, kind int8, keys []string, fn func(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]int16, error)) map[string]error {
	out := map[string]error{}
	var mu sync.Mutex // guards out and again
	for left := keys; len(left) > 0; {
		byBroker, errs := c.coordinators(ctx, kind, left)
		var again []string
		for k, err := range errs {
			out[k] = err
		}
		ids := slices.Sorted(maps.Keys(byBroker))
		c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
			codes, err := fn(ctx, id, byBroker[id])
			mu.Lock()
			defer mu.Unlock()
			for _, k := range byBroker[id] {
				code, ok := codes[k]
				switch {
				case ok && coordinatorMoved(code):
					again = append(again, k)
				case !ok && err != nil:
					out[k] = wrap(err, "ask the coordinator, %s", brokerName(id))
				}
			}
			return nil
		})
		left = again
		if len(left) > 0 && !pause(ctx) {
			for _, k := range left {
				out[k] = &Error{Kind: Unreachable, Msg: "the coordinator is loading or moving"}
			}
			return out
		}
	}
	return out
}

// coordinators finds who coordinates each key: in one request where brokers take many keys (KIP-699). A topic of
// coordinators that is only being made is waited for.
func (c *Client) coordinators(ctx context.Context, kind int8, keys []string) (map[cluster.BrokerID][]string, map[string]error) {
	byBroker, errs := map[cluster.BrokerID][]string{}, map[string]error{}
	for left := keys; len(left) > 0; {
		found, err := c.findCoordinators(ctx, kind, left)
		if err != nil {
			for _, k := range left {
				errs[k] = err
			}
			return byBroker, errs
		}
		var again []string
		for _, k := range left {
			f, ok := found[k]
			err := brokerErr(kmsg.FindCoordinator, f.ErrorCode, f.ErrorMessage)
			switch {
			case !ok:
				errs[k] = &Error{Kind: Failed, Msg: "no broker says who coordinates it"}
			case coordinatorMoved(f.ErrorCode):
				again = append(again, k)
			case err != nil:
				errs[k] = wrap(err, "find the coordinator")
			default:
				byBroker[cluster.BrokerID(f.NodeID)] = append(byBroker[cluster.BrokerID(f.NodeID)], k)
			}
		}
		left = again
		if len(left) > 0 && !pause(ctx) {
			for _, k := range left {
				errs[k] = &Error{Kind: Unreachable, Msg: "no coordinator is available"}
			}
			return byBroker, errs
		}
	}
	return byBroker, errs
}

// findCoordinators asks any broker. Brokers before version 4 take the first key only: the others follow.
func (c *Client) findCoordinators(ctx context.Context, kind int8, keys []string) (map[string]kmsg.FindCoordinatorResponseCoordinator, error) {
	out := map[string]kmsg.FindCoordinatorResponseCoordinator{}
	for left := keys; len(left) > 0; {
		resp, err := c.askAny(ctx, func() kmsg.Request {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = kind, left[0], left
			return req
		})
		if err != nil {
			return nil, err
		}
		r := resp.(*kmsg.FindCoordinatorResponse)
		if r.Version >= 4 {
			for _, f := range r.Coordinators {
				out[f.Key] = f
			}
			return out, nil
		}
		f := kmsg.NewFindCoordinatorResponseCoordinator()
		f.Key, f.NodeID, f.ErrorCode, f.ErrorMessage = left[0], r.NodeID, r.ErrorCode, r.ErrorMessage
		out[left[0]] = f
		left = left[1:]
	}
	return out, nil
}
