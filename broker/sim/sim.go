package sim

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkserver/ztree"
)

// Options of one run.
type Options struct {
	Seed   uint64
	Events int       // events before healing begins
	Faults Faults    // zero: drawn from the seed
	Trace  io.Writer // one line per event; nil: none
}

// Report says what a run did, so that a test can see that it did anything.
type Report struct {
	Events      int
	SimTime     time.Duration
	Acked       int // records acknowledged with acks=all
	Elections   int // state znode writes that raised a leader epoch
	Kills       int
	Crashes     int
	DirFailures int // log directories that failed under a process that lived on
	Expiries    int
	Truncations int
	ISRChanges  int
	Alerts      int
	Reassigned  int    // reassignments and cancellations that a controller accepted
	Arrived     int    // of these, whose end could be foretold and was compared
	Moves       int    // begun between log directories
	Moved       int    // and ended
	MoveCuts    int    // logs that were cut back when their copy went further
	MoveCrashes int    // processes and machines that ended in the middle of a step of one
	HeldBack    int    // fetches that a throttle left without records, or did not send
	Deleted     int    // offsets below which records were deleted on request
	Restarts    int    // logs thrown away by followers, to begin where the leader's does
	Late        int    // decisions that came behind the deletion of their replica
	Excused     int    // acknowledged records lost with the last in-sync copy of them
	Hash        uint64 // of the whole trace: equal for equal seeds
}

// epochZero is when every simulation begins.
var epochZero = time.UnixMilli(1_700_000_000_000)

// Sim is one simulated cluster.
type Sim struct {
	opts   Options
	rng    *rand.Rand
	now    time.Time
	heap   eventHeap
	seq    uint64
	trace  tracer
	faults Faults
	healed bool
	failed error

	tree       *ztree.Tree
	sessions   map[int64]*zkConn // live sessions by id
	nodes      []*node
	clients    []*client
	topics     []string // those that nobody has deleted
	topicCount int
	producers  int64 // made after the first ones
	admin      int64 // session of the operator
	cuts       map[link]bool
	wishes     wishes
	throttles  throttleSettings
	check      *checker
	report     Report
}

// scheduled is one thing that will happen. name and args become its trace line.
type scheduled struct {
	at   time.Time
	seq  uint64
	name string
	tp   cluster.TopicPartition
	a, b int64
	run  func()
}

type eventHeap []*scheduled

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*scheduled)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}

// Run runs one seed and returns what happened; the error names the seed, the event and the broken invariant.
func Run(opts Options) (Report, error) {
	s := newSim(opts)
	s.boot()
	for s.failed == nil && s.report.Events < opts.Events {
		s.next()
	}
	if s.failed == nil {
		s.settle()
	}
	s.close()
	s.report.SimTime = s.now.Sub(epochZero)
	s.report.Hash = s.trace.hash
	if s.failed != nil {
		return s.report, fmt.Errorf("seed %d, event %d, %s: %w", opts.Seed, s.report.Events, s.now.Sub(epochZero), s.failed)
	}
	return s.report, nil
}

func newSim(opts Options) *Sim {
	s := &Sim{
		opts:     opts,
		rng:      rand.New(rand.NewPCG(opts.Seed, 0x6b62726f6b6572)),
		now:      epochZero,
		tree:     ztree.New(ztree.Options{}),
		sessions: map[int64]*zkConn{},
		cuts:     map[link]bool{},
		trace:    newTracer(opts.Trace),
		faults:   opts.Faults,
	}
	if s.faults == (Faults{}) {
		s.faults = drawFaults(s.rng)
	}
	s.check = newChecker(s)
	return s
}

// next runs the earliest event and checks the invariants. It reports false when there is none.
func (s *Sim) next() bool {
	if len(s.heap) == 0 {
		return false
	}
	ev := heap.Pop(&s.heap).(*scheduled)
	if ev.run == nil { // cancelled
		return true
	}
	s.now = ev.at
	s.report.Events++
	s.trace.event(s.report.Events, s.now.Sub(epochZero), ev)
	ev.run()
	if s.failed == nil {
		s.check.afterEvent()
	}
	return true
}

// after schedules run. The name and values describe it in the trace.
func (s *Sim) after(d time.Duration, name string, tp cluster.TopicPartition, a, b int64, run func()) *scheduled {
	return s.at(s.now.Add(d), name, tp, a, b, run)
}

func (s *Sim) at(t time.Time, name string, tp cluster.TopicPartition, a, b int64, run func()) *scheduled {
	s.seq++
	ev := &scheduled{at: t, seq: s.seq, name: name, tp: tp, a: a, b: b, run: run}
	heap.Push(&s.heap, ev)
	return ev
}

// cancel makes a scheduled event never happen. A nil or past event is no error.
func (ev *scheduled) cancel() {
	if ev != nil {
		ev.run = nil
	}
}

// fail stops the run; the first failure counts.
func (s *Sim) fail(format string, args ...any) {
	if s.failed == nil {
		s.failed = fmt.Errorf(format, args...)
		s.trace.line("FAILED: %v", s.failed)
	}
}

// chance is true with probability p, and never again once everything is healed.
func (s *Sim) chance(p float64) bool { return !s.healed && p > 0 && s.rng.Float64() < p }

// between draws a duration from [lo, hi).
func (s *Sim) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(s.rng.Int64N(int64(hi-lo)))
}

// noTP is for events that concern no partition.
var noTP cluster.TopicPartition
