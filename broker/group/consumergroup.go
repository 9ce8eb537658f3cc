package group

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
)

// State is the state of a group.
type State uint8

// The states. Empty: no member, perhaps offsets. PreparingRebalance: waiting for members to (re)join.
// CompletingRebalance: waiting for the leader's assignment. Stable: assignments are handed out. Dead: being
// removed, its tombstones are on their way.
const (
	Empty State = iota + 1
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

var stateNames = [...]string{"", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

// String returns Kafka's name of the state.
func (s State) String() string { return stateNames[s] }

// allowedFrom lists for each state those it may follow. Dead may go back to Empty when the removal could
// not be written.
var allowedFrom = [...][]State{
	Empty:               {PreparingRebalance, Dead},
	PreparingRebalance:  {Empty, CompletingRebalance, Stable},
	CompletingRebalance: {PreparingRebalance},
	Stable:              {CompletingRebalance},
	Dead:                {Empty},
}

// consumerProtocolType is the protocol type of Kafka's own consumers.
const consumerProtocolType = "consumer"

// member is one member of a group.
type member struct {
	id                   string
	instanceID           *string
	clientID, clientHost string
	session, rebalance   time.Duration
	protocols            []Protocol
	assignment           []byte
	isNew                bool      // has not completed a rebalance yet
	join                 RequestID // JoinGroup that waits; 0: none
	sync                 RequestID // SyncGroup that waits; 0: none
	life                 alarm
}

// excused reports whether the member need not send heartbeats now, because it waits for us.
func (m *member) excused() bool { return !m.isNew && (m.join != 0 || m.sync != 0) }

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// offers reports whether the member's protocols are the same as given, names, metadata and order.
func (m *member) offers(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// committed is an offset with the write that set it (0: loaded from the log).
type committed struct {
	Offset
	by AppendID
}

// consumerGroup is one group. Members are kept in the order in which they joined.
type consumerGroup struct {
	id           string
	state        State
	stateSince   int64 // milliseconds; -1: unknown (record of an old version)
	generation   int32
	protocolType *string // nil: offsets only, never had a member
	protocol     *string
	leader       string // empty: none

	members      []*member
	byID         map[string]*member
	static       map[string]string   // instance id -> member id
	supported    map[string]int      // protocol -> number of members that offer it
	pending      map[string]*alarm   // member ids handed out with MEMBER_ID_REQUIRED, not yet joined
	pendingSync  map[string]struct{} // members that have not sent SyncGroup in this generation
	awaitingJoin int                 // members with a waiting JoinGroup

	initialJoin    bool          // the join phase started from Empty: it ends by time only
	joinRemaining  time.Duration // how far the initial delay may still be extended
	newMemberAdded bool          // a member came since the delay was armed
	joinAlarm      alarm
	syncAlarm      alarm

	subscriptionsKnown bool // subscribed is valid
	subscribed         map[string]struct{}

	offsets        map[cluster.TopicPartition]committed
	pendingCommits map[cluster.TopicPartition]AppendID // last write under way for the partition
	pendingTxns    map[int64]map[cluster.TopicPartition]committed
}

func newGroup(id string, stateSince int64) *consumerGroup {
	return &consumerGroup{id: id, state: Empty, stateSince: stateSince}
}

func (g *consumerGroup) transition(to State, at time.Time) {
	invariant.Assert(slices.Contains(allowedFrom[to], g.state), "group %s: %v cannot follow %v", g.id, to, g.state)
	g.state = to
	g.stateSince = at.UnixMilli()
}

func (g *consumerGroup) canRebalance() bool {
	return slices.Contains(allowedFrom[PreparingRebalance], g.state)
}

func (g *consumerGroup) isLeader(memberID string) bool { return memberID != "" && g.leader == memberID }

// supports reports whether a member with these protocols can be in the group.
func (g *consumerGroup) supports(protocolType string, protocols []Protocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	if g.protocolType == nil || *g.protocolType != protocolType {
		return false
	}
	return slices.ContainsFunc(protocols, func(p Protocol) bool { return g.supported[p.Name] == len(g.members) })
}

// add puts a new member into the group; the first one sets the protocol type and leads.
func (g *consumerGroup) add(m *member, protocolType string) {
	invariant.Assert(g.byID[m.id] == nil, "group %s: member %s added twice", g.id, m.id)
	if len(g.members) == 0 {
		g.protocolType = &protocolType
	}
	if m.instanceID != nil {
		_, taken := g.static[*m.instanceID]
		invariant.Assert(!taken, "group %s: instance %s added twice", g.id, *m.instanceID)
		setIn(&g.static, *m.instanceID, m.id)
	}
	if g.leader == "" {
		g.leader = m.id
	}
	g.members = append(g.members, m)
	setIn(&g.byID, m.id, m)
	g.countProtocols(m.protocols, 1)
	if m.join != 0 {
		g.awaitingJoin++
	}
	delete(g.pending, m.id)
}

// drop takes a member out; the longest-serving one that is left leads if it was the leader.
func (g *consumerGroup) drop(m *member) {
	i := slices.Index(g.members, m)
	invariant.Assert(i >= 0, "group %s: member %s is not in it", g.id, m.id)
	g.members = slices.Delete(g.members, i, i+1)
	delete(g.byID, m.id)
	g.countProtocols(m.protocols, -1)
	if m.instanceID != nil {
		delete(g.static, *m.instanceID)
	}
	if m.join != 0 {
		g.awaitingJoin--
		m.join = 0
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
	delete(g.pending, m.id)
	delete(g.pendingSync, m.id)
}

func (g *consumerGroup) countProtocols(ps []Protocol, by int) {
	for _, p := range ps {
		n := g.supported[p.Name] + by
		invariant.Assert(n >= 0, "group %s: protocol %s counted below zero", g.id, p.Name)
		if n == 0 {
			delete(g.supported, p.Name)
		} else {
			setIn(&g.supported, p.Name, n)
		}
	}
}

// rename gives a static member that came back its new member id.
func (g *consumerGroup) rename(m *member, id string) {
	delete(g.byID, m.id)
	if g.leader == m.id {
		g.leader = id
	}
	if _, ok := g.pendingSync[m.id]; ok {
		delete(g.pendingSync, m.id)
		g.pendingSync[id] = struct{}{}
	}
	m.id = id
	m.life = alarm{}
	setIn(&g.byID, id, m)
	setIn(&g.static, *m.instanceID, id)
}

func (g *consumerGroup) setProtocols(m *member, ps []Protocol) {
	g.countProtocols(m.protocols, -1)
	m.protocols = ps
	g.countProtocols(ps, 1)
}

// rebalanceTimeout is the longest that any member asked for.
func (g *consumerGroup) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalance)
	}
	return longest
}

// selectProtocol lets every member vote for the first protocol of its list that all members have, and
// returns the one with most votes; of equals the one voted for first.
func (g *consumerGroup) selectProtocol() string {
	invariant.Assert(len(g.members) > 0, "group %s: no member to vote", g.id)
	votes := make(map[string]int)
	var order []string
	for _, m := range g.members {
		i := slices.IndexFunc(m.protocols, func(p Protocol) bool { return g.supported[p.Name] == len(g.members) })
		invariant.Assert(i >= 0, "group %s: no protocol in common", g.id)
		name := m.protocols[i].Name
		if votes[name] == 0 {
			order = append(order, name)
		}
		votes[name]++
	}
	return slices.MaxFunc(order, func(a, b string) int { return cmp.Compare(votes[a], votes[b]) })
}

// electJoinedLeader makes sure that the leader is among those who rejoined; false when nobody did.
func (g *consumerGroup) electJoinedLeader() bool {
	if m := g.byID[g.leader]; m == nil {
		return false
	} else if m.join != 0 {
		return true
	}
	for _, m := range g.members {
		if m.join != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

// computeSubscriptions learns which topics the members of a consumer group read; unknown when any
// subscription cannot be read.
func (g *consumerGroup) computeSubscriptions() {
	g.subscribed, g.subscriptionsKnown = nil, false
	if g.protocolType == nil || *g.protocolType != consumerProtocolType {
		return
	}
	topics := make(map[string]struct{})
	if len(g.members) > 0 && g.protocol == nil {
		return
	}
	for _, m := range g.members {
		if !subscriptionTopics(m.metadata(*g.protocol), topics) {
			return
		}
	}
	g.subscribed, g.subscriptionsKnown = topics, true
}

// subscribedTo reports whether the group reads the topic; when that is not known it is assumed.
func (g *consumerGroup) subscribedTo(topic string) bool {
	_, ok := g.subscribed[topic]
	return ok || !g.subscriptionsKnown
}

// record is the group as it is stored; assignment nil stores what the members have.
func (g *consumerGroup) record(assignment map[string][]byte) GroupRecord {
	r := GroupRecord{Group: g.id, Generation: g.generation, Protocol: g.protocol, StateTimestamp: g.stateSince}
	if g.protocolType != nil {
		r.ProtocolType = *g.protocolType
	}
	if g.leader != "" {
		leader := g.leader
		r.Leader = &leader
	}
	for _, m := range g.members {
		mr := MemberRecord{
			MemberID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost,
			SessionTimeout: m.session, RebalanceTimeout: m.rebalance, Assignment: m.assignment,
		}
		if assignment != nil {
			mr.Assignment = assignment[m.id]
		}
		if g.protocol != nil {
			mr.Subscription = m.metadata(*g.protocol)
		}
		r.Members = append(r.Members, mr)
	}
	return r
}

// uniqueProtocols drops repeated names, which a correct client never sends.
func uniqueProtocols(ps []Protocol) []Protocol {
	seen := make(map[string]struct{}, len(ps))
	for _, p := range ps {
		seen[p.Name] = struct{}{}
	}
	if len(seen) == len(ps) {
		return ps
	}
	out := make([]Protocol, 0, len(seen))
	for _, p := range ps {
		if _, first := seen[p.Name]; first {
			delete(seen, p.Name)
			out = append(out, p)
		}
	}
	return out
}

func setIn[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func compareTP(a, b cluster.TopicPartition) int { return a.Compare(b) }

// equalFold reports whether the state has that name in any case.
func (s State) equalFold(name string) bool { return strings.EqualFold(s.String(), name) }
