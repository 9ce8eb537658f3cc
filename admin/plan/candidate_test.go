package plan_test

import (
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// TestRateCandidates: the words on a loss follow the logs: epochs before ends, and what is out of reach counts.
func TestRateCandidates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others []model.Candidate
		chosen model.Candidate
		want   string
	}{
		{"in sync", []model.Candidate{{LogEndOffset: 90, LastEpoch: 3}}, model.Candidate{InSync: true, LogEndOffset: 80, LastEpoch: 3}, "nothing that was committed"},
		{"longer log", []model.Candidate{{Broker: 2, LogEndOffset: 90, LastEpoch: 3}}, model.Candidate{LogEndOffset: 80, LastEpoch: 3}, "broker 2 has beyond"},
		{"later epoch, shorter log", []model.Candidate{{Broker: 2, LogEndOffset: 70, LastEpoch: 4}}, model.Candidate{LogEndOffset: 80, LastEpoch: 3}, "broker 2 has beyond"},
		{"furthest", []model.Candidate{{Broker: 2, LogEndOffset: 99, LastEpoch: 2}}, model.Candidate{LogEndOffset: 80, LastEpoch: 3}, "no other log reaches further"},
		{"in-sync one away", []model.Candidate{{Broker: 2, InSync: true, LogEndOffset: -1, Err: "away"}}, model.Candidate{LogEndOffset: 80, LastEpoch: 3}, "all committed records from 80 on"},
		{"not readable", nil, model.Candidate{LogEndOffset: -1}, "could not be read"},
	} {
		tt.chosen.Chosen = true
		rows := append([]model.Candidate{tt.chosen}, tt.others...)
		plan.RateCandidates(rows)
		if !strings.Contains(rows[0].Loss, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, rows[0].Loss, tt.want)
		}
	}
}
