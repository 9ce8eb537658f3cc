// Package overview is the first page: brokers, partitions and the live positions of the replicas of the
// partitions in view. The replica positions of what is visible, and only of that, are read with every
// refresh, so that the page costs the same on a cluster of any size.
package overview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/tui/data"
	"kctl/tui/keys"
	"kctl/tui/theme"
	"kctl/zkutil/cluster"
)

type pane int

// The panes, in tab order.
const (
	brokersPane pane = iota
	partitionsPane
	replicasPane
	panes
)

// sortKey is the column by which partitions are sorted.
type sortKey int

const (
	byName sortKey = iota
	byStatus
	byLag
	byLeader
	byISR
	sortKeys
)

func (k sortKey) String() string { return [...]string{"name", "status", "lag", "leader", "isr"}[k] }

// Model is the page. It is a value: Update returns a changed copy.
type Model struct {
	loader  *data.Loader
	theme   theme.Theme
	refresh time.Duration

	width, height int
	seq           uint64 // number of the newest snapshot request
	lagSeq        uint64 // number of the newest lag request
	inFlight      bool

	snap     *model.Snapshot
	loadedAt time.Time
	total    rows.Cluster // of snap: summing up is work for every partition, and a frame is drawn with every key
	brokers  []rows.Broker
	parts    []*model.Partition // filtered and sorted
	lag      map[cluster.TopicPartition][]rows.ReplicaLag
	err      string
	lagErr   string

	focus     pane
	cursor    [panes]int
	top       [panes]int // first visible row
	filter    string
	filtering bool
	problems  bool
	sort      sortKey
	desc      bool
	paused    bool

	label  string    // the context and whether it is read-only
	now    time.Time // as the last Clock told it
	failed bool      // the last reading gave nothing
}

// New returns the page; nothing is read before Init. With refresh 0 it reads when asked to only.
// label is put behind the program's name.
func New(loader *data.Loader, th theme.Theme, refresh time.Duration, label string) Model {
	return Model{loader: loader, theme: th, refresh: refresh, label: label, focus: partitionsPane, width: 80, height: 24,
		lag: map[cluster.TopicPartition][]rows.ReplicaLag{}}
}

// Init reads the cluster for the first time.
func (m Model) Init() (Model, tea.Cmd) { return m.load() }

func (m Model) load() (Model, tea.Cmd) {
	m.seq++
	m.inFlight = true
	return m, m.loader.Snapshot(m.seq)
}

// SetSize tells the page its size.
func (m Model) SetSize(w, h int) (Model, tea.Cmd) {
	m.width, m.height = w, h
	m.scroll()
	return m.loadLag()
}

// Update takes one message and returns the changed page and what is to be read.
func (m Model) Update(msg tea.Msg) (Model, tea.Cmd) {
	switch msg := msg.(type) {
	case data.SnapshotLoaded:
		return m.loaded(msg)
	case data.LagLoaded:
		return m.lagLoaded(msg), nil
	case data.Clock:
		m.now = msg.Now
		return m, nil
	case data.Tick:
		if msg.Seq != m.seq || m.paused || m.inFlight {
			return m, nil
		}
		return m.load()
	case tea.KeyMsg:
		return m.key(msg)
	}
	return m, nil
}

// key handles one key press.
func (m Model) key(msg tea.KeyMsg) (Model, tea.Cmd) {
	if m.filtering {
		return m.typeFilter(msg)
	}
	return m.act(keys.Of(msg))
}

// loaded takes a snapshot, unless a newer one was asked for meanwhile.
func (m Model) loaded(msg data.SnapshotLoaded) (Model, tea.Cmd) {
	if msg.Seq != m.seq {
		return m, nil
	}
	m.inFlight = false
	var next tea.Cmd
	if m.refresh > 0 {
		next = data.After(m.seq, m.refresh)
	}
	if msg.Err != nil {
		m.err, m.failed, m.now = msg.Err.Error(), true, msg.At
		return m, next
	}
	m.failed, m.now = false, msg.At
	m.err, m.loadedAt, m.snap = "", msg.At, msg.Snapshot
	if len(m.snap.Problems) > 0 {
		m.err = m.snap.Problems[0].Object + ": " + m.snap.Problems[0].Message
	}
	m.total, m.brokers = rows.OfCluster(m.snap), rows.Brokers(m.snap)
	m.arrange()
	m, lag := m.loadLag()
	return m, tea.Batch(next, lag)
}

func (m Model) lagLoaded(msg data.LagLoaded) Model {
	if msg.Seq != m.lagSeq {
		return m
	}
	m.lagErr = ""
	if msg.Err != nil {
		m.lagErr = msg.Err.Error()
		return m
	}
	m.lag = map[cluster.TopicPartition][]rows.ReplicaLag{}
	for i := range msg.Positions {
		p := &msg.Positions[i]
		tp := cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		m.lag[tp] = append(m.lag[tp], rows.OfReplica(p))
	}
	m.orderReplicas()
	if m.sort == byLag {
		m.arrange()
	}
	return m
}

// orderReplicas puts the replicas of each partition into the order of its list, the preferred leader first.
func (m *Model) orderReplicas() {
	for _, p := range m.parts {
		if found := m.lag[p.TP()]; found != nil {
			place := func(r rows.ReplicaLag) int { return slices.Index(p.Replicas, cluster.BrokerID(r.Broker)) }
			slices.SortStableFunc(found, func(a, b rows.ReplicaLag) int { return cmp.Compare(place(a), place(b)) })
		}
	}
}

// Typing reports whether keys are text now.
func (m Model) Typing() bool { return m.filtering }

// lagSortMax bounds how many partitions are asked about for an order by lag.
const lagSortMax = 2000

// loadLag asks for the replicas of the partitions in view.
func (m Model) loadLag() (Model, tea.Cmd) {
	if len(m.parts) == 0 {
		return m, nil
	}
	var args []plan.Target
	asked := m.visibleParts()
	if m.sort == byLag {
		asked = m.parts[:min(len(m.parts), lagSortMax)] // an order by lag needs the lag of all
	}
	at := map[string]int{}
	for _, p := range asked {
		i, ok := at[p.Topic]
		if !ok {
			i = len(args)
			at[p.Topic] = i
			args = append(args, plan.Target{Topic: p.Topic})
		}
		args[i].Partitions = append(args[i].Partitions, p.Partition)
	}
	m.lagSeq++
	return m, m.loader.Lag(m.lagSeq, args)
}

func (m *Model) visibleParts() []*model.Partition {
	h := m.layout()[partitionsPane]
	first := m.top[partitionsPane]
	if h <= 1 { // the pane is hidden: only the selected one
		first, h = m.cursor[partitionsPane], 2
	}
	return m.parts[min(first, len(m.parts)):min(first+h-1, len(m.parts))]
}

// arrange filters and sorts the partitions and keeps the cursor on its partition.
func (m *Model) arrange() {
	var selected *model.Partition
	if c := m.cursor[partitionsPane]; c < len(m.parts) {
		selected = m.parts[c]
	}
	m.parts = make([]*model.Partition, 0, len(m.parts))
	for i := range m.snap.Topics {
		for j := range m.snap.Topics[i].Partitions {
			if p := &m.snap.Topics[i].Partitions[j]; m.shows(p) {
				m.parts = append(m.parts, p)
			}
		}
	}
	m.order()
	if selected != nil {
		if i := slices.IndexFunc(m.parts, func(p *model.Partition) bool { return p.TP() == selected.TP() }); i >= 0 {
			m.cursor[partitionsPane] = i
		}
	}
	m.scroll()
}

func (m *Model) shows(p *model.Partition) bool {
	if m.filter != "" && !named(p, m.filter) {
		return false
	}
	return !m.problems || p.IsOffline() || p.UnderReplicated() || p.UnderMinISR() || p.NotPreferred() || p.Err != ""
}

// named reports whether text is part of TOPIC:PARTITION, without writing it: it is asked for every partition with every
// letter of a filter.
func named(p *model.Partition, text string) bool {
	if strings.Contains(p.Topic, text) {
		return true
	}
	topic, number, colon := strings.Cut(text, ":")
	if !colon {
		number = topic
	}
	var digits [10]byte
	n := string(strconv.AppendInt(digits[:0], int64(p.Partition), 10))
	if colon {
		return strings.HasSuffix(p.Topic, topic) && strings.HasPrefix(n, number)
	}
	return strings.Contains(n, number)
}

// order sorts the partitions, which come in the order of their names. What they are sorted by is looked up once for each.
func (m *Model) order() {
	if m.sort != byName {
		type keyed struct {
			key int64
			p   *model.Partition
		}
		all := make([]keyed, len(m.parts))
		for i, p := range m.parts {
			all[i] = keyed{m.rank(p), p}
		}
		slices.SortStableFunc(all, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
		for i := range all {
			m.parts[i] = all[i].p
		}
	}
	if m.desc {
		slices.Reverse(m.parts)
	}
}

// rank is what partitions are sorted by, the smallest first.
func (m *Model) rank(p *model.Partition) int64 {
	switch m.sort {
	case byStatus:
		return int64(-badness(p))
	case byLag:
		return -m.maxLag(p)
	case byLeader:
		return int64(p.Leader)
	case byISR:
		return int64(len(p.ISR))
	}
	return 0
}

// badness ranks partitions for the sort by status: no leader, acks=all refused, too few replicas, the rest.
func badness(p *model.Partition) int {
	switch {
	case p.IsOffline():
		return 4
	case p.UnderMinISR():
		return 3
	case p.UnderReplicated():
		return 2
	case p.NotPreferred():
		return 1
	}
	return 0
}

// maxLag is the largest lag among the followers, -1 when not known.
func (m *Model) maxLag(p *model.Partition) int64 {
	worst := int64(-1)
	for _, r := range m.lag[p.TP()] {
		if r.Role == "follower" {
			worst = max(worst, r.LagRecords)
		}
	}
	return worst
}

// act carries out a key.
func (m Model) act(a keys.Action) (Model, tea.Cmd) {
	switch a {
	case keys.Quit:
		return m, tea.Quit
	case keys.Clear:
		return m.setFilter("")
	case keys.Filter:
		m.filtering, m.focus = true, partitionsPane
	case keys.NextPane:
		m.focus = (m.focus + 1) % panes
		m.scroll()
	case keys.PrevPane:
		m.focus = (m.focus + panes - 1) % panes
		m.scroll()
	case keys.Brokers, keys.Parts, keys.Replicas:
		m.focus = map[keys.Action]pane{keys.Brokers: brokersPane, keys.Parts: partitionsPane, keys.Replicas: replicasPane}[a]
		m.scroll()
	case keys.Refresh:
		return m.load()
	case keys.Pause:
		m.paused = !m.paused
		if !m.paused && !m.inFlight {
			return m.load()
		}
	case keys.Sort, keys.Reverse, keys.Problems:
		return m.rearrange(a)
	default:
		return m.move(a)
	}
	return m, nil
}

func (m Model) rearrange(a keys.Action) (Model, tea.Cmd) {
	switch a {
	case keys.Sort:
		m.sort = (m.sort + 1) % sortKeys
	case keys.Reverse:
		m.desc = !m.desc
	case keys.Problems:
		m.problems = !m.problems
	}
	if m.snap == nil {
		return m, nil
	}
	m.arrange()
	m.cursor[partitionsPane], m.top[partitionsPane] = 0, 0 // the first of the new order is what one wants to see
	return m.loadLag()
}

func (m Model) setFilter(f string) (Model, tea.Cmd) {
	m.filter = f
	if m.snap == nil {
		return m, nil
	}
	m.arrange()
	return m.loadLag()
}

func (m Model) typeFilter(msg tea.KeyMsg) (Model, tea.Cmd) {
	text, did := keys.Edit(m.filter, msg)
	if did == keys.Left {
		return m, tea.Quit
	}
	m.filtering = did == keys.Typing
	if text == m.filter {
		return m, nil
	}
	return m.setFilter(text)
}

// move moves the cursor of the focused pane.
func (m Model) move(a keys.Action) (Model, tea.Cmd) {
	page := max(1, m.layout()[m.focus]-2)
	step, ok := map[keys.Action]int{
		keys.Up: -1, keys.Down: 1, keys.PageUp: -page, keys.PageDown: page, keys.Top: -1 << 30, keys.Bottom: 1 << 30,
	}[a]
	if !ok {
		return m, nil
	}
	topBefore := m.top[partitionsPane]
	m.cursor[m.focus] += step
	m.scroll()
	if m.focus == partitionsPane {
		m.cursor[replicasPane] = 0
		if m.top[partitionsPane] != topBefore || m.layout()[partitionsPane] <= 1 {
			return m.loadLag()
		}
	}
	return m, nil
}

// length is the number of rows of a pane.
func (m *Model) length(p pane) int {
	switch p {
	case brokersPane:
		return len(m.brokers)
	case partitionsPane:
		return len(m.parts)
	default:
		return len(m.selectedReplicas())
	}
}

func (m *Model) selectedReplicas() []rows.ReplicaLag {
	if c := m.cursor[partitionsPane]; c < len(m.parts) {
		return m.lag[m.parts[c].TP()]
	}
	return nil
}

// scroll keeps cursors inside their panes and in view.
func (m *Model) scroll() {
	h := m.layout()
	for p := range panes {
		n := m.length(p)
		m.cursor[p] = max(0, min(m.cursor[p], n-1))
		view := max(1, h[p]-1)
		m.top[p] = max(0, min(m.top[p], m.cursor[p], n-1))
		if m.cursor[p] >= m.top[p]+view {
			m.top[p] = m.cursor[p] - view + 1
		}
		m.top[p] = max(0, min(m.top[p], n-view))
	}
}
