package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Target names a topic, or some of its partitions. An empty Partitions means all of them.
type Target struct {
	Topic      string
	Partitions []int32
}

// ParseTarget reads TOPIC or TOPIC:P[,P...]. A topic name cannot contain a colon, so the form is exact.
func ParseTarget(s string) (Target, error) {
	topic, list, has := strings.Cut(s, ":")
	if err := TopicName(topic); err != nil {
		return Target{}, err
	}
	t := Target{Topic: topic}
	if !has {
		return t, nil
	}
	for _, part := range strings.Split(list, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || n < 0 {
			return Target{}, fmt.Errorf("%q: partition %q is not a number from 0 up (the form is TOPIC:0,1)", s, part)
		}
		if !slices.Contains(t.Partitions, int32(n)) {
			t.Partitions = append(t.Partitions, int32(n))
		}
	}
	return t, nil
}

// ParseTargets reads several targets and joins those of one topic; the order of topics is kept.
func ParseTargets(args []string) ([]Target, error) {
	var out []Target
	for _, a := range args {
		t, err := ParseTarget(a)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(o Target) bool { return o.Topic == t.Topic })
		if i < 0 {
			out = append(out, t)
			continue
		}
		if len(t.Partitions) == 0 || len(out[i].Partitions) == 0 {
			out[i].Partitions = nil
			continue
		}
		for _, p := range t.Partitions {
			if !slices.Contains(out[i].Partitions, p) {
				out[i].Partitions = append(out[i].Partitions, p)
			}
		}
	}
	return out, nil
}

// Matcher returns Match for many partitions: it costs the same for any number of targets.
func Matcher(targets []Target) func(topic string, partition int32) bool {
	if len(targets) == 0 {
		return func(string, int32) bool { return true }
	}
	named := make(map[string]map[int32]bool, len(targets)) // the first target of a topic counts, as in Match; nil: all partitions
	for _, t := range targets {
		if _, ok := named[t.Topic]; ok {
			continue
		}
		var numbers map[int32]bool
		if len(t.Partitions) > 0 {
			numbers = make(map[int32]bool, len(t.Partitions))
			for _, n := range t.Partitions {
				numbers[n] = true
			}
		}
		named[t.Topic] = numbers
	}
	return func(topic string, partition int32) bool {
		numbers, ok := named[topic]
		return ok && (numbers == nil || numbers[partition])
	}
}

// Match reports whether a partition is one of the targets; no targets match everything.
func Match(targets []Target, topic string, partition int32) bool {
	if len(targets) == 0 {
		return true
	}
	for _, t := range targets {
		if t.Topic == topic {
			return len(t.Partitions) == 0 || slices.Contains(t.Partitions, partition)
		}
	}
	return false
}

// TopicNameMax is the longest legal topic name, in bytes (Kafka's limit, from the length of file names).
const TopicNameMax = 249

// TopicName checks a name by Kafka's rules: 1 to 249 of letters, digits, dot, underscore and dash, and
// neither "." nor "..".
func TopicName(name string) error {
	const rule = "a topic name has 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', and is neither \".\" nor \"..\""
	switch {
	case name == "":
		return errors.New("the topic name is empty: " + rule)
	case name == "." || name == "..":
		return fmt.Errorf("topic name %q is not legal: %s", name, rule)
	case len(name) > TopicNameMax:
		return fmt.Errorf("topic name of %d characters is too long: %s", len(name), rule)
	}
	for _, r := range name {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
		if !ok {
			return fmt.Errorf("topic name %q is not legal (%q): %s", name, r, rule)
		}
	}
	return nil
}

// Collision returns the existing topic whose metric name equals that of name: Kafka refuses "a.b" beside
// "a_b" because both become a_b in metric names. The same name is not a collision.
func Collision(name string, existing []string) (string, bool) {
	flat := strings.ReplaceAll(name, ".", "_")
	for _, e := range existing {
		if e != name && strings.ReplaceAll(e, ".", "_") == flat {
			return e, true
		}
	}
	return "", false
}

// Nearest returns the known name closest to a mistyped one, if one is close enough to be meant: at most a
// third of its letters differ (a swap of neighbours counts as one), and never more than three.
func Nearest(name string, known []string) (string, bool) {
	limit := min(3, max(1, len(name)/3))
	best, found := "", false
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k), limit); d <= limit {
			if !found || d < limit {
				best, found = k, true
			}
			limit = min(limit, d)
			if d == 0 {
				break
			}
		}
	}
	return best, found
}

// distance counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
