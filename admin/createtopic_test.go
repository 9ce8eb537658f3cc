package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/plan"
)

// TestCreateWaitsForADeletion: in ZooKeeper mode brokers forget a topic before its deletion has ended, and until then refuse
// one of the same name. Such a topic is waited for; one that simply exists is not.
func TestCreateWaitsForADeletion(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		refusals      int // answers that refuse before one does not
		wantAsked     int // 0: more than one
		want          string
	}{
		{"a deletion that ends", "Topic 'topic-00000' is marked for deletion.", 2, 3, ""},
		{"a deletion that does not end", "Topic 'topic-00000' is marked for deletion.", 1 << 30, 0, "marked for deletion"},
		{"a topic that exists", "Topic 'topic-00000' already exists.", 1 << 30, 1, "already exists"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeCluster(t, 1, 1)
			left := tt.refusals
			f.answer[kmsg.CreateTopics] = func(kmsg.Request) kmsg.Response { // one connection, so one at a time
				r := kmsg.NewPtrCreateTopicsResponse()
				rt := kmsg.NewCreateTopicsResponseTopic()
				rt.Topic = "topic-00000"
				if left--; left >= 0 {
					rt.ErrorCode, rt.ErrorMessage = kerr.TopicAlreadyExists.Code, &tt.message
				}
				r.Topics = append(r.Topics, rt)
				return r
			}
			c := openFake(t, Config{Timeout: time.Second}, f.fakeBroker)
			_, _, err := c.CreateTopic(t.Context(), plan.NewTopic{Name: "topic-00000", Partitions: 1, ReplicationFactor: 1}, false)
			asked := f.count(kmsg.CreateTopics)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if tt.wantAsked != 0 && asked != tt.wantAsked || tt.wantAsked == 0 && asked < 2 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}
