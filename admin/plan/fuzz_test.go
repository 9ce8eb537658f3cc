package plan

import (
	"slices"
	"strings"
	"testing"
)

// FuzzTargets: what is accepted names legal topics and partitions from 0 up, each once.
func FuzzTargets(f *testing.F) {
	for _, s := range []string{"t", "t:0,1", "t:0 t:1 t", "a:1 b", "", ":", "t:", "t:-1", "t:2147483648", "t:0,,1", "..:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		targets, err := ParseTargets(strings.Split(s, " "))
		if err != nil {
			return
		}
		for i, target := range targets {
			same := func(o Target) bool { return o.Topic == target.Topic }
			if TopicName(target.Topic) != nil || slices.IndexFunc(targets, same) != i {
				t.Fatalf("%q gives %+v", s, targets)
			}
			for j, p := range target.Partitions {
				if p < 0 || slices.Index(target.Partitions, p) != j {
					t.Fatalf("%q gives partitions %v", s, target.Partitions)
				}
			}
		}
	})
}

// FuzzAssignment: what is accepted has one number of replicas, and no broker twice in a partition.
func FuzzAssignment(f *testing.F) {
	for _, s := range []string{"1:2:3,2:3:1", "1", "1:1", "1,2:3", "", ",", ":", "-1", "2147483648", " 1 : 2 , 3 : 4 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		assignment, err := ParseAssignment(s)
		if err != nil {
			return
		}
		for _, ids := range assignment {
			sorted := slices.Sorted(slices.Values(ids))
			if len(ids) != len(assignment[0]) || len(slices.Compact(sorted)) != len(ids) || ids == nil || sorted[0] < 0 {
				t.Fatalf("%q gives %v", s, assignment)
			}
		}
	})
}

// FuzzConfigs: each pair that is accepted is there, whole.
func FuzzConfigs(f *testing.F) {
	for _, s := range []string{"a=b", "a=b\na=c", "=", "a", "a=b=c", " a =b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pairs := strings.Split(s, "\n")
		configs, err := ParseConfigs(pairs)
		if err != nil {
			return
		}
		if len(configs) != len(pairs) {
			t.Fatalf("%q gives %v", s, configs)
		}
		if _, empty := configs[""]; empty {
			t.Fatalf("%q gives a key without a name", s)
		}
	})
}
