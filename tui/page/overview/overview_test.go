package overview

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/mattn/go-runewidth"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/tui/data"
	"kctl/tui/theme"
	"kctl/zkutil/cluster"
)

var update = flag.Bool("update", false, "write the golden frames anew")

type ids = []cluster.BrokerID

// fixed is a cluster that never changes: broker 3 is down, one partition is offline.
type fixed struct{ snapshots, lags int }

func (f *fixed) Snapshot(context.Context, admin.SnapshotOptions) (*model.Snapshot, error) {
	f.snapshots++
	return testSnapshot(), nil
}

func (f *fixed) ReplicaLag(_ context.Context, targets []plan.Target) ([]model.ReplicaPosition, []model.Problem, error) {
	f.lags++
	var out []model.ReplicaPosition
	s := testSnapshot()
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			if p := &s.Topics[i].Partitions[j]; plan.Match(targets, p.Topic, p.Partition) {
				out = append(out, positions(p)...)
			}
		}
	}
	return out, nil, nil
}

func (f *fixed) Transitions(context.Context, admin.TransitionOptions) ([]model.Transition, []model.Problem, error) {
	return nil, nil, nil
}

func (f *fixed) GroupLag(context.Context, admin.GroupLagOptions) ([]model.Group, []model.GroupPosition, []model.Problem, error) {
	return nil, nil, nil, nil
}

func positions(p *model.Partition) []model.ReplicaPosition {
	var out []model.ReplicaPosition
	for _, r := range p.Replicas {
		pos := model.ReplicaPosition{
			Topic: p.Topic, Partition: p.Partition, Broker: r, Leader: r == p.Leader, InSync: p.InSync(r),
			HighWatermark: 1000, LogEndOffset: 1000, LeaderEpoch: p.LeaderEpoch,
		}
		if r == 1 && p.Partition == 1 {
			pos.LogEndOffset, pos.HighWatermark, pos.LagRecords, pos.LagMs = 750, 750, 250, 12300
		}
		if r == 3 {
			pos.LogStartOffset, pos.HighWatermark, pos.LogEndOffset, pos.LagRecords, pos.LagMs, pos.LeaderEpoch = -1, -1, -1, -1, -1, -1
			pos.Err = "broker is not registered"
		}
		out = append(out, pos)
	}
	return out
}

func testSnapshot() *model.Snapshot {
	s := &model.Snapshot{ClusterID: "Pq0mLx1uT3-kafka", Controller: model.Controller{ID: 1, Epoch: -1}, Source: model.SourceProtocol}
	for _, id := range (ids{1, 2, 3}) {
		b := model.Broker{ID: id, Host: "broker" + fmt.Sprint(id), Port: 9092, Live: id != 3, Controller: id == 1, Epoch: -1}
		s.Brokers = append(s.Brokers, b)
	}
	for _, name := range []string{"invoices", "orders", "payments.v2"} {
		t := model.Topic{Name: name}
		for p := range int32(6) {
			first := cluster.BrokerID(p%3) + 1
			replicas := ids{first, first%3 + 1, (first+1)%3 + 1}
			mp := model.Partition{Topic: name, Partition: p, LeaderEpoch: 4, Replicas: replicas, Leader: first, MinISR: 2}
			for _, r := range replicas {
				if r != 3 {
					mp.ISR = append(mp.ISR, r)
				}
			}
			if first == 3 {
				mp.Leader = mp.ISR[0]
			}
			if name == "orders" && p == 5 {
				mp.Leader, mp.ISR = -1, ids{3}
			}
			t.Partitions = append(t.Partitions, mp)
		}
		s.Topics = append(s.Topics, t)
	}
	return s
}

func at() time.Time { return time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC) }

// drive feeds the page like Bubble Tea does: commands run to the end, their messages come back.
type drive struct {
	t   *testing.T
	m   Model
	src *fixed
}

func newDrive(t *testing.T, w, h int) *drive {
	t.Helper()
	src := &fixed{}
	d := &drive{t: t, m: New(data.New(t.Context(), src, at), theme.New(false), 0, ""), src: src}
	d.do(d.m.SetSize(w, h))
	d.do(d.m.Init())
	return d
}

func (d *drive) do(m Model, cmd tea.Cmd) {
	d.m = m
	d.runCmd(cmd)
}

// runCmd runs a command in place; the page makes no timers without a refresh time.
func (d *drive) runCmd(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			d.runCmd(c)
		}
	case data.SnapshotLoaded, data.LagLoaded:
		d.do(d.m.Update(msg))
	}
}

func (d *drive) keys(names ...string) {
	for _, n := range names {
		d.do(d.m.Update(key(n)))
	}
}

func key(name string) tea.KeyMsg {
	for k, t := range map[string]tea.KeyType{
		"tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown,
		"backspace": tea.KeyBackspace, "ctrl+c": tea.KeyCtrlC, "home": tea.KeyHome, "end": tea.KeyEnd, "pgdown": tea.KeyPgDown,
	} {
		if k == name {
			return tea.KeyMsg{Type: t}
		}
	}
	if name == " " {
		return tea.KeyMsg{Type: tea.KeySpace, Runes: []rune(" ")}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// TestFrames holds the page at three sizes, and its variants at 80x24.
func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		keys []string
	}{
		{"80x24", 80, 24, nil},
		{"120x40", 120, 40, nil},
		{"40x12", 40, 12, nil},
		{"80x24-filter", 80, 24, []string{"/", "ord"}},
		{"80x24-filtered-replicas", 80, 24, []string{"/", "orders:1", "enter", "tab"}},
		{"80x24-filter-nothing", 80, 24, []string{"/", "zzz", "enter"}},
		{"40x12-filter-nothing", 40, 12, []string{"/", "zzz", "enter"}},
		{"80x24-problems-by-status", 80, 24, []string{"p", "s"}},
		{"80x24-by-lag", 80, 24, []string{"s", "s"}},
		{"40x12-brokers", 40, 12, []string{"1"}},
		{"40x12-replicas", 40, 12, []string{"down", "3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDrive(t, tt.w, tt.h)
			d.keys(tt.keys...)
			frame := d.m.View()
			lines := strings.Split(frame, "\n")
			if len(lines) != tt.h {
				t.Errorf("%d lines, want %d", len(lines), tt.h)
			}
			for i, l := range lines {
				if w := runewidth.StringWidth(l); w != tt.w {
					t.Errorf("line %d is %d wide: %q", i, w, l)
				}
			}
			path := filepath.Join("testdata", tt.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(frame+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != frame+"\n" {
				t.Errorf("frame differs from %s (-update writes it):\n%s", path, frame)
			}
		})
	}
}

// TestViewIsPure: drawing twice gives the same, and drawing asks for nothing.
func TestViewIsPure(t *testing.T) {
	d := newDrive(t, 80, 24)
	before := *d.src
	first := d.m.View()
	if second := d.m.View(); first != second || *d.src != before {
		t.Error("View changed something")
	}
}

// TestLateAnswersAreDropped: only the newest request's answer counts.
func TestLateAnswersAreDropped(t *testing.T) {
	d := newDrive(t, 80, 24)
	late := data.SnapshotLoaded{Seq: d.m.seq, Snapshot: &model.Snapshot{ClusterID: "old"}}
	m, _ := d.m.Update(key("r")) // a new request is on its way
	m, cmd := m.Update(late)
	if m.snap.ClusterID == "old" || cmd != nil {
		t.Error("a late snapshot was taken")
	}
	m, _ = m.Update(data.LagLoaded{Seq: m.lagSeq - 1, Err: errors.New("late")})
	if m.lagErr != "" {
		t.Error("a late lag answer was taken")
	}
}

// TestTicks: one timer at a time; none while paused; a tick of an older request does nothing.
func TestTicks(t *testing.T) {
	d := newDrive(t, 80, 24)
	n := d.src.snapshots
	d.do(d.m.Update(data.Tick{Seq: d.m.seq - 1}))
	if d.src.snapshots != n {
		t.Error("an old tick read the cluster")
	}
	d.do(d.m.Update(data.Tick{Seq: d.m.seq}))
	if d.src.snapshots != n+1 {
		t.Error("a tick did not read the cluster")
	}
	d.keys(" ")
	d.do(d.m.Update(data.Tick{Seq: d.m.seq}))
	if d.src.snapshots != n+1 || !strings.Contains(d.m.View(), "paused") {
		t.Error("paused, but still reading")
	}
	d.keys(" ")
	if d.src.snapshots != n+2 {
		t.Error("going on does not read at once")
	}
}

// TestErrorsKeepTheLastPicture: an error is shown, what was read before stays.
func TestErrorsKeepTheLastPicture(t *testing.T) {
	d := newDrive(t, 80, 24)
	m, _ := d.m.Update(key("r"))
	m, _ = m.Update(data.SnapshotLoaded{Seq: m.seq, Err: errors.New("no broker\x1b[31m answers")})
	v := m.View()
	if !strings.Contains(v, "! no broker[31m answers") || !strings.Contains(v, "orders") || strings.Contains(v, "\x1b") {
		t.Errorf("view:\n%s", v)
	}
}

// TestAgeIsSaid: an old picture says so and how old it is, whether the reading failed or does not come back.
func TestAgeIsSaid(t *testing.T) {
	m := New(data.New(t.Context(), &fixed{}, at), theme.New(false), time.Second, " prod [read-only]")
	m, _ = m.Init()
	m, _ = m.Update(data.SnapshotLoaded{Seq: m.seq, Snapshot: testSnapshot(), At: at()})
	if v := m.View(); !strings.Contains(v, " kctl prod [read-only]  1 OFFLINE") {
		t.Errorf("a fresh picture:\n%s", v)
	}
	m, _ = m.Update(data.Clock{Now: at().Add(4 * time.Second)})
	if strings.Contains(m.View(), "STALE") {
		t.Error("stale after four seconds")
	}
	m, _ = m.Update(data.Clock{Now: at().Add(61 * time.Second)}) // the next answer does not come
	if !strings.Contains(m.View(), "  STALE 1m1s  was 1 OFFLINE") {
		t.Errorf("not stale after a minute:\n%s", m.View())
	}
	m, _ = m.Update(data.SnapshotLoaded{Seq: m.seq, Snapshot: testSnapshot(), At: at().Add(62 * time.Second)})
	if strings.Contains(m.View(), "STALE") {
		t.Error("stale although it was read")
	}
	m, _ = m.load()
	m, _ = m.Update(data.SnapshotLoaded{Seq: m.seq, Err: errors.New("gone"), At: at().Add(64 * time.Second)})
	if !strings.Contains(m.View(), "  STALE 2s  ") {
		t.Errorf("a failed reading:\n%s", m.View())
	}
}

// TestReplicasKeepTheirOrder: the replicas come in the order of the list, the preferred leader first and marked, and a
// leader that is another one names it.
func TestReplicasKeepTheirOrder(t *testing.T) {
	d := newDrive(t, 120, 40)
	d.keys("/", "invoices:2", "enter")
	v := d.m.View()
	three, one, two := strings.Index(v, " 3*  follower"), strings.Index(v, " 1   leader"), strings.Index(v, " 2   follower")
	if three < 0 || one < three || two < one || !strings.Contains(v, "  1 (3)  ") {
		t.Errorf("%d %d %d:\n%s", three, one, two, v)
	}
}

// TestFirstAnswerFails: the whole error is on the screen, not a part of it in a title.
func TestFirstAnswerFails(t *testing.T) {
	m := New(data.New(t.Context(), &fixed{}, at), theme.New(false), time.Second, "")
	m, _ = m.Init()
	m, _ = m.Update(data.SnapshotLoaded{Seq: m.seq, Err: errors.New("no broker answers: 127.0.0.1:19092: connection refused; 127.0.0.1:19093: connection refused")})
	v := m.View()
	for _, want := range []string{"no answer yet", "127.0.0.1:19092: connection refused;", "refused; 127.0.0.1:19093:", "asking again every 1s"} {
		if !strings.Contains(v, want) {
			t.Errorf("%q is missing:\n%s", want, v)
		}
	}
}

func TestCursorAndFilter(t *testing.T) {
	d := newDrive(t, 80, 24)
	d.keys("end")
	if d.m.cursor[partitionsPane] != 17 {
		t.Errorf("end: cursor %d", d.m.cursor[partitionsPane])
	}
	d.keys("j")
	if d.m.cursor[partitionsPane] != 17 {
		t.Error("the cursor left the list")
	}
	d.keys("/", "payments", "enter")
	if len(d.m.parts) != 6 || d.m.parts[d.m.cursor[partitionsPane]].Topic != "payments.v2" {
		t.Errorf("filter: %d partitions", len(d.m.parts))
	}
	d.keys("/", "x", "backspace", "enter")
	if d.m.filter != "payments" {
		t.Errorf("filter %q", d.m.filter)
	}
	d.keys("esc")
	if len(d.m.parts) != 18 {
		t.Error("esc keeps the filter")
	}
	d.keys("home", "k", "tab", "tab", "shift+tab")
	if d.m.focus != replicasPane {
		t.Errorf("focus %d", d.m.focus)
	}
	if _, cmd := d.m.Update(key("q")); cmd == nil {
		t.Error("q does not quit")
	}
}

// TestOnlyWhatIsVisibleIsAskedFor: on a big cluster the positions of one screen are read, not of all.
func TestOnlyWhatIsVisibleIsAskedFor(t *testing.T) {
	m := New(data.New(t.Context(), &fixed{}, at), theme.New(false), 0, "")
	big := &model.Snapshot{Topics: []model.Topic{{Name: "big"}}}
	for i := range int32(39_000) {
		big.Topics[0].Partitions = append(big.Topics[0].Partitions, model.Partition{Topic: "big", Partition: i, Leader: 1, Replicas: ids{1}, ISR: ids{1}})
	}
	m, _ = m.Init()
	m, _ = m.loaded(data.SnapshotLoaded{Seq: m.seq, Snapshot: big})
	m, _ = m.Update(key("end"))
	m.View() // what it costs: TestKeysOnALargeCluster
	if n := len(m.visibleParts()); n > 24 {
		t.Errorf("positions of %d partitions are asked for", n)
	}
}

// TestAnySize: no size of the terminal breaks the page, and every line fits.
func TestAnySize(t *testing.T) {
	d := newDrive(t, 80, 24)
	for _, keys := range [][]string{nil, {"tab"}, {"tab"}} {
		d.keys(keys...)
		for _, w := range []int{0, 1, 2, 3, 5, 9, 17, 33, 59} {
			for _, h := range []int{0, 1, 2, 3, 4, 5, 7, 11, 17, 18, 19, 29} {
				m, _ := d.m.SetSize(w, h)
				lines := strings.Split(m.View(), "\n")
				if len(lines) > max(1, h) {
					t.Fatalf("%dx%d: %d lines", w, h, len(lines))
				}
				for _, l := range lines {
					if got := runewidth.StringWidth(l); got > w {
						t.Fatalf("%dx%d: a line of %d columns: %q", w, h, got, l)
					}
				}
			}
		}
	}
}
