package replicashell

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kctl/broker/obs"
)

// linesPerSecond bounds the log lines about single partitions: when a broker dies, thousands of partitions
// change at once, and neither the disk nor the reader is helped by a line for each. Warnings count too.
const linesPerSecond = 50

// chatter is the log of single partitions' happenings.
type chatter struct {
	log *slog.Logger
	now func() time.Time

	mu         sync.Mutex // leaf
	second     int64
	lines      int
	suppressed int
}

// say writes a line, or counts it when there were too many in this second.
func (c *chatter) say(level slog.Level, msg string, attrs ...slog.Attr) {
	ctx := context.Background()
	if !c.log.Enabled(ctx, level) {
		return
	}
	c.mu.Lock()
	if s := c.now().Unix(); s != c.second {
		c.second, c.lines = s, 0
	}
	c.lines++
	if c.lines > linesPerSecond {
		c.suppressed++
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.log.LogAttrs(ctx, level, msg, attrs...)
}

// flush tells how many lines were left out.
func (c *chatter) flush() {
	c.mu.Lock()
	n := c.suppressed
	c.suppressed = 0
	c.mu.Unlock()
	if n > 0 {
		c.log.LogAttrs(context.Background(), slog.LevelInfo, "more of the same about single partitions", slog.Int(obs.KeyCount, n))
	}
}
