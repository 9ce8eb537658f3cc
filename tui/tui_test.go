package tui_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"
	"github.com/mattn/go-runewidth"

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

func (s *source) Transitions(context.Context, admin.TransitionOptions) ([]model.Transition, []model.Problem, error) {
	return []model.Transition{{Topic: "orders", State: model.TransitionStuck, Leader: 1, Reason: "broker 2 does not answer", Fix: "kctl brokers list"}}, nil, nil
}

func (s *source) GroupLag(context.Context, admin.GroupLagOptions) ([]model.Group, []model.GroupPosition, []model.Problem, error) {
	return []model.Group{{ID: "billing", State: "Empty"}}, []model.GroupPosition{{Group: "billing", Topic: "orders", Committed: 40, LogEnd: 42, Lag: 2}}, nil, nil
}

// TestRun runs the whole program on a terminal that is none: it reads, shows, and q ends it.
func TestRun(t *testing.T) {
	src := &source{asked: make(chan struct{}, 1)}
	root := tui.New(t.Context(), tui.Options{Source: src, Refresh: 50 * time.Millisecond, Now: time.Now})
	tm := teatest.NewTestModel(t, root, teatest.WithInitialTermSize(80, 24))
	for range 3 { // it goes on reading by itself
		select {
		case <-src.asked:
		case <-time.After(time.Minute):
			t.Fatal("the cluster is not read")
		}
	}
	// What was asked for last may not be on the screen yet, and what was asked for before may have come too late to be taken.
	teatest.WaitFor(t, tm.Output(), func(screen []byte) bool { return bytes.Contains(screen, []byte("42")) }, teatest.WithDuration(time.Minute))
	tm.Send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")})
	final := tm.FinalModel(t, teatest.WithFinalTimeout(time.Minute)).View()
	for _, want := range []string{"Brokers 1/1", "orders", "42", "q quit"} {
		if !strings.Contains(final, want) {
			t.Errorf("%q is not on the screen:\n%s", want, final)
		}
	}
	_, _ = io.Copy(io.Discard, tm.Output())
}

// drive feeds the root as Bubble Tea does, without timers.
type drive struct {
	t *testing.T
	m tea.Model
}

func newDrive(t *testing.T, w, h int) *drive {
	t.Helper()
	root := tui.New(t.Context(), tui.Options{Source: &source{asked: make(chan struct{}, 1)}, Now: time.Now, Context: "prod", ReadOnly: true})
	d := &drive{t, root}
	d.run(root.Init())
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

func (d *drive) send(msg tea.Msg) {
	m, cmd := d.m.Update(msg)
	d.m = m
	d.run(cmd)
}

func (d *drive) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil, tea.QuitMsg:
	case tea.BatchMsg:
		for _, c := range msg {
			d.run(c)
		}
	default:
		d.send(msg)
	}
}

func (d *drive) keys(text string) {
	for _, word := range strings.Fields(text) {
		switch word {
		case "enter":
			d.send(tea.KeyMsg{Type: tea.KeyEnter})
		case "esc":
			d.send(tea.KeyMsg{Type: tea.KeyEsc})
		case "end":
			d.send(tea.KeyMsg{Type: tea.KeyEnd})
		default:
			d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(word)})
		}
	}
}

// TestKeysInOneMessage: what was typed faster than it was read arrives as one message.
func TestKeysInOneMessage(t *testing.T) {
	root := loadedRoot(t, &large{topics: 10, partitions: 20})
	for typed, want := range map[string]string{"jjj": "2 Partitions 4/20", "ss/topic-00003": "filter: topic-00003_"} {
		next, _ := root.Update(press(typed))
		if !strings.Contains(next.View(), want) {
			t.Errorf("%s: no %q in\n%s", typed, want, next.View())
		}
	}
}

// TestLeaveWhileTyping: ctrl+c leaves from every line that is typed.
func TestLeaveWhileTyping(t *testing.T) {
	for _, before := range []string{"/", "t /", "c /", ":"} {
		d := newDrive(t, 80, 24)
		d.keys(before)
		_, cmd := d.m.Update(tea.KeyMsg{Type: tea.KeyCtrlC})
		if cmd == nil {
			t.Errorf("%s: ctrl+c does nothing", before)
		} else if _, quit := cmd().(tea.QuitMsg); !quit {
			t.Errorf("%s: ctrl+c does not leave", before)
		}
	}
}

// TestPages goes from page to page by key and by name, and back.
func TestPages(t *testing.T) {
	d := newDrive(t, 80, 24)
	for _, tt := range []struct {
		keys string
		want []string
	}{
		{"", []string{"kctl prod [read-only]  ok", "2 Partitions 1/1", "1*  leader"}},
		{"t", []string{"transitions 1, 1 with a problem", "> orders", "stuck", "broker 2 does not answer", "fix: kctl brokers list"}},
		{"/zzz enter", []string{"nothing matches zzz; esc clears it"}},
		{"esc", []string{"> orders"}},
		{"c", []string{"groups 1", "> billing", "orders", "Empty", "kctl lag groups billing --topic orders"}},
		{"/zzz enter", []string{"nothing matches zzz; esc clears it", "/zzz"}},
		{"esc", []string{"> billing"}},
		{"esc", []string{"2 Partitions 1/1"}},
		{":tr enter", []string{"transitions 1/1"}},
		{":nowhere enter", []string{"! there is no page nowhere"}},
		{"o", []string{"2 Partitions"}},
		{":gr", []string{":gr_"}},
		{"enter", []string{"groups 1/1"}},
		{"?", []string{"go to a page by its name", "esc closes this help"}},
		{"esc", []string{"groups 1/1"}},
		{"s", []string{"groups 1/1 by group"}},
		{"p", []string{"problems only"}},
	} {
		d.keys(tt.keys)
		for _, w := range tt.want {
			if !strings.Contains(d.m.View(), w) {
				t.Fatalf("after %q: %q is missing:\n%s", tt.keys, w, d.m.View())
			}
		}
	}
}

// TestHelpScrolls: on a small terminal the help says that there is more, and shows it.
func TestHelpScrolls(t *testing.T) {
	d := newDrive(t, 40, 10)
	d.keys("?")
	if v := d.m.View(); !strings.Contains(v, "more with down") || strings.Contains(v, "close this help\n") {
		t.Errorf("help:\n%s", v)
	}
	d.keys("end")
	if v := d.m.View(); strings.Contains(v, "more with down") || !strings.Contains(v, "show or close") {
		t.Errorf("the end of the help:\n%s", v)
	}
}

// TestEverySize: no size breaks a page, the help or what is typed, and every line fits.
func TestEverySize(t *testing.T) {
	d := newDrive(t, 80, 24)
	for _, keys := range []string{"", "?", "esc t", "c", ":x", "enter"} {
		d.keys(keys)
		for _, w := range []int{0, 1, 2, 5, 9, 17, 33, 59, 200} {
			for _, h := range []int{0, 1, 2, 3, 4, 5, 7, 11, 16, 18, 29} {
				d.send(tea.WindowSizeMsg{Width: w, Height: h})
				lines := strings.Split(d.m.View(), "\n")
				if len(lines) > max(1, h) {
					t.Fatalf("%q %dx%d: %d lines", keys, w, h, len(lines))
				}
				for _, l := range lines {
					if got := runewidth.StringWidth(l); got > w {
						t.Fatalf("%q %dx%d: a line of %d columns: %q", keys, w, h, got, l)
					}
				}
			}
		}
	}
}
