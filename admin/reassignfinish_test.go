package admin

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/plan/reassign"
)

// TestThrottleOfARestartingBroker: a broker that hangs up when a run ends is asked again, and the run ends well; one
// that refuses is not.
func TestThrottleOfARestartingBroker(t *testing.T) {
	for name, tt := range map[string]struct {
		first int16 // error code of the first answer; -2: none, the connection is closed
		asked int
		left  int
	}{
		"restarts": {first: -2, asked: 2},
		"refuses":  {first: kerr.ClusterAuthorizationFailed.Code, asked: 1, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			const key, rate = "leader.replication.throttled.rate", "1000"
			var f *fakeBroker
			f = startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
				kmsg.Metadata: func(kmsg.Request) kmsg.Response {
					r := kmsg.NewPtrMetadataResponse()
					r.Brokers = append(r.Brokers, f.node(1))
					return r
				},
				kmsg.DescribeConfigs: func(kmsg.Request) kmsg.Response {
					value := rate
					c := kmsg.NewDescribeConfigsResponseResourceConfig()
					c.Name, c.Value, c.Source = key, &value, kmsg.ConfigSourceDynamicBrokerConfig
					r := kmsg.NewPtrDescribeConfigsResponse()
					r.Resources = []kmsg.DescribeConfigsResponseResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1", Configs: []kmsg.DescribeConfigsResponseResourceConfig{c}}}
					return r
				},
				kmsg.IncrementalAlterConfigs: func(kmsg.Request) kmsg.Response {
					first := f.count(kmsg.IncrementalAlterConfigs) == 1
					if first && tt.first == -2 {
						return nil
					}
					r := kmsg.NewPtrIncrementalAlterConfigsResponse()
					r.Resources = []kmsg.IncrementalAlterConfigsResponseResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"}}
					if first {
						r.Resources[0].ErrorCode = tt.first
					}
					return r
				},
			})
			run := &reassign.Run{Version: 1, Marks: []reassign.Mark{{Broker: 1, Key: key, Value: rate}}}
			e := &executor{c: openFake(t, Config{}, f), run: run}
			problems, err := e.removeThrottles(t.Context())
			if err != nil || len(problems) != tt.left || len(run.Marks) != tt.left || f.count(kmsg.IncrementalAlterConfigs) != tt.asked {
				t.Errorf("asked %d times; left %v, %v, %v", f.count(kmsg.IncrementalAlterConfigs), run.Marks, problems, err)
			}
		})
	}
}
