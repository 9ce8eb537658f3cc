package plan

import (
	"fmt"

	"kctl/admin/model"
)

// RateCandidates says on each chosen candidate what its election loses against the others, as far as it can be
// known: a log reaches further when its last epoch is higher, or is the same and its end is higher (KIP-101);
// where an epoch is not known, ends alone are compared.
// Candidates of one partition stand together.
func RateCandidates(rows []model.Candidate) {
	for first := 0; first < len(rows); {
		next := first
		for next < len(rows) && rows[next].Topic == rows[first].Topic && rows[next].Partition == rows[first].Partition {
			next++
		}
		for i := first; i < next; i++ {
			if rows[i].Chosen {
				rows[i].Loss = lossOf(&rows[i], rows[first:next])
			}
		}
		first = next
	}
}

func lossOf(chosen *model.Candidate, all []model.Candidate) string {
	if chosen.InSync {
		return "nothing that was committed: it is in sync"
	}
	if chosen.LogEndOffset < 0 {
		return "not known: its log could not be read"
	}
	best := chosen
	unknown := 0
	for i := range all {
		c := &all[i]
		switch {
		case c.LogEndOffset < 0 && c.InSync:
			unknown++
		case c.LogEndOffset >= 0 && further(c, best):
			best = c
		}
	}
	text := ""
	if best != chosen {
		text = fmt.Sprintf("records that broker %d has beyond the common part (its log ends at %d%s)", best.Broker, best.LogEndOffset, inEpoch(best))
	}
	if unknown > 0 {
		if text != "" {
			text += ", and "
		}
		text += fmt.Sprintf("all committed records from %d on that only the in-sync replicas out of reach have", chosen.LogEndOffset)
	}
	if text == "" {
		text = "nothing known: no other log reaches further"
	}
	return text
}

func further(a, b *model.Candidate) bool {
	if a.LastEpoch >= 0 && b.LastEpoch >= 0 && a.LastEpoch != b.LastEpoch {
		return a.LastEpoch > b.LastEpoch
	}
	return a.LogEndOffset > b.LogEndOffset
}

func inEpoch(c *model.Candidate) string {
	if c.LastEpoch < 0 {
		return ""
	}
	return fmt.Sprintf(" in epoch %d", c.LastEpoch)
}
