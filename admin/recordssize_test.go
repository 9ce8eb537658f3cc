package admin

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestBatchBytes: a producer keeps to what the topic takes, be it more or less than the library's own bound.
func TestBatchBytes(t *testing.T) {
	for value, want := range map[string]int32{
		"3000000": 3_000_000, "2000": 2000, "7": leastBatchBytes, "2147483647": mostBatchBytes, "": defaultBatchBytes,
	} {
		f := newFakeCluster(t, 1, 1)
		f.answer[kmsg.DescribeConfigs] = func(req kmsg.Request) kmsg.Response {
			r := kmsg.NewPtrDescribeConfigsResponse()
			rr := kmsg.NewDescribeConfigsResponseResource()
			rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, "topic-00000"
			if c := kmsg.NewDescribeConfigsResponseResourceConfig(); value != "" {
				c.Name, c.Value = "max.message.bytes", &value
				rr.Configs = append(rr.Configs, c)
			}
			r.Resources = append(r.Resources, rr)
			return r
		}
		c := openFake(t, Config{Timeout: 5 * time.Second}, f.fakeBroker)
		if got := c.batchBytes(t.Context(), "topic-00000"); got != want {
			t.Errorf("max.message.bytes=%q: %d, want %d", value, got, want)
		}
	}
}
