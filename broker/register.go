package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kctl/broker/obs"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// foreignWait is how long the registration of another process is waited for: longer than any sensible session
// time-out.
const foreignWait = 3 * time.Minute

// stayRegistered registers this broker in the current session and again in each that follows.
func (b *Broker) stayRegistered(ctx context.Context) error {
	feed, cancel := b.zk.Subscribe()
	defer cancel()
	registered := uint64(0)
	for {
		if s := b.zk.Session(); s.State == zkutil.Connected && s.Epoch != registered {
			err := b.register(ctx, s)
			switch {
			case err == nil:
				registered = s.Epoch
				b.control.Registered(s.Epoch)
				continue // the session may have changed meanwhile
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, zkop.ErrSessionExpired), errors.Is(err, zkop.ErrOutcomeUnknown):
				// the next notice tells more
			default:
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-feed:
			if !ok {
				return nil
			}
		}
	}
}

// register creates /brokers/ids/<id> in the given session and learns the broker epoch.
func (b *Broker) register(ctx context.Context, s zkutil.Session) error {
	ops := zkutil.Within(b.zk, s.Epoch)
	reg := znode.Registration{ID: b.id, Endpoints: b.endpoints, Rack: b.static.Rack, JMXPort: -1, TimestampMs: time.Now().UnixMilli(), Version: 5,
		DataEpoch: cluster.BrokerEpoch(b.dataEpoch)}
	request := znode.RegisterBroker(reg)
	waited, cancel := context.WithTimeout(ctx, foreignWait)
	defer cancel()
	for {
		results, err := ops.Multi(ctx, request.Ops...)
		if err == nil {
			b.registered(results[len(results)-1].Stat, s)
			return nil
		}
		if !errors.Is(err, zkop.ErrNodeExists) && !errors.Is(err, zkop.ErrOutcomeUnknown) {
			return fmt.Errorf("register broker %d: %w", b.id, err)
		}
		data, stat, err := ops.Get(ctx, znode.BrokerPath(b.id))
		switch {
		case errors.Is(err, zkop.ErrNoNode):
			continue
		case err != nil:
			return err
		case stat.EphemeralOwner == s.ID: // the answer to an earlier attempt was lost
			b.registered(stat, s)
			return nil
		}
		old, err := znode.DecodeRegistration(b.id, data)
		if err == nil && slices.ContainsFunc(old.Endpoints, b.isOwnEndpoint) {
			// The address is bound by this process, so the node is of its former life or session.
			if err := b.replaceRegistration(ctx, ops, request, stat, s); err == nil || !retriable(err) {
				return err
			}
			continue
		}
		b.log.Warn("broker id is registered by another session, waiting for its end", obs.KeySession, fmt.Sprintf("0x%x", stat.EphemeralOwner))
		if err := awaitGone(waited, b.zk, znode.BrokerPath(b.id)); err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%w: broker id %d stayed registered by session 0x%x", ErrTwin, b.id, stat.EphemeralOwner)
			}
			return err
		}
	}
}

func retriable(err error) bool {
	return errors.Is(err, zkop.ErrBadVersion) || errors.Is(err, zkop.ErrNoNode) || errors.Is(err, zkop.ErrNodeExists) || errors.Is(err, zkop.ErrOutcomeUnknown)
}

// replaceRegistration removes the node of the former session and creates the new one, in one multi. If the former
// session held the office of the controller, that goes too: a controller killed and started again would else keep
// the cluster without one until its session times out.
func (b *Broker) replaceRegistration(ctx context.Context, ops zkutil.Ops, request zkop.Request, old zkop.Stat, s zkutil.Session) error {
	multi := append(formerOffice(ctx, ops, old.EphemeralOwner), zkop.Request{Kind: zkop.Delete, Path: znode.BrokerPath(b.id), Version: old.Version})
	results, err := ops.Multi(ctx, append(multi, request.Ops...)...)
	if err != nil {
		return fmt.Errorf("replace own former registration: %w", err)
	}
	b.log.Info("replaced own former registration", obs.KeySession, fmt.Sprintf("0x%x", old.EphemeralOwner))
	b.registered(results[len(results)-1].Stat, s)
	return nil
}

// formerOffice is the removal of /controller if the given session made it. The check of the controller epoch,
// read first, makes sure that nobody else was elected in between.
func formerOffice(ctx context.Context, ops zkutil.Ops, session int64) []zkop.Request {
	_, epoch, err := ops.Get(ctx, znode.ControllerEpochPath)
	if err != nil {
		return nil
	}
	_, office, err := ops.Get(ctx, znode.ControllerPath)
	if err != nil || office.EphemeralOwner != session {
		return nil
	}
	return []zkop.Request{
		{Kind: zkop.Check, Path: znode.ControllerEpochPath, Version: epoch.Version},
		{Kind: zkop.Delete, Path: znode.ControllerPath, Version: office.Version},
	}
}

func (b *Broker) isOwnEndpoint(e cluster.Endpoint) bool {
	return slices.ContainsFunc(b.endpoints, func(o cluster.Endpoint) bool { return o.Host == e.Host && o.Port == e.Port })
}

func (b *Broker) registered(stat zkop.Stat, s zkutil.Session) {
	b.epoch.Store(stat.Czxid)
	if b.dataEpoch == 0 {
		b.dataEpoch = stat.Czxid
	}
	b.keepContinuity()
	b.log.Info("registered", obs.KeyBrokerEpoch, stat.Czxid, obs.KeySession, fmt.Sprintf("0x%x", s.ID))
}

// awaitGone waits until a node does not exist.
func awaitGone(ctx context.Context, zk zkutil.Client, path string) error {
	feed, cancel := zk.Subscribe()
	defer cancel()
	for {
		_, exists, err := zkutil.Any(zk).ExistsWatch(ctx, path)
		if err != nil || !exists {
			return err
		}
		for fired := false; !fired; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case n, ok := <-feed:
				if !ok {
					return zkop.ErrClosed
				}
				fired = n.Watch == nil || n.Watch.Path == path
			}
		}
	}
}
