package admin

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// TestPolledDeletion: a named topic that the brokers do not know any more is deleted; one that they could not
// answer for is left as it was.
func TestPolledDeletion(t *testing.T) {
	var got []check.ISREvent
	tp := cluster.TopicPartition{Topic: "t"}
	for _, tc := range []struct {
		err  string
		want int
	}{{short(kerr.LeaderNotAvailable), 0}, {short(kerr.TopicAuthorizationFailed), 0}, {short(kerr.UnknownTopicOrPartition), 1}} {
		got = nil
		w := &isrWatch{armed: true, views: map[cluster.TopicPartition]*check.ISRView{tp: {}}, opts: ISRWatchOptions{
			Changed: func(ch check.ISRChange) error { got = append(got, ch.Event); return nil },
		}}
		if err := w.polled(&model.Snapshot{Topics: []model.Topic{{Name: "t", Err: tc.err}}}, []string{"t"}); err != nil {
			t.Fatal(err)
		}
		if len(got) != tc.want || tc.want == 1 && got[0] != check.EventDeleted {
			t.Errorf("%s: %v", tc.err, got)
		}
	}
}
