package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/broker/obs"
	"kctl/broker/peer"
	"kctl/zkutil/cluster"
)

// drainTimeout bounds how long requests in progress may take once the broker stops.
const drainTimeout = 10 * time.Second

// stop hands over leadership, then drains the connections. ctx is the life of the parts, which go on meanwhile.
func (b *Broker) stop(ctx context.Context, endRequests context.CancelFunc) {
	b.log.Info("stopping")
	if b.static.Values().Bool("controlled.shutdown.enable") && b.brokerEpoch() != cluster.NoBrokerEpoch {
		b.controlledShutdown(ctx)
	}
	endRequests()
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	b.srv.Drain(ctx)
}

// controlledShutdown asks the controller to move leaders away, as often as configured. An attempt that failed
// because the controller was stopping too does not count: the next controller is asked as soon as it is known.
func (b *Broker) controlledShutdown(ctx context.Context) {
	v := b.static.Values()
	tries := v.Int("controlled.shutdown.max.retries")
	for tries > 0 && ctx.Err() == nil {
		asked := b.cache.Snapshot().ControllerEpoch
		remaining, err := b.askShutdown(ctx)
		switch {
		case err == nil && remaining == 0:
			b.awaitHandOver(ctx)
			b.log.Info("controlled shutdown done")
			return
		case errors.Is(err, kerr.EligibleLeadersNotAvailable):
			b.log.Warn("no broker stays that could lead", obs.KeyCount, remaining)
			tries = 1
		case err == nil:
			b.log.Warn("partitions have no other leader yet", obs.KeyCount, remaining)
		default:
			b.log.Warn("controlled shutdown refused", obs.Err(err))
		}
		if tries--; tries == 0 {
			break
		}
		alone, changed := b.awaitRetry(ctx, v.Millis("controlled.shutdown.retry.backoff.ms"), asked)
		if alone {
			break
		}
		if changed {
			tries++
		}
	}
	b.log.Warn("stopping without a complete hand-over")
}

// awaitRetry waits for d, or until another controller is known, or until no other broker is alive: then there is
// nobody to hand over to, and the last broker of a cluster that stops as a whole need not try again.
func (b *Broker) awaitRetry(ctx context.Context, d time.Duration, asked cluster.ControllerEpoch) (alone, changed bool) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = b.cache.Wait(ctx, func(s *metadata.Snapshot) bool {
		others := len(s.Brokers())
		if s.IsAlive(b.id) {
			others--
		}
		alone, changed = others <= 0, s.ControllerEpoch != asked
		return alone || changed
	})
	return alone, changed
}

// askShutdown sends one ControlledShutdown to the controller and returns how many partitions this broker still
// leads.
func (b *Broker) askShutdown(ctx context.Context) (remaining int, err error) {
	req := kmsg.NewPtrControlledShutdownRequest()
	req.Version = 3
	req.BrokerID, req.BrokerEpoch = int32(b.id), int64(b.brokerEpoch())
	resp, err := b.sendShutdown(ctx, req)
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return len(resp.PartitionsRemaining), fmt.Errorf("controller: %w", err)
	}
	return len(resp.PartitionsRemaining), nil
}

func (b *Broker) sendShutdown(ctx context.Context, req *kmsg.ControlledShutdownRequest) (*kmsg.ControlledShutdownResponse, error) {
	if b.control.IsActive() {
		return b.control.HandleControlledShutdown(ctx, req), nil
	}
	id := b.cache.Snapshot().ControllerID
	addr, ok := b.brokerAddr(id)
	if !ok {
		return nil, fmt.Errorf("no controller is known")
	}
	timeout := b.static.Values().Millis("controller.socket.timeout.ms")
	conn, err := peer.Dial(ctx, nil, addr, fmt.Sprintf("broker-%d", b.id), timeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	resp, err := conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.ControlledShutdownResponse), nil
}

// handOverWait bounds awaitHandOver.
const handOverWait = 2 * time.Second

// awaitHandOver waits until the metadata shows no partition with other replicas led here: the controller's
// answer does not mean that the new leaders have taken over (KAFKA-6029).
func (b *Broker) awaitHandOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, handOverWait)
	defer cancel()
	_ = b.cache.Wait(ctx, func(s *metadata.Snapshot) bool {
		for _, name := range s.TopicNames() {
			t, _ := s.Topic(name)
			for i := range t.Partitions {
				if p := &t.Partitions[i]; p.Leader == b.id && len(p.ISR) > 1 {
					return false
				}
			}
		}
		return true
	})
}
