package plan_test

import (
	"testing"
	"time"

	"kctl/admin/plan"
)

func TestOffsetSpec(t *testing.T) {
	now := time.Date(2024, 5, 2, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]int64{
		"0": 10, "42": 42, "1000": 100, "start": 10, "beginning": 10, "start+5": 15, "start+1000": 100, "end": 100, "end-7": 93, "end-1000": 10,
		"@2024-05-01": 70, "@-2h": 70, "start+9223372036854775807": 100,
	} {
		spec, err := plan.ParseOffsetSpec(s, now)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if got := spec.Resolve(10, 100, 70); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	if spec, _ := plan.ParseOffsetSpec("@-2h", now); !spec.At.Equal(now.Add(-2 * time.Hour)) {
		t.Errorf("%v", spec.At)
	}
	if spec, _ := plan.ParseOffsetSpec("@2030-01-01", now); spec.Resolve(10, 100, -1) != 100 {
		t.Error("a time after the last record is not the end")
	}
	for _, s := range []string{"", "-5", "start-5", "end+5", "end-", "end--5", "start+-5", "@", "@-", "@noon", "+5", "5x", "99999999999999999999"} {
		if spec, err := plan.ParseOffsetSpec(s, now); err == nil {
			t.Errorf("%q is %+v", s, spec)
		}
	}
}

// FuzzOffsetSpec: each text is refused or lies inside the log.
func FuzzOffsetSpec(f *testing.F) {
	for _, s := range []string{"5", "end-5", "start+5", "@-1h", "@2024-05-01", "end-9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := plan.ParseOffsetSpec(s, time.Unix(1_700_000_000, 0))
		if err != nil {
			return
		}
		if n := spec.Resolve(10, 100, 70); n < 10 || n > 100 {
			t.Fatalf("%q is %d", s, n)
		}
	})
}
