package sim

import (
	"strings"
	"testing"

	"kctl/broker/replica"
)

// TestLogStartIsChecked: the invariants of log starts fail when a replica loses records that nobody deleted, when its start falls,
// and when a leader lets a consumer read below it.
func TestLogStartIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(s *Sim, p *part)
		want   string
	}{
		"records that nobody deleted": {func(s *Sim, p *part) {
			if err := p.log.AdvanceLogStart(p.core.HighWatermark()); err != nil {
				t.Fatal(err)
			}
			p.step(replica.LogStartAdvanced{At: s.now, LogStart: p.log.LogStartOffset()})
		}, "records were deleted below"},
		"a start that nobody was told of": {func(s *Sim, p *part) {
			if err := p.log.AdvanceLogStart(p.core.HighWatermark()); err != nil {
				t.Fatal(err)
			}
			s.check.touch(p)
		}, "core says log start"},
		"a start that falls": {func(s *Sim, p *part) {
			s.check.seen[p].start = p.core.LogStart() + 1
			s.check.touch(p)
		}, "log start fell"},
		"more than is committed": {func(s *Sim, p *part) { s.check.recordsDeleted(p, s.check.committed(p.tp)+1) }, "committed is"},
		"a consumer below": {func(s *Sim, p *part) {
			s.check.fetchVerdict(p, replica.FetchQuery{Replica: replica.Consumer, Offset: p.core.LogStart() - 1}, replica.FetchVerdict{})
		}, "consumer may read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(Options{Seed: 1, Faults: Faults{ProduceEvery: 5e6}})
			defer s.close()
			s.boot()
			p := leaderWithRecords(s)
			if p == nil {
				t.Fatalf("nobody leads: %v", s.failed)
			}
			tt.damage(s, p)
			s.check.afterEvent()
			if s.failed == nil || !strings.Contains(s.failed.Error(), tt.want) {
				t.Errorf("%v, want %q", s.failed, tt.want)
			}
		})
	}
}

// leaderWithRecords runs until some leader has committed records.
func leaderWithRecords(s *Sim) *part {
	for s.failed == nil && s.report.Events < 5000 && s.next() {
		for _, n := range s.nodes {
			for _, p := range n.order {
				if p.log != nil && p.core.Role() == replica.Leader && p.core.HighWatermark() > 3 {
					return p
				}
			}
		}
	}
	return nil
}
