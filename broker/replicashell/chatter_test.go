package replicashell

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestChatterIsBounded(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(100, 0)
	c := &chatter{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	for range 1000 {
		c.say(slog.LevelInfo, "ISR changed")
	}
	c.say(slog.LevelDebug, "not enabled")
	c.flush()
	c.flush()
	if n := strings.Count(out.String(), "ISR changed"); n != linesPerSecond {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(out.String(), "count=950") || strings.Count(out.String(), "more of the same") != 1 {
		t.Errorf("not told what was left out: %s", out.String())
	}
	now = now.Add(time.Second)
	c.say(slog.LevelInfo, "again")
	if !strings.Contains(out.String(), "again") {
		t.Error("silent for ever")
	}
}
