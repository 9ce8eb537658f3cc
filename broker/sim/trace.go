package sim

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"time"
)

// tracer writes one line per event and hashes what it would write, so that two runs can be compared without
// keeping their text.
type tracer struct {
	w    *bufio.Writer
	hash uint64
}

func newTracer(w io.Writer) tracer {
	if w == nil {
		return tracer{}
	}
	return tracer{w: bufio.NewWriter(w)}
}

func (t *tracer) event(n int, at time.Duration, ev *scheduled) {
	t.mix(uint64(at), uint64(ev.a), uint64(ev.b), uint64(ev.tp.Partition), textHash(ev.name))
	if t.w == nil {
		return
	}
	where := ""
	if ev.tp != noTP {
		where = ev.tp.String()
	}
	fmt.Fprintf(t.w, "%6d %11.6f %-28s %-8s %d %d\n", n, at.Seconds(), ev.name, where, ev.a, ev.b)
}

// line adds detail below the current event; it is free when no trace is written.
func (t *tracer) line(format string, args ...any) {
	if t.w != nil {
		fmt.Fprintf(t.w, "       "+format+"\n", args...)
	}
}

func (t *tracer) on() bool { return t.w != nil }

func (t *tracer) flush() {
	if t.w != nil {
		t.w.Flush()
	}
}

func (t *tracer) mix(values ...uint64) {
	for _, v := range values {
		t.hash = (t.hash ^ v) * 0x100000001b3
	}
}

func textHash(s string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, s)
	return h.Sum64()
}
