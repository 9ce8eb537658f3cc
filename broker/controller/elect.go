package controller

import (
	"errors"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// sessionStarted makes the broker stand for election in its new session.
func (c *Controller) sessionStarted(ev SessionStarted) {
	if c.role != roleNone {
		c.sessionEnded(SessionEnded{At: ev.At, Reason: "replaced by a new session"})
	}
	c.session, c.sessionID, c.seed = ev.Session, ev.SessionID, ev.Seed
	c.role = roleStandby
	c.enqueueElection()
}

// sessionEnded ends whatever role there is: ephemerals can no longer be relied on.
func (c *Controller) sessionEnded(ev SessionEnded) {
	if c.role == roleNone {
		return
	}
	c.endTerm(ev.Reason)
	c.role, c.session, c.sessionID = roleNone, 0, 0
}

// resign ends the term of office because another controller has been elected; the standby goes on.
func (c *Controller) resign(reason string) {
	c.endTerm(reason)
	c.role = roleStandby
	c.enqueueElection()
}

// abandon ends the term after an error that should not happen. /controller is removed, guarded by our
// epoch, so that any broker can be elected; we wait a little to let another one try (KAFKA_FACTS 2.1).
func (c *Controller) abandon(reason string) {
	version := c.epochVersion
	active := c.role == roleLoading || c.role == roleActive
	c.endTerm(reason)
	c.role = roleStandby
	if active {
		c.zkAside(znode.Fenced(version, zkop.Request{Kind: zkop.Delete, Path: znode.ControllerPath, Version: zkop.AnyVersion}))
	}
	c.emit(ArmTimer{Timer: Timer{Kind: TimerElect}, At: c.now.Add(electRetryDelay)})
}

// endTerm refuses what waits, says so, and forgets everything.
func (c *Controller) endTerm(reason string) {
	c.refuseRequests()
	if c.role == roleLoading || c.role == roleActive {
		for _, id := range c.brokerIDs() {
			c.emit(Disconnect{Broker: id})
		}
		c.emit(Resigned{Epoch: c.epoch, Reason: reason})
	}
	c.reset()
}

func (c *Controller) enqueueElection() { c.enqueueOnce("Reelect", "", c.stand) }

// stand looks at /controller with a watch and takes the role when it is free (V3 points D.1, D.2).
func (c *Controller) stand(done func()) {
	reqs := []zkop.Request{
		{Kind: zkop.Exists, Path: znode.ControllerPath, Watch: true},
		{Kind: zkop.Get, Path: znode.ControllerPath},
		{Kind: zkop.Get, Path: znode.ControllerEpochPath},
	}
	c.read(reqs, func(got []zkop.Response) {
		holder, epoch := &got[1], &got[2]
		switch {
		case c.role != roleStandby:
			c.checkHolder(holder, done)
		case holder.Err == nil && holder.Stat.EphemeralOwner == c.sessionID:
			c.adoptOwn(holder, epoch, done)
		case holder.Err == nil:
			done() // another broker leads; the watch tells when it is gone
		case !errors.Is(holder.Err, zkop.ErrNoNode):
			c.electionFailed(holder.Err, done)
		case errors.Is(epoch.Err, zkop.ErrNoNode):
			c.createEpoch(done)
		case epoch.Err != nil:
			c.electionFailed(epoch.Err, done)
		default:
			c.take(epoch, done)
		}
	})
}

// checkHolder runs while we hold the role: losing /controller (an admin may delete it) ends the term.
func (c *Controller) checkHolder(holder *zkop.Response, done func()) {
	if holder.Err == nil && holder.Stat.EphemeralOwner == c.sessionID {
		done()
		return
	}
	c.resign("/controller is not ours any more")
}

// createEpoch makes /controller_epoch on a new cluster; "0" as Kafka writes it.
func (c *Controller) createEpoch(done func()) {
	create := zkop.Request{Kind: zkop.Create, Path: znode.ControllerEpochPath, Data: znode.EncodeControllerEpoch(0)}
	c.zk([]zkop.Request{create}, func(got []zkop.Response) {
		if err := got[0].Err; err != nil && !errors.Is(err, zkop.ErrNodeExists) && !errors.Is(err, zkop.ErrOutcomeUnknown) {
			c.electionFailed(err, done)
			return
		}
		c.afterUnknown(got[0].Err, func() { c.stand(done) })
	})
}

// afterUnknown continues at once, or after a wait when the connection broke.
func (c *Controller) afterUnknown(err error, then func()) {
	if errors.Is(err, zkop.ErrOutcomeUnknown) {
		c.afterBackoff(then)
		return
	}
	then()
}

// take creates /controller and bumps the epoch in one multi.
func (c *Controller) take(epoch *zkop.Response, done func()) {
	current, err := znode.DecodeControllerEpoch(epoch.Data)
	if err != nil {
		c.electionFailed(err, done)
		return
	}
	next := current + 1
	me := znode.NewController(c.cfg.BrokerID, c.now.UnixMilli())
	req := znode.ElectController(me, next, cluster.ZKVersion(epoch.Stat.Version))
	c.zk([]zkop.Request{req}, func(got []zkop.Response) {
		err := got[0].Err
		switch {
		case err == nil:
			c.won(next, cluster.ZKVersion(epoch.Stat.Version)+1, done)
		case errors.Is(err, zkop.ErrOutcomeUnknown), isRace(multiError(&got[0])):
			// Lost the race, or lost the reply: look again. If /controller is ours, we did win.
			c.afterUnknown(err, func() { c.stand(done) })
		default:
			c.electionFailed(multiError(&got[0]), done)
		}
	})
}

func isRace(err error) bool {
	return errors.Is(err, zkop.ErrNodeExists) || errors.Is(err, zkop.ErrBadVersion) || errors.Is(err, zkop.ErrNoNode)
}

// adoptOwn: /controller belongs to this very session although we are only standby. Either the reply to our
// winning multi was lost, or an earlier term ended while the node stayed. Nobody else can have moved the
// epoch since the multi that created the node, so its present value is ours.
func (c *Controller) adoptOwn(holder, epoch *zkop.Response, done func()) {
	e, err := znode.DecodeControllerEpoch(epoch.Data)
	if epoch.Err != nil || err != nil {
		c.electionFailed(errors.Join(epoch.Err, err), done)
		return
	}
	if epoch.Stat.Mzxid != holder.Stat.Czxid {
		// The epoch moved after we were elected: an admin or a zombie. Give the node back and stand anew.
		drop := zkop.Request{Kind: zkop.Delete, Path: znode.ControllerPath, Version: holder.Stat.Version}
		c.zk([]zkop.Request{znode.Fenced(cluster.ZKVersion(epoch.Stat.Version), drop)}, func([]zkop.Response) {
			c.afterBackoff(func() { c.stand(done) })
		})
		return
	}
	c.won(e, cluster.ZKVersion(epoch.Stat.Version), done)
}

func (c *Controller) electionFailed(err error, done func()) {
	c.emit(Note{Kind: NoteElectionFailed, Reason: err.Error()})
	c.emit(ArmTimer{Timer: Timer{Kind: TimerElect}, At: c.now.Add(electRetryDelay)})
	done()
}

func (c *Controller) won(epoch cluster.ControllerEpoch, version cluster.ZKVersion, done func()) {
	c.epoch, c.epochVersion, c.role = epoch, version, roleLoading
	c.emit(Activated{Epoch: epoch})
	c.load(done)
}
