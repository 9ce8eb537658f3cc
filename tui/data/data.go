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
}

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

// Tick says that it is time to read again.
type Tick struct{ Seq uint64 }

// Loader makes commands.
type Loader struct {
	snapshot func() (*model.Snapshot, error)
	lag      func([]plan.Target) ([]model.ReplicaPosition, []model.Problem, error)
	now      func() time.Time
}

// New returns a Loader whose requests end with ctx.
func New(ctx context.Context, src Source, now func() time.Time) *Loader {
	return &Loader{
		snapshot: func() (*model.Snapshot, error) {
			return src.Snapshot(ctx, admin.SnapshotOptions{Probe: true, MinISR: true})
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

// After makes a Tick in d.
func After(seq uint64, d time.Duration) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return Tick{seq} })
}
