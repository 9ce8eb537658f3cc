package sim

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/zkutil/zkop"
)

var errNoAnswer = errors.New("no answer in time")

// ctlStep feeds the node's controller and carries out its effects, as the controller's shell does.
func (n *node) ctlStep(ev controller.Event) {
	for _, eff := range n.ctl.Step(ev, nil) {
		n.ctlEffect(eff)
	}
}

func (n *node) ctlEffect(eff controller.Effect) {
	s := n.sim
	switch e := eff.(type) {
	case controller.ZK:
		n.ctlZK(e)
	case controller.Send:
		n.ctlSend(e)
	case controller.RecallTopicIDs: // every topic has its id here
		n.at(n.inc, s.now, "topic ids recalled", func() { n.ctlStep(controller.TopicIDsRecalled{At: s.now, ID: e.ID}) })
	case controller.ArmTimer:
		n.ctlTimers[e.Timer].cancel()
		n.ctlTimers[e.Timer] = n.at(n.inc, e.At, "controller timer", func() {
			n.ctlStep(controller.TimerFired{At: s.now, Timer: e.Timer})
		})
	case controller.CancelTimer:
		n.ctlTimers[e.Timer].cancel()
	case controller.RaiseAlert:
		s.report.Alerts++
		s.check.alert(e.Alert)
		s.trace.line("ALERT %s: %+v", e.Alert.Partition, e.Alert.Waiting)
	case controller.Activated:
		s.check.activated(n, e.Epoch)
		s.trace.line("broker %d is the controller with epoch %d", n.id, e.Epoch)
	case controller.Resigned:
		for _, t := range n.ctlTimers {
			t.cancel()
		}
		s.trace.line("broker %d resigned from epoch %d: %s", n.id, e.Epoch, e.Reason)
	case controller.Reply:
		s.reassignAnswered(e)
	case controller.Note:
		s.trace.line("note %s %s broker %d count %d %s", e.Kind, e.Partition, e.Broker, e.Count, e.Reason)
	}
}

func (n *node) ctlZK(e controller.ZK) {
	done := func(r []zkop.Response) { n.ctlStep(controller.ZKDone{At: n.sim.now, ID: e.ID, Responses: r}) }
	if n.zk != nil && n.zk.epoch == e.Session {
		n.zk.do(e.Requests, done)
		return
	}
	refused := make([]zkop.Response, len(e.Requests))
	for i := range refused {
		refused[i].Err = zkop.ErrSessionExpired
	}
	n.at(n.inc, n.sim.now, "zk refused", func() { done(refused) })
}

// ctlSend sends a control request and brings the answer back.
func (n *node) ctlSend(e controller.Send) {
	s := n.sim
	to := s.node(e.Broker)
	name := kmsg.NameForKey(e.Request.Key())
	call(s, n, to, name, noTP, func(reply func(kmsg.Response)) { reply(to.control(e.Request)) }, func(resp *kmsg.Response) {
		answer := controller.Answered{At: s.now, Broker: e.Broker, Token: e.Token}
		if resp == nil {
			answer.Err = errNoAnswer
		} else {
			answer.Response = *resp
		}
		n.ctlStep(answer)
	})
}
