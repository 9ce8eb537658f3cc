package sim

import (
	"slices"
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

// TestEmptiedLeaderIsCommitted: after a loss that is excused, what is committed reaches to where the leader's empty log begins, also when
// records that followed are lost again, but not to where another replica's begins, nor without such a loss.
func TestEmptiedLeaderIsCommitted(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(s *Sim, p *part)
		grown  bool
	}{
		"the leader's": {func(s *Sim, p *part) { s.check.excuse(p.tp, s.check.canonOf(p.tp), p.core.LogEnd()-1) }, true},
		"again": {func(s *Sim, p *part) {
			cn, end := s.check.canonOf(p.tp), p.core.LogEnd()
			cn.batches = append(cn.batches, canonBatch{base: end, next: end + 1})
			cn.gap, cn.end = len(cn.batches)-1, end+1
			cn.batches[cn.gap-1].next = end + 1 // it went in the midst
			s.check.excuse(p.tp, cn, end)
		}, true},
		"of an earlier leader": {func(s *Sim, p *part) {
			s.check.excuse(p.tp, s.check.canonOf(p.tp), p.core.LogEnd()-1)
			state := s.check.states[p.tp]
			state.LeaderEpoch++
			s.check.states[p.tp] = state
		}, false},
		"nothing was lost": {func(s *Sim, p *part) { s.check.canonOf(p.tp).end-- }, false},
		"above what was deleted": {func(s *Sim, p *part) {
			s.check.excuse(p.tp, s.check.canonOf(p.tp), p.core.LogEnd()-1)
			s.check.canonOf(p.tp).start--
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(Options{Seed: 1, Faults: Faults{ProduceEvery: 5e6}})
			defer s.close()
			s.boot()
			p := leaderWithRecords(s)
			for s.failed == nil && p != nil && p.core.HighWatermark() < p.core.LogEnd() && s.next() {
			}
			if p == nil || s.failed != nil || s.check.committed(p.tp) != p.core.LogEnd() {
				t.Fatalf("no leader with everything committed: %v", s.failed)
			}
			end := p.core.LogEnd()
			if err := p.log.AdvanceLogStart(end); err != nil {
				t.Fatal(err)
			}
			s.check.recordsDeleted(p, end)
			p.step(replica.LogStartAdvanced{At: s.now, LogStart: end})
			tt.before(s, p)
			before := s.check.committed(p.tp)
			s.check.touch(p)
			s.check.afterEvent()
			if got := s.check.committed(p.tp); before >= end || (got == end) != tt.grown || !tt.grown && got != before {
				t.Errorf("committed up to %d, before %d, log [%d, %d): %v", got, before, p.core.LogStart(), end, s.failed)
			}
			if tt.grown && s.failed != nil {
				t.Error(s.failed)
			}
		})
	}
}

// TestCutInsideBatch: a log that is cut in the midst of a batch ends with the batch before, so the high watermark may fall so far, and no
// further; and only where everything below the cut was deleted on request.
func TestCutInsideBatch(t *testing.T) {
	s := newSim(Options{Seed: 1, Faults: Faults{ProduceEvery: 5e6}})
	defer s.close()
	s.boot()
	p := leaderWithRecords(s)
	if p == nil {
		t.Fatalf("nobody leads: %v", s.failed)
	}
	cn, seen := s.check.canonOf(p.tp), s.check.seen[p]
	i := slices.IndexFunc(cn.batches, func(b canonBatch) bool { return b.next > b.base+1 })
	if i < 0 {
		t.Fatalf("no batch of two records in %+v", cn.batches)
	}
	base := cn.batches[i].base
	for _, tt := range []struct{ deleted, to, want int64 }{
		{base + 1, base + 1, base},
		{base, base + 1, base + 1},
		{base + 1, base, base},
		{p.core.LogEnd(), p.core.LogEnd(), p.core.LogEnd()},
	} {
		cn.start = tt.deleted
		seen.hw, seen.checked, seen.start = tt.to, tt.to, tt.to
		s.check.logCut(p, replica.LogCut{From: p.core.LogEnd(), To: tt.to, HighWatermark: tt.to})
		if s.failed != nil || seen.hw != tt.want || seen.checked != tt.want || seen.start != tt.want {
			t.Errorf("deleted below %d, cut to %d: seen %+v, want %d: %v", tt.deleted, tt.to, *seen, tt.want, s.failed)
		}
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
