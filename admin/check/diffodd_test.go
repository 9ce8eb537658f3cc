package check

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// TestOddTopicsAreAllThatDiffer: looking at the odd topics alone finds what looking at every partition finds.
func TestOddTopicsAreAllThatDiffer(t *testing.T) {
	small := rapid.Int32Range(0, 1)
	ids := rapid.SampledFrom([][]cluster.BrokerID{{1, 2}, {2, 1}, {1}, {1, 2, 3}})
	topics := rapid.Custom(func(t *rapid.T) []model.Topic {
		var out []model.Topic
		for _, name := range []string{"a", "b", "c"} {
			if rapid.IntRange(0, 5).Draw(t, "absent") == 0 {
				continue
			}
			topic := model.Topic{Name: name, ID: cluster.TopicID{byte(small.Draw(t, "id"))}}
			for p := range rapid.Int32Range(0, 3).Draw(t, "partitions") {
				topic.Partitions = append(topic.Partitions, model.Partition{Topic: name, Partition: p, Leader: 1 + cluster.BrokerID(small.Draw(t, "leader")),
					LeaderEpoch: cluster.LeaderEpoch(small.Draw(t, "epoch")), Replicas: ids.Draw(t, "replicas"), ISR: ids.Draw(t, "isr")})
			}
			out = append(out, topic)
		}
		return out
	})
	rapid.Check(t, func(t *rapid.T) {
		f := &Facts{Snapshot: &model.Snapshot{Controller: model.Controller{ID: 1}}}
		base := topics.Draw(t, "base")
		source := func(label string) []model.Topic {
			if rapid.Bool().Draw(t, label+" agrees") {
				return slices.Clone(base)
			}
			return topics.Draw(t, label)
		}
		if rapid.Bool().Draw(t, "tree") {
			f.Tree = &Tree{Topics: source("tree")}
		}
		for id := range cluster.BrokerID(rapid.IntRange(0, 3).Draw(t, "views")) {
			v := View{Broker: id + 1, Topics: source("view")}
			if rapid.IntRange(0, 4).Draw(t, "silent") == 0 {
				v.Topics, v.Err = nil, "no answer in time"
			}
			f.Views = append(f.Views, v)
		}
		all := differ{f: f}
		all.collect(nil)
		var want []Difference
		for _, tp := range all.order {
			want = append(want, all.partition(tp)...)
		}
		odd := differ{f: f}
		odd.collect(odd.odd())
		var got []Difference
		for _, tp := range odd.order {
			got = append(got, odd.partition(tp)...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
