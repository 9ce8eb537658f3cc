package storage

import (
	"math"
	"strings"
	"testing"
)

// TestLogInTwoDirectories: a directory fails, its replica is made anew in the other one, the first is mended. The later
// log stays whatever it holds, the other one is kept aside.
func TestLogInTwoDirectories(t *testing.T) {
	for name, tt := range map[string]struct {
		anew func(l *Log) // what the later one gets
		end  int64
	}{
		"with records":    {func(l *Log) { mustAppend(t, l, batch(t, 2, 1), 11); must(t, l.Flush()) }, 2},
		"without records": {func(*Log) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := newMover(t)
			m := v.open(v.fs)
			v.fill(m)
			must(t, m.Close())
			must(t, v.fs.Rename("/a/t-0", "/kept")) // as it looks while the directory cannot be seen
			v.c.ms += 5000
			m = v.open(v.fs)
			must(t, m.Prefer(testTP, "/b"))
			l, err := m.Create(testTP, testID, smallConfig())
			must(t, err)
			tt.anew(l)
			must(t, m.Close())
			must(t, v.fs.Rename("/kept", "/a/t-0"))
			for range 2 {
				m = v.open(v.fs)
				l, ok := m.Log(testTP)
				if !ok || l.Dir() != "/b" || l.LogEndOffset() != tt.end {
					t.Fatalf("%v: in %s, end %d", ok, l.Dir(), l.LogEndOffset())
				}
				if f := v.folders(v.fs, "/a"); len(f) != 1 || !strings.HasSuffix(f[0], dirStray) {
					t.Fatalf("in /a: %v", f)
				}
				must(t, m.Close())
			}
		})
	}
}

// TestEmptyFolderIsNoLog: a folder that somebody made does not take a log's place.
func TestEmptyFolderIsNoLog(t *testing.T) {
	v := newMover(t)
	m := v.open(v.fs)
	want := string(readAllBytes(t, v.fill(m), math.MaxInt64))
	must(t, m.Close())
	v.c.ms += 5000
	must(t, v.fs.Mkdir("/b/t-0"))
	m = v.open(v.fs)
	l, ok := m.Log(testTP)
	if !ok || l.Dir() != "/a" || string(readAllBytes(t, l, math.MaxInt64)) != want {
		t.Fatalf("%v: in %s", ok, l.Dir())
	}
	must(t, m.Close())
}
