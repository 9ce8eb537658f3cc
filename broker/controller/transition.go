package controller

import (
	"errors"
	"slices"
	"time"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// transition is one decision on its way: which replicas have not confirmed it yet (V3 discussion 6g). A
// newer decision replaces it. A replica whose broker is gone is not waited for.
type transition struct {
	p         *partition
	epoch     cluster.LeaderEpoch
	decidedAt time.Time
	reason    string
	waiting   []waiting
}

type waiting struct {
	broker   cluster.BrokerID
	attempts int32
	error    string // of the last try; empty: no answer yet
}

func (t *transition) index(b cluster.BrokerID) int {
	return slices.IndexFunc(t.waiting, func(w waiting) bool { return w.broker == b })
}

// transitions knows the deadlines: decisions in the order in which they were made, so the first pending one
// is the next due. Confirmed ones are skipped when they are reached.
type transitions struct {
	queue []*transition
	armed time.Time // of TimerTransition; zero: not armed
	dirty map[*partition]struct{}
	// inherited alerts of an earlier controller, until the takeover has published everything.
	inherited []*partition
	// parentKnown: /admin/leadership_alerts exists.
	parentKnown bool
}

// track makes a broker's confirmation of the partition's present decision expected.
func (c *Controller) track(p *partition, id cluster.BrokerID, reason string) {
	t := p.transition
	if t == nil || t.epoch != p.li.LeaderEpoch {
		t = &transition{p: p, epoch: p.li.LeaderEpoch, decidedAt: c.now, reason: reason}
		p.transition = t
		c.transitions.queue = append(c.transitions.queue, t)
	}
	if t.index(id) < 0 {
		t.waiting = append(t.waiting, waiting{broker: id})
	}
}

// untrack stops waiting for one broker, which is gone or is to stop its replica.
func (c *Controller) untrack(p *partition, id cluster.BrokerID) {
	if t := p.transition; t != nil {
		if i := t.index(id); i >= 0 {
			t.waiting = slices.Delete(t.waiting, i, i+1)
			c.endIfConfirmed(p)
		}
	}
}

func (c *Controller) transitionSent(p *partition, id cluster.BrokerID) {
	if t := p.transition; t != nil {
		if i := t.index(id); i >= 0 {
			t.waiting[i].attempts++
		}
	}
}

// transitionDone notes that a broker confirmed the decision of a leader epoch.
func (c *Controller) transitionDone(p *partition, id cluster.BrokerID, epoch cluster.LeaderEpoch) {
	if t := p.transition; t != nil && t.epoch == epoch {
		c.untrack(p, id)
	}
}

// transitionFailed notes what a broker said (or that it could not be asked).
func (c *Controller) transitionFailed(p *partition, id cluster.BrokerID, epoch cluster.LeaderEpoch, code int16, err error) {
	t := p.transition
	if t == nil || t.epoch != epoch {
		return
	}
	if i := t.index(id); i >= 0 {
		if t.waiting[i].error = codeName(code); err != nil {
			t.waiting[i].error = err.Error()
		}
	}
}

func (c *Controller) endIfConfirmed(p *partition) {
	if t := p.transition; t != nil && len(t.waiting) == 0 {
		p.transition = nil
		c.clearAlert(p)
	}
}

// dropTransition forgets a partition's decision; its topic is being deleted.
func (c *Controller) dropTransition(p *partition) {
	p.transition = nil
	c.clearAlert(p)
}

func (c *Controller) clearAlert(p *partition) {
	if p.alerted {
		p.alerted = false
		c.emit(ClearAlert{Partition: p.tp()})
	}
	if p.alertNode {
		c.alertChanged(p)
	}
}

// armTransition arms the timer for the oldest unconfirmed decision.
func (c *Controller) armTransition() {
	q := c.transitions.queue
	for len(q) > 0 && !c.pending(q[0]) {
		q[0] = nil
		q = q[1:]
	}
	c.transitions.queue = q
	if len(q) == 0 {
		c.transitions.queue = nil
		if !c.transitions.armed.IsZero() {
			c.transitions.armed = time.Time{}
			c.emit(CancelTimer{Timer{Kind: TimerTransition}})
		}
		return
	}
	if at := q[0].decidedAt.Add(c.cfg.TransitionTimeout); !at.Equal(c.transitions.armed) {
		c.transitions.armed = at
		c.emit(ArmTimer{Timer: Timer{Kind: TimerTransition}, At: at})
	}
}

func (c *Controller) pending(t *transition) bool { return t.p.transition == t && len(t.waiting) > 0 }

// transitionsDue raises an alert for every decision that is past its deadline.
func (c *Controller) transitionsDue() {
	if c.role != roleActive {
		return
	}
	c.transitions.armed = time.Time{}
	q := c.transitions.queue
	for len(q) > 0 && (!c.pending(q[0]) || !c.now.Before(q[0].decidedAt.Add(c.cfg.TransitionTimeout))) {
		if c.pending(q[0]) {
			c.raise(q[0])
		}
		q[0] = nil
		q = q[1:]
	}
	c.transitions.queue = q
	c.armTransition()
}

func (c *Controller) raise(t *transition) {
	t.p.alerted = true
	c.emit(RaiseAlert{Alert: c.alertOf(t)})
	c.alertChanged(t.p)
}

func (c *Controller) alertOf(t *transition) znode.LeadershipAlert {
	a := znode.LeadershipAlert{
		Partition: t.p.tp(), Decision: t.p.li.Clone(), DecidedMs: t.decidedAt.UnixMilli(),
		RaisedMs: c.now.UnixMilli(), Reason: t.reason,
	}
	// The decision may be an earlier controller's; the one that waits for it is this one.
	a.Decision.ControllerEpoch = c.epoch
	for _, w := range t.waiting {
		a.Waiting = append(a.Waiting, znode.AlertBroker{Broker: w.broker, Error: w.error, Attempts: w.attempts})
	}
	slices.SortFunc(a.Waiting, func(x, y znode.AlertBroker) int { return int(x.Broker) - int(y.Broker) })
	return a
}

// alertChanged queues the partition's alert znode to be written or removed.
func (c *Controller) alertChanged(p *partition) {
	if c.transitions.dirty == nil {
		c.transitions.dirty = map[*partition]struct{}{}
	}
	c.transitions.dirty[p] = struct{}{}
	c.enqueueOnce("LeadershipAlerts", "", c.writeAlerts)
}

// alertDue reports whether the partition's alert znode should exist.
func (p *partition) alertDue() bool { return p.alerted && p.transition != nil }

// writeAlerts brings /admin/leadership_alerts in line with the alerts.
func (c *Controller) writeAlerts(done func()) {
	ps := sorted(c.transitions.dirty)
	c.transitions.dirty = nil
	if len(ps) == 0 {
		done()
		return
	}
	if c.transitions.parentKnown {
		c.putAlerts(ps, done)
		return
	}
	c.write([]writeOp{createOp(znode.LeadershipAlertsPath, nil)}, func([]writeResult) {
		c.transitions.parentKnown = true
		c.putAlerts(ps, done)
	})
}

func (c *Controller) putAlerts(ps []*partition, done func()) {
	ops := make([]writeOp, len(ps))
	for i, p := range ps {
		path := znode.LeadershipAlertPath(p.tp())
		switch {
		case !p.alertDue():
			ops[i] = deleteOp(path)
		case p.alertNode:
			ops[i] = setOp(path, c.alertOf(p.transition).Encode(), zkop.AnyVersion)
		default:
			ops[i] = createOp(path, c.alertOf(p.transition).Encode())
		}
	}
	c.write(ops, func(results []writeResult) {
		for i, p := range ps {
			isDelete := ops[i].last().Kind == zkop.Delete
			switch err := results[i].err; {
			case err == nil:
				p.alertNode = !isDelete
			case errors.Is(err, zkop.ErrNodeExists):
				p.alertNode = true
				c.alertChanged(p)
			case errors.Is(err, zkop.ErrNoNode):
				p.alertNode = false
				c.transitions.parentKnown = isDelete // an admin may have removed the parent
				if !isDelete {
					c.alertChanged(p)
				}
			default:
				c.emit(Note{Kind: NoteBadZnode, Partition: p.tp(), Reason: "leadership alert: " + err.Error()})
			}
			if p.alertNode && !p.alertDue() {
				c.alertChanged(p) // confirmed while the znode was being written
			}
		}
		done()
	})
}
