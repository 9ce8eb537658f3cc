package controllershell

import (
	"context"
	"log/slog"
	"slices"

	"kctl/broker/controller"
	"kctl/broker/obs"
)

// linesMax is how many log lines of one kind a single step may write; ten thousand partitions that lose
// their leader at once are one event for a reader.
const linesMax = 20

// logBudget counts the lines of one step.
type logBudget struct{ lines map[string]int }

func newLogBudget() *logBudget { return &logBudget{} }

// take reports whether one more line of this kind may be written.
func (b *logBudget) take(kind string) bool {
	if b.lines == nil {
		b.lines = map[string]int{}
	}
	b.lines[kind]++
	return b.lines[kind] <= linesMax
}

func (b *logBudget) summarise(log *slog.Logger) {
	for kind, n := range b.lines {
		if n > linesMax {
			log.Warn("more of the same", obs.KeyReason, kind, obs.KeyCount, n-linesMax)
		}
	}
}

// warnings are the happenings that an operator should look at.
var warnings = []controller.NoteKind{
	controller.NoteUncleanElection, controller.NoteNoLeader, controller.NoteReplicaOffline, controller.NoteBrokerFailed,
	controller.NoteRefusedWrite, controller.NoteBadZnode, controller.NoteRequestRefused, controller.NoteTopicHalted,
	controller.NoteElectionFailed, controller.NoteReassignmentDropped,
}

// report turns happenings and alerts into log lines and counters.
func (l *loop) report(e controller.Effect, budget *logBudget) {
	log := l.s.log
	switch e := e.(type) {
	case controller.Note:
		l.s.metrics.note(e)
		if budget.take(string(e.Kind)) {
			level := slog.LevelInfo
			if slices.Contains(warnings, e.Kind) {
				level = slog.LevelWarn
			}
			log.LogAttrs(context.Background(), level, string(e.Kind), noteAttrs(e)...)
		}
	case controller.RaiseAlert:
		l.s.metrics.alertsRaised.Inc()
		if budget.take("leadership alert") {
			a := e.Alert
			waiting := make([]any, 0, 2*len(a.Waiting))
			for _, w := range a.Waiting {
				waiting = append(waiting, slog.Group("", obs.KeyPeer, w.Broker, obs.KeyError, w.Error, obs.KeyCount, w.Attempts))
			}
			log.Error("leadership transition is not confirmed in time", obs.KeyTopicPartition, a.Partition.String(),
				obs.KeyLeader, a.Decision.Leader, obs.KeyLeaderEpoch, a.Decision.LeaderEpoch, obs.KeyISR, a.Decision.ISR,
				obs.KeyControllerEpoch, a.Decision.ControllerEpoch, obs.KeyReason, a.Reason, slog.Group("waiting", waiting...))
		}
	case controller.ClearAlert:
		if budget.take("leadership alert over") {
			log.Info("leadership transition completed, alert over", obs.KeyTopicPartition, e.Partition.String())
		}
	}
}

func noteAttrs(n controller.Note) []slog.Attr {
	var attrs []slog.Attr
	if n.Partition.Topic != "" {
		if n.Partition.Partition < 0 {
			attrs = append(attrs, slog.String(obs.KeyTopic, n.Partition.Topic))
		} else {
			attrs = append(attrs, slog.String(obs.KeyTopicPartition, n.Partition.String()))
		}
	}
	switch n.Kind {
	case controller.NoteBrokerFailed, controller.NoteBrokerStarted, controller.NoteBrokerBounced, controller.NoteBrokerStopping,
		controller.NoteUncleanElection, controller.NoteReplicaOffline, controller.NoteRequestRefused:
		attrs = append(attrs, slog.Int(obs.KeyPeer, int(n.Broker)))
	}
	if n.Count != 0 {
		attrs = append(attrs, slog.Int(obs.KeyCount, n.Count))
	}
	if n.Reason != "" {
		attrs = append(attrs, slog.String(obs.KeyReason, n.Reason))
	}
	return attrs
}
