package group

import (
	"fmt"
	"strings"
	"testing"
)

func showText(s *string) string {
	if s == nil {
		return "nil"
	}
	return *s
}

func showInstance(s *string) string {
	if s == nil {
		return ""
	}
	return "/" + *s
}

func showCodes(codes []Code) string {
	var out []string
	for _, c := range codes {
		out = append(out, c.String())
	}
	return strings.Join(out, ",")
}

func showEffect(eff Effect) []string {
	switch r := eff.(type) {
	case JoinReply:
		if r.Code != None {
			return []string{fmt.Sprintf("join-reply r=%d %v member=%s", r.Request, r.Code, r.MemberID)}
		}
		line := fmt.Sprintf("join-reply r=%d gen=%d protocol=%s leader=%s member=%s", r.Request, r.Generation, showText(r.Protocol), r.Leader, r.MemberID)
		if r.SkipAssignment {
			line += " skip"
		}
		var ms []string
		for _, m := range r.Members {
			ms = append(ms, fmt.Sprintf("%s%s:%q", m.MemberID, showInstance(m.InstanceID), m.Metadata))
		}
		if len(ms) > 0 {
			line += " members=[" + strings.Join(ms, " ") + "]"
		}
		return []string{line}
	case SyncReply:
		if r.Code != None {
			return []string{fmt.Sprintf("sync-reply r=%d %v", r.Request, r.Code)}
		}
		return []string{fmt.Sprintf("sync-reply r=%d %s %s %q", r.Request, showText(r.ProtocolType), showText(r.Protocol), r.Assignment)}
	case HeartbeatReply:
		return []string{fmt.Sprintf("heartbeat-reply r=%d %v", r.Request, r.Code)}
	case LeaveReply:
		line := fmt.Sprintf("leave-reply r=%d %v", r.Request, r.Code)
		for _, m := range r.Members {
			line += fmt.Sprintf(" %s%s:%v", m.MemberID, showInstance(m.InstanceID), m.Code)
		}
		return []string{line}
	case CommitReply:
		return []string{fmt.Sprintf("commit-reply r=%d %s", r.Request, showCodes(r.Codes))}
	case DeleteGroupReply:
		return []string{fmt.Sprintf("delete-reply r=%d %v", r.Request, r.Code)}
	case DeleteOffsetsReply:
		return []string{fmt.Sprintf("delete-offsets-reply r=%d %v %s", r.Request, r.Code, showCodes(r.Codes))}
	case Note:
		return []string{strings.TrimRight(fmt.Sprintf("note %v %s gen=%d n=%d %s %s", r.Kind, r.Group, r.Generation, r.Count, r.Member, r.Reason), " ")}
	case Append:
		return showAppend(r)
	}
	return []string{fmt.Sprintf("%T%+v", eff, eff)}
}

func showAppend(a Append) []string {
	head := fmt.Sprintf("append id=%d", a.ID)
	if a.ProducerID != NoProducer {
		head += fmt.Sprintf(" pid=%d", a.ProducerID)
	}
	lines := []string{head}
	for _, o := range a.Offsets {
		if o.Tombstone {
			lines = append(lines, fmt.Sprintf("  offset %s %v tombstone", o.Group, o.TP))
			continue
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  offset %s %v = %d %s", o.Group, o.TP, o.Offset.Offset, o.Metadata), " "))
	}
	for _, g := range a.Groups {
		if g.Tombstone {
			lines = append(lines, fmt.Sprintf("  group %s tombstone", g.Group))
			continue
		}
		lines = append(lines, fmt.Sprintf("  group %s type=%s protocol=%s leader=%s gen=%d since=%d", g.Group, g.ProtocolType, showText(g.Protocol), showText(g.Leader), g.Generation, g.StateTimestamp))
		for _, m := range g.Members {
			lines = append(lines, fmt.Sprintf("    %s%s %v/%v %q %q", m.MemberID, showInstance(m.InstanceID), m.SessionTimeout, m.RebalanceTimeout, m.Subscription, m.Assignment))
		}
	}
	return lines
}

func showGroup(g *consumerGroup) string {
	line := fmt.Sprintf("%s %v gen=%d leader=%s", g.id, g.state, g.generation, g.leader)
	for _, m := range g.members {
		line += " " + m.id + showInstance(m.instanceID)
		if m.join != 0 {
			line += "(joining)"
		}
		if m.sync != 0 {
			line += "(syncing)"
		}
	}
	if len(g.pending) > 0 {
		line += fmt.Sprintf(" pending=%v", sortedKeys(g.pending))
	}
	if len(g.offsets) > 0 {
		line += fmt.Sprintf(" offsets=%d", len(g.offsets))
	}
	return line
}

// checkGroup verifies what must hold for every group after every event.
func checkGroup(t *testing.T, g *consumerGroup) {
	t.Helper()
	waiting := 0
	counts := make(map[string]int)
	static := 0
	for _, m := range g.members {
		if m.join != 0 {
			waiting++
		}
		if m.join != 0 && m.sync != 0 {
			t.Errorf("group %s: member %s waits for join and sync", g.id, m.id)
		}
		for _, p := range m.protocols {
			counts[p.Name]++
		}
		if m.instanceID != nil {
			static++
			if g.static[*m.instanceID] != m.id {
				t.Errorf("group %s: instance %s maps to %s, not %s", g.id, *m.instanceID, g.static[*m.instanceID], m.id)
			}
		}
		if g.byID[m.id] != m {
			t.Errorf("group %s: member %s is not indexed", g.id, m.id)
		}
	}
	if waiting != g.awaitingJoin || static != len(g.static) || len(g.byID) != len(g.members) || len(counts) != len(g.supported) {
		t.Errorf("group %s: counters are off: waiting %d/%d static %d/%d members %d/%d protocols %d/%d", g.id,
			waiting, g.awaitingJoin, static, len(g.static), len(g.members), len(g.byID), len(counts), len(g.supported))
	}
	for p, n := range counts {
		if g.supported[p] != n {
			t.Errorf("group %s: protocol %s counted %d, is %d", g.id, p, g.supported[p], n)
		}
	}
	if (len(g.members) == 0) != (g.leader == "") || g.leader != "" && g.byID[g.leader] == nil {
		t.Errorf("group %s: leader %q is not a member", g.id, g.leader)
	}
	if (g.state == Empty || g.state == Dead) && len(g.members) > 0 || (g.state == Stable || g.state == CompletingRebalance) && g.protocol == nil {
		t.Errorf("group %s: state %v with %d members and protocol %v", g.id, g.state, len(g.members), g.protocol)
	}
}
