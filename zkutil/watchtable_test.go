package zkutil

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

func TestTakeMark(t *testing.T) {
	read := func(path string) []byte {
		return sealPacket(append(appendText(packetHead(5, opGetData), path), 0))
	}
	p, watch := takeMark(read("/a/b" + watchMark))
	want := sealPacket(append(appendText(packetHead(5, opGetData), "/a/b"), 1))
	if watch != "/a/b" || string(p) != string(want) {
		t.Errorf("watch %q, packet %q, want %q", watch, p, want)
	}
	for _, plain := range [][]byte{read("/a"), read("/"), read(watchMark + "x"), {0, 0, 0, 1}, read("/a" + watchMark)[:20]} {
		if got, watch := takeMark(plain); watch != "" || string(got) != string(plain) {
			t.Errorf("%q: watch %q, packet %q", plain, watch, got)
		}
	}
}

func TestWatchTable(t *testing.T) {
	var w watchTable
	if p := w.begin(1); len(p) != 0 {
		t.Fatalf("a new session sets %d packets of watches", len(p))
	}
	w.registered(opGetData, "/d", false)
	w.registered(opGetData, "/d", false)
	w.registered(opGetData, "/none", true)
	w.registered(opExists, "/x", true)
	w.registered(opExists, "/y", false)
	w.registered(opGetChildren2, "/c", false)
	w.registered(opGetChildren2, "/none", true)
	w.saw(7)
	w.saw(3)
	w.saw(-1)
	count := func(packets [][]byte) (n [3]int, seen int64) {
		for _, p := range packets {
			if size := int(binary.BigEndian.Uint32(p)); size != len(p)-4 || size > setWatchesBytes+1024 {
				t.Fatalf("packet of %d bytes says %d", len(p), size)
			}
			seen = int64(binary.BigEndian.Uint64(p[12:]))
			rest, ok := p[20:], true
			for i := range n {
				k := int(binary.BigEndian.Uint32(rest))
				rest = rest[4:]
				n[i] += k
				for range k {
					if rest, ok = skipBytes(rest); !ok {
						t.Fatal("a path is cut")
					}
				}
			}
			if len(rest) != 0 {
				t.Fatalf("%d bytes too many", len(rest))
			}
		}
		return n, seen
	}
	if n, seen := count(w.begin(1)); n != [3]int{2, 1, 1} || seen != 7 {
		t.Errorf("watches %v since %d", n, seen)
	}
	w.fired(3, "/d")
	w.fired(1, "/x")
	w.fired(2, "/c")
	if n, _ := count(w.begin(1)); n != [3]int{1, 0, 0} {
		t.Errorf("watches %v", n)
	}
	for i := range 5000 {
		w.registered(opGetData, fmt.Sprintf("/%s%d", strings.Repeat("p", 100), i), false)
		w.registered(opGetChildren2, fmt.Sprintf("/%d", i), false)
	}
	packets := w.begin(1)
	if n, _ := count(packets); n != [3]int{5001, 0, 5000} || len(packets) < 4 {
		t.Errorf("watches %v in %d packets", n, len(packets))
	}
	if p := w.begin(2); len(p) != 0 {
		t.Error("a new session inherits watches")
	}
}
