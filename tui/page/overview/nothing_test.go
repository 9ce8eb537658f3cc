package overview

import (
	"errors"
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/tui/data"
	"kctl/tui/theme"
)

// TestNothing: a pane without a row says why, and which key changes that.
func TestNothing(t *testing.T) {
	fine := func() *model.Snapshot {
		s := &model.Snapshot{Brokers: []model.Broker{{ID: 1, Live: true}}}
		p := model.Partition{Topic: "orders", Leader: 1, Replicas: ids{1}, ISR: ids{1}}
		s.Topics = []model.Topic{{Name: "orders", Partitions: []model.Partition{p}}}
		return s
	}
	for name, tt := range map[string]struct {
		snap *model.Snapshot
		keys []string
		want []string
	}{
		"filter":              {fine(), []string{"/", "zzz", "enter"}, []string{"nothing matches zzz; esc clears it", "no partition is selected"}},
		"while it is typed":   {fine(), []string{"/", "zzz"}, []string{"nothing matches zzz; esc clears it"}},
		"no problems":         {fine(), []string{"p"}, []string{"nothing has a problem; p shows everything"}},
		"both":                {fine(), []string{"p", "/", "zzz", "enter"}, []string{"nothing with a problem matches zzz; esc clears it"}},
		"no topics":           {&model.Snapshot{}, nil, []string{"no broker is registered", "no topic exists", "no partition is selected"}},
		"no topics, filtered": {&model.Snapshot{}, []string{"/", "zzz", "enter"}, []string{"no topic exists"}},
		"topics with errors":  {&model.Snapshot{Topics: []model.Topic{{Name: "t", Err: "not JSON"}}}, nil, []string{"no partition of a topic could be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(data.New(t.Context(), &fixed{}, at), theme.New(false), 0, "")
			m, _ = m.Init()
			m, _ = m.loaded(data.SnapshotLoaded{Seq: m.seq, Snapshot: tt.snap, At: at()})
			for _, k := range tt.keys {
				m, _ = m.Update(key(k))
			}
			for _, want := range tt.want {
				if !strings.Contains(m.View(), want) {
					t.Errorf("no %q in\n%s", want, m.View())
				}
			}
		})
	}
}

// TestNoPositions: the pane of the replicas says whether their positions are still read or could not be.
func TestNoPositions(t *testing.T) {
	d := newDrive(t, 80, 24)
	m := d.m
	m.lag = nil
	if v := m.View(); !strings.Contains(v, "reading the positions") {
		t.Error(v)
	}
	m = m.lagLoaded(data.LagLoaded{Seq: m.lagSeq, Err: errors.New("no answer in time")})
	m.lag = nil
	if v := m.View(); !strings.Contains(v, "the positions could not be read") {
		t.Error(v)
	}
}
