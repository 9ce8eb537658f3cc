package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"kctl/admin/plan"
)

// TestMatcherIsMatch: the quick form says what Match says, for any targets.
func TestMatcherIsMatch(t *testing.T) {
	topic := rapid.SampledFrom([]string{"a", "b", "c"})
	target := rapid.Custom(func(t *rapid.T) plan.Target {
		return plan.Target{Topic: topic.Draw(t, "topic"), Partitions: rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 3).Draw(t, "partitions")}
	})
	rapid.Check(t, func(t *rapid.T) {
		targets := rapid.SliceOfN(target, 0, 4).Draw(t, "targets")
		match := plan.Matcher(targets)
		name, n := topic.Draw(t, "name"), rapid.Int32Range(0, 3).Draw(t, "n")
		if got, want := match(name, n), plan.Match(targets, name, n); got != want {
			t.Fatalf("%v: %s:%d is %v, Match says %v", targets, name, n, got, want)
		}
	})
}
