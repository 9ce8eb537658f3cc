package group

import (
	"slices"
	"strings"

	"kctl/zkutil/cluster"
)

// Overview is a group in a listing.
type Overview struct {
	Group        string
	ProtocolType string
	State        State
}

// GroupType is the type of every group here in ListGroups v5 (KIP-848).
const GroupType = "classic"

// List returns the groups, sorted by id, whose state and type are among those named; an empty list names
// all. Names are compared without regard to case.
func (s *Shard) List(states, types []string) []Overview {
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(t, GroupType) }) {
		return nil
	}
	out := make([]Overview, 0, len(s.groups))
	for _, id := range sortedKeys(s.groups) {
		g := s.groups[id]
		if len(states) == 0 || slices.ContainsFunc(states, g.state.equalFold) {
			out = append(out, Overview{Group: id, ProtocolType: g.typeName(), State: g.state})
		}
	}
	return out
}

func (g *consumerGroup) typeName() string {
	if g.protocolType == nil {
		return ""
	}
	return *g.protocolType
}

// MemberDescription is a member in a Description.
type MemberDescription struct {
	MemberID             string
	InstanceID           *string
	ClientID, ClientHost string
	Metadata, Assignment []byte // only of a stable group
}

// Description is what DescribeGroups shows of a group. Protocol is empty unless the group is stable.
type Description struct {
	State        State
	ProtocolType string
	Protocol     string
	Members      []MemberDescription
}

// Describe returns the group; an unknown one is Dead.
func (s *Shard) Describe(id string) Description {
	g := s.groups[id]
	if g == nil {
		return Description{State: Dead}
	}
	d := Description{State: g.state, ProtocolType: g.typeName()}
	stable := g.state == Stable
	if stable {
		d.Protocol = *g.protocol
	}
	for _, m := range g.members {
		md := MemberDescription{MemberID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost}
		if stable {
			md.Metadata, md.Assignment = m.metadata(d.Protocol), m.assignment
		}
		d.Members = append(d.Members, md)
	}
	return d
}

// Fetched is the answer for one partition of FetchOffsets; Offset.Offset is -1 when there is none.
type Fetched struct {
	TP cluster.TopicPartition
	Offset
	Code Code
}

// FetchOffsets returns the committed offsets of the partitions; of all that the group has, sorted, when
// all is set. With requireStable a partition whose offset is being written answers UNSTABLE_OFFSET_COMMIT
// (KIP-447). The state of the group does not matter.
func (s *Shard) FetchOffsets(id string, tps []cluster.TopicPartition, all, requireStable bool) []Fetched {
	g := s.groups[id]
	if g != nil && g.state == Dead {
		g = nil
	}
	if all {
		if g == nil {
			return nil
		}
		tps = make([]cluster.TopicPartition, 0, len(g.offsets))
		for tp := range g.offsets {
			tps = append(tps, tp)
		}
		slices.SortFunc(tps, compareTP)
	}
	out := make([]Fetched, 0, len(tps))
	for _, tp := range tps {
		f := Fetched{TP: tp, Offset: Offset{Offset: -1, LeaderEpoch: -1}}
		if g != nil {
			if c, ok := g.offsets[tp]; requireStable && g.unstable(tp) {
				f.Code = UnstableOffsetCommit
			} else if ok {
				f.Offset = c.Offset
			}
		}
		out = append(out, f)
	}
	return out
}
