package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seeds     = flag.Int("seeds", 40, "how many seeds TestSeeds runs")
	firstSeed = flag.Uint64("first-seed", 1, "the first of them")
	events    = flag.Int("events", 4000, "events of each run before healing")
	traceDir  = flag.String("trace-dir", "", "where a failing seed's trace goes; empty: a temporary folder")
)

// TestSeeds runs many seeds; each failure is run again with a trace, which must fail in the same place.
func TestSeeds(t *testing.T) {
	work := make(chan uint64)
	var mu sync.Mutex
	var total Report
	var wg sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range work {
				r, err := runSeed(seed)
				mu.Lock()
				add(&total, r)
				mu.Unlock()
				if err != nil {
					t.Error(explain(t, seed, err))
				}
			}
		})
	}
	for i := range *seeds {
		if t.Failed() {
			break
		}
		work <- *firstSeed + uint64(i)
	}
	close(work)
	wg.Wait()
	t.Logf("%d seeds in %.1f s: %+v", *seeds, time.Since(start).Seconds(), total)
	if !t.Failed() {
		mustHaveHappened(t, total)
	}
}

// runSeed turns a panic of a core's assertion into a failure of its seed.
func runSeed(seed uint64) (r Report, err error) {
	return runTraced(Options{Seed: seed, Events: *events})
}

func runTraced(o Options) (r Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 16<<10)
			err = fmt.Errorf("seed %d: panic: %v\n%s", o.Seed, p, stack[:runtime.Stack(stack, false)])
		}
	}()
	return Run(o)
}

// explain replays a failed seed and returns the error with the end of its trace.
func explain(t *testing.T, seed uint64, first error) string {
	var trace bytes.Buffer
	_, again := runTraced(Options{Seed: seed, Events: *events, Trace: &trace})
	if again == nil || firstLine(again) != firstLine(first) {
		return fmt.Sprintf("%v\nand the replay is different, so something is not deterministic: %v", first, again)
	}
	dir := *traceDir
	if dir == "" {
		dir = os.TempDir()
	}
	file := filepath.Join(dir, fmt.Sprintf("sim-seed-%d.trace", seed))
	if err := os.WriteFile(file, trace.Bytes(), 0o644); err != nil {
		file = err.Error()
	}
	lines := strings.Split(strings.TrimSpace(trace.String()), "\n")
	return fmt.Sprintf("%v\nreplay: go test ./broker/sim -run TestSeeds -seeds 1 -first-seed %d -events %d\nwhole trace: %s; its end:\n%s",
		first, seed, *events, file, strings.Join(lines[max(0, len(lines)-40):], "\n"))
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func add(total *Report, r Report) {
	total.Events += r.Events
	total.SimTime += r.SimTime
	total.Acked += r.Acked
	total.Elections += r.Elections
	total.Kills += r.Kills
	total.Crashes += r.Crashes
	total.DirFailures += r.DirFailures
	total.Expiries += r.Expiries
	total.Truncations += r.Truncations
	total.ISRChanges += r.ISRChanges
	total.Alerts += r.Alerts
	total.Reassigned += r.Reassigned
	total.Arrived += r.Arrived
	total.Moves += r.Moves
	total.Moved += r.Moved
	total.MoveCuts += r.MoveCuts
	total.MoveCrashes += r.MoveCrashes
	total.HeldBack += r.HeldBack
	total.Deleted += r.Deleted
	total.Restarts += r.Restarts
	total.Late += r.Late
	total.Excused += r.Excused
}

// mustHaveHappened guards against a simulation that simulates nothing.
func mustHaveHappened(t *testing.T, r Report) {
	for what, n := range map[string]int{"acknowledged records": r.Acked, "elections": r.Elections, "kills": r.Kills, "crashes": r.Crashes, "failed directories": r.DirFailures,
		"session expiries": r.Expiries, "truncations": r.Truncations, "ISR changes": r.ISRChanges, "reassignments": r.Reassigned, "compared reassignments": r.Arrived,
		"moves between directories": r.Moved, "logs cut amid a move": r.MoveCuts, "crashes amid a move": r.MoveCrashes, "throttled fetches": r.HeldBack,
		"deleted records": r.Deleted, "logs begun at the leader's start": r.Restarts} {
		if n == 0 {
			t.Errorf("no %s in %d events", what, r.Events)
		}
	}
}

// TestSameSeedSameRun: a run depends on nothing but its seed.
func TestSameSeedSameRun(t *testing.T) {
	a, errA := runSeed(*firstSeed)
	b, errB := runSeed(*firstSeed)
	if a != b || fmt.Sprint(errA) != fmt.Sprint(errB) {
		t.Errorf("two runs of seed %d differ:\n%+v %v\n%+v %v", *firstSeed, a, errA, b, errB)
	}
}
