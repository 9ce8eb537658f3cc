package tui_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/tui"
	"kctl/zkutil/cluster"
)

// source is a cluster of one topic; asked is closed when the positions of its replicas were asked for.
type source struct{ asked chan struct{} }

func (s *source) Snapshot(context.Context, admin.SnapshotOptions) (*model.Snapshot, error) {
	return &model.Snapshot{
		Brokers: []model.Broker{{ID: 1, Live: true}},
		Topics: []model.Topic{{Name: "orders", Partitions: []model.Partition{
			{Topic: "orders", Leader: 1, Replicas: []cluster.BrokerID{1}, ISR: []cluster.BrokerID{1}},
		}}},
	}, nil
}

func (s *source) ReplicaLag(_ context.Context, targets []plan.Target) ([]model.ReplicaPosition, []model.Problem, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	return []model.ReplicaPosition{{Topic: "orders", Broker: 1, Leader: true, InSync: true, HighWatermark: 41, LogEndOffset: 42}}, nil, nil
}

// TestRun runs the whole program on a terminal that is none: it reads, shows, and q ends it.
func TestRun(t *testing.T) {
	src := &source{asked: make(chan struct{}, 1)}
	root := tui.New(t.Context(), tui.Options{Source: src, Refresh: 50 * time.Millisecond, Now: time.Now})
	tm := teatest.NewTestModel(t, root, teatest.WithInitialTermSize(80, 24))
	for range 3 { // it goes on reading by itself
		select {
		case <-src.asked:
		case <-time.After(10 * time.Second):
			t.Fatal("the cluster is not read")
		}
	}
	tm.Send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")})
	final := tm.FinalModel(t, teatest.WithFinalTimeout(10*time.Second)).View()
	for _, want := range []string{"Brokers 1/1", "orders", "42", "q quit"} {
		if !strings.Contains(final, want) {
			t.Errorf("%q is not on the screen:\n%s", want, final)
		}
	}
	_, _ = io.Copy(io.Discard, tm.Output())
}
