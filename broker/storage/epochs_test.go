package storage

import (
	"fmt"
	"math"
	"testing"

	"kctl/zkutil/cluster"
)

func epochsOf(entries ...int64) *epochCache {
	c := &epochCache{}
	for i := 0; i < len(entries); i += 2 {
		c.assign(cluster.LeaderEpoch(entries[i]), entries[i+1])
	}
	return c
}

func (c *epochCache) text() string {
	out := ""
	for _, e := range c.entries {
		out += fmt.Sprintf("%d@%d ", e.Epoch, e.Start)
	}
	return out
}

func TestEpochAssign(t *testing.T) {
	cases := map[string]struct {
		entries []int64
		want    string
	}{
		"first":               {[]int64{3, 10}, "3@10 "},
		"rising":              {[]int64{0, 0, 2, 5}, "0@0 2@5 "},
		"same again":          {[]int64{2, 5, 2, 9}, "2@5 "},
		"same earlier":        {[]int64{2, 5, 2, 3}, "2@3 "},
		"no records between":  {[]int64{1, 5, 2, 5}, "2@5 "},
		"epoch falls":         {[]int64{1, 0, 5, 10, 3, 20}, "1@0 3@20 "},
		"offset falls":        {[]int64{1, 0, 2, 10, 3, 20, 4, 5}, "1@0 4@5 "},
		"negative is nothing": {[]int64{-1, 0, 1, -5}, ""},
	}
	for name, c := range cases {
		if got := epochsOf(c.entries...).text(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestEpochEndOffset(t *testing.T) {
	c := epochsOf(2, 10, 4, 20, 7, 30)
	for _, q := range []struct {
		ask, epoch cluster.LeaderEpoch
		end        int64
	}{
		{7, 7, 35}, {8, -1, -1}, {6, 4, 30}, {5, 4, 30}, {4, 4, 30}, {3, 2, 20}, {2, 2, 20},
		{1, 1, 10}, {0, 0, 10}, {-1, -1, -1},
	} {
		if e, end := c.endOffset(q.ask, 35); e != q.epoch || end != q.end {
			t.Errorf("epoch %d: (%d, %d), want (%d, %d)", q.ask, e, end, q.epoch, q.end)
		}
	}
	if e, end := epochsOf().endOffset(0, 5); e != -1 || end != -1 {
		t.Errorf("empty cache: %d, %d", e, end)
	}
	for offset, want := range map[int64]cluster.LeaderEpoch{9: -1, 10: 2, 19: 2, 20: 4, 1000: 7} {
		if e, _ := c.forOffset(offset); e != want {
			t.Errorf("offset %d is of epoch %d, want %d", offset, e, want)
		}
	}
}

func TestEpochTruncate(t *testing.T) {
	for _, c := range []struct {
		end  int64
		want string
	}{{31, "2@10 4@20 7@30 "}, {30, "2@10 4@20 "}, {25, "2@10 4@20 "}, {11, "2@10 "}, {10, ""}, {0, ""}} {
		e := epochsOf(2, 10, 4, 20, 7, 30)
		if e.truncateFromEnd(c.end); e.text() != c.want {
			t.Errorf("from end %d: %q, want %q", c.end, e.text(), c.want)
		}
	}
	for _, c := range []struct {
		start int64
		want  string
	}{{5, "2@10 4@20 7@30 "}, {10, "2@10 4@20 7@30 "}, {15, "2@15 4@20 7@30 "}, {20, "4@20 7@30 "}, {29, "4@29 7@30 "}, {99, "7@99 "}} {
		e := epochsOf(2, 10, 4, 20, 7, 30)
		if e.truncateFromStart(c.start); e.text() != c.want {
			t.Errorf("from start %d: %q, want %q", c.start, e.text(), c.want)
		}
	}
}

func TestEpochsSurvive(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	must(t, l.AssignEpochStart(2, 0))
	mustAppend(t, l, batch(t, 3, 1), 2)
	mustAppend(t, l, batch(t, 3, 1), 5)
	must(t, l.AssignEpochStart(6, 6))
	wantErr(t, l.AssignEpochStart(-1, 6), ErrOffsetOutOfRange)
	must(t, m.Close())
	m = openMem(t, fs, c, nil)
	l, _ = m.Log(testTP)
	if got := l.epochs.text(); got != "2@0 5@3 6@6 " {
		// 6 has no records: the entry is at the log end and goes at start, as in Kafka.
		if got != "2@0 5@3 " {
			t.Fatal(got)
		}
	}
	must(t, fs.Remove("/data/t-0/"+fileEpochs))
	m2, err := OpenManager(fs.CrashClone(0, 0), []string{"/data"}, testOptions(c, nil))
	must(t, err)
	l, _ = m2.Log(testTP)
	if got := l.epochs.text(); got != "2@0 5@3 " {
		t.Fatalf("rebuilt from batches: %q", got)
	}
	if e, end := l.EndOffsetForEpoch(5); e != 5 || end != 6 {
		t.Fatal(e, end)
	}
	must(t, l.TruncateTo(4)) // inside the second batch: the whole batch goes
	if got := l.epochs.text(); got != "2@0 " || l.LogEndOffset() != 3 {
		t.Fatalf("%q, end %d", got, l.LogEndOffset())
	}
	if e, ok := l.EpochForOffset(math.MaxInt64); !ok || e != 2 {
		t.Fatal(e)
	}
	if start, ok := l.EpochStart(); !ok || start != 0 {
		t.Fatal(start)
	}
}
