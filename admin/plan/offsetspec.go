package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// OffsetSpec is a place in a log as a person writes it.
type OffsetSpec struct {
	Base OffsetBase
	N    int64     // the offset, or the distance from Base
	At   time.Time // of AtTime
}

// OffsetBase is what an OffsetSpec counts from.
type OffsetBase uint8

// The bases.
const (
	Absolute OffsetBase = iota
	LogStart
	LogEnd
	AtTime
)

// ParseOffsetSpec reads an offset (1234), start, end, start+N, end-N, @TIME (as ParseTime takes it) or @-DURATION, which
// counts back from now.
func ParseOffsetSpec(s string, now time.Time) (OffsetSpec, error) {
	bad := fmt.Errorf("%q is not an offset such as 1234, start, end, start+10, end-10, @2024-05-01T10:00:00 or @-2h", s)
	if at, ok := strings.CutPrefix(s, "@"); ok {
		if ago, ok := strings.CutPrefix(at, "-"); ok {
			d, err := ParseDuration(ago)
			return OffsetSpec{Base: AtTime, At: now.Add(-d)}, err
		}
		t, err := ParseTime(at)
		return OffsetSpec{Base: AtTime, At: t}, err
	}
	spec := OffsetSpec{}
	rest, sign := s, ""
	for word, b := range map[string]struct {
		base OffsetBase
		sign string
	}{"start": {LogStart, "+"}, "beginning": {LogStart, "+"}, "end": {LogEnd, "-"}} {
		if r, ok := strings.CutPrefix(s, word); ok {
			if r == "" {
				return OffsetSpec{Base: b.base}, nil
			}
			spec.Base, rest, sign = b.base, r, b.sign
		}
	}
	digits, ok := strings.CutPrefix(rest, sign)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || strings.HasPrefix(digits, "+") {
		return spec, bad
	}
	if n < 0 {
		return spec, errors.New("an offset is not below 0; the last records are end-N")
	}
	spec.N = n
	return spec, nil
}

// Resolve turns the place into an offset between start and end of a log. atTime is the first offset at or after At, -1
// when no record is that young.
func (s OffsetSpec) Resolve(start, end, atTime int64) int64 {
	n := s.N
	switch s.Base {
	case LogStart:
		n = saturatingAdd(start, s.N)
	case LogEnd:
		n = end - s.N
	case AtTime:
		if n = atTime; n < 0 {
			n = end
		}
	}
	return min(max(n, start), end)
}
