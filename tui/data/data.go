// Package data holds the commands of the terminal interface that do I/O. Each returns one message that
// carries the number of its request.
package data

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
)

// Source is the cluster as the pages need it; *admin.Client is one.
type Source interface {
	Snapshot(ctx context.Context, opts admin.SnapshotOptions) (*model.Snapshot, error)
	ReplicaLag(ctx context.Context, targets []plan.Target) ([]model.ReplicaPosition, []model.Problem, error)
	Transitions(ctx context.Context, opts admin.TransitionOptions) ([]model.Transition, []model.Problem, error)
	GroupLag(ctx context.Context, opts admin.GroupLagOptions) ([]model.Group, []model.GroupPosition, []model.Problem, error)
}

// TransitionsLoaded answers Loader.Transitions.
type TransitionsLoaded struct {
	Seq         uint64
	Transitions []model.Transition
	Problems    []model.Problem
	Err         error
	At          time.Time
}

// GroupsLoaded answers Loader.Groups.
type GroupsLoaded struct {
	Seq       uint64
	Groups    []model.Group
	Positions []model.GroupPosition
	Problems  []model.Problem
	Err       error
	At        time.Time
}

// Clock tells the time, so that what is shown can tell its age.
type Clock struct{ Now time.Time }

// SnapshotLoaded answers Loader.Snapshot.
type SnapshotLoaded struct {
	Seq      uint64
	Snapshot *model.Snapshot
	Err      error
	At       time.Time
}

// LagLoaded answers Loader.Lag.
type LagLoaded struct {
	Seq       uint64
	Positions []model.ReplicaPosition
	Problems  []model.Problem
	Err       error
}

// staleAfter is how much later than expected an answer may come.
const staleAfter = 3 * time.Second

// Age says how old a picture is when it is not a fresh one: paused, the last reading failed, or the next one takes
// longer than it should. It is empty for a fresh one.
func Age(now, loadedAt time.Time, refresh time.Duration, paused, failed bool) string {
	old := now.Sub(loadedAt).Truncate(time.Second)
	word := ""
	switch {
	case paused:
		word = "paused"
	case failed, refresh > 0 && old > refresh+staleAfter:
		word = "STALE"
	default:
		return ""
	}
	if old > 0 {
		word += " " + old.String()
	}
	return word
}

// Nothing stands where a list has no row to show: why that is, and the key that changes it. all is the number of rows without
// filter and without "problems only", missing what is not there when that is 0.
func Nothing(all int, filter string, problems bool, missing string) string {
	switch {
	case all == 0:
		return missing
	case filter != "" && problems:
		return "nothing with a problem matches " + filter + "; esc clears it, p shows rows without a problem"
	case filter != "":
		return "nothing matches " + filter + "; esc clears it"
	}
	return "nothing has a problem; p shows everything"
}

// Tick says that it is time to read again.
type Tick struct{ Seq uint64 }

// Loader makes commands.
type Loader struct {
	transitions func() ([]model.Transition, []model.Problem, error)
	groups      func() ([]model.Group, []model.GroupPosition, []model.Problem, error)
	snapshot    func() (*model.Snapshot, error)
	lag         func([]plan.Target) ([]model.ReplicaPosition, []model.Problem, error)
	now         func() time.Time
}

// New returns a Loader whose requests end with ctx.
func New(ctx context.Context, src Source, now func() time.Time) *Loader {
	return &Loader{
		transitions: func() ([]model.Transition, []model.Problem, error) {
			return src.Transitions(ctx, admin.TransitionOptions{})
		},
		groups: func() ([]model.Group, []model.GroupPosition, []model.Problem, error) {
			return src.GroupLag(ctx, admin.GroupLagOptions{})
		},
		snapshot: func() (*model.Snapshot, error) {
			return src.Snapshot(ctx, admin.SnapshotOptions{Probe: true, MinISR: true, Controller: true})
		},
		lag: func(t []plan.Target) ([]model.ReplicaPosition, []model.Problem, error) { return src.ReplicaLag(ctx, t) },
		now: now,
	}
}

// Snapshot reads the cluster.
func (l *Loader) Snapshot(seq uint64) tea.Cmd {
	return func() tea.Msg {
		s, err := l.snapshot()
		return SnapshotLoaded{seq, s, err, l.now()}
	}
}

// Lag reads the positions of the replicas of some partitions.
func (l *Loader) Lag(seq uint64, targets []plan.Target) tea.Cmd {
	return func() tea.Msg {
		p, problems, err := l.lag(targets)
		return LagLoaded{seq, p, problems, err}
	}
}

// Transitions reads the leadership decisions that are not carried out yet.
func (l *Loader) Transitions(seq uint64) tea.Cmd {
	return func() tea.Msg {
		ts, problems, err := l.transitions()
		return TransitionsLoaded{seq, ts, problems, err, l.now()}
	}
}

// Groups reads how far every group is.
func (l *Loader) Groups(seq uint64) tea.Cmd {
	return func() tea.Msg {
		gs, positions, problems, err := l.groups()
		return GroupsLoaded{seq, gs, positions, problems, err, l.now()}
	}
}

// Beat makes a Clock in a second.
func (l *Loader) Beat() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return Clock{l.now()} })
}

// After makes a Tick in d.
func After(seq uint64, d time.Duration) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return Tick{seq} })
}
