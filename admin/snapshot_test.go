package admin

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan"
)

const srvrAnswer = `Zookeeper version: 3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12 22:16 UTC
Latency min/avg/max: 0/0.5381/48
Received: 3020
Sent: 3019
Connections: 4
Outstanding: 7
Zxid: 0x1b3
Mode: follower
Node count: 172
`

func TestParseSrvr(t *testing.T) {
	s, err := parseSrvr(srvrAnswer)
	if err != nil || s.Mode != "follower" || s.AvgLatency != 0.5381 || s.MaxLatency != 48 || s.Outstanding != 7 || s.Nodes != 172 ||
		s.Version != "3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c" {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := parseSrvr("srvr is not executed because it is not in the whitelist.\n"); err != nil || s.Mode != "unknown" {
		t.Errorf("a server that may not tell: %+v %v", s, err)
	}
	for _, text := range []string{"", "HTTP/1.1 400 Bad Request\r\n", "This ZooKeeper instance is not currently serving requests\n"} {
		if s, err := parseSrvr(text); err == nil {
			t.Errorf("%q gave %+v", text, s)
		}
	}
}

func FuzzParseSrvr(f *testing.F) {
	f.Add(srvrAnswer)
	f.Add("Zookeeper version: x\nLatency min/avg/max: NaN/Inf/1e999\nOutstanding: -9223372036854775809\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSrvr(text)
		if err == nil && s.Mode != "unknown" && !strings.Contains(strings.ToLower(text), "zookeeper version") {
			t.Errorf("%q is taken for a server's answer: %+v", text, s)
		}
	})
}

func FuzzDecodeLabRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"scenario":"stuck-transition","topic":"lab-stuck-transition","settle":true,"undo":[{"path":"/a","wrote":"eA==","before":null,"created":true}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := plan.DecodeLabRecord(data)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := plan.DecodeLabRecord(again); err != nil || back.Scenario != r.Scenario || len(back.Undo) != len(r.Undo) {
			t.Errorf("%q came back as %+v, %v", data, back, err)
		}
	})
}

// TestConfigsRefused: a configuration that was asked for in vain is told, unless the topic just went away; those that could
// be read count.
func TestConfigsRefused(t *testing.T) {
	why := "ZooKeeper did not answer"
	codes := map[string]int16{"gone": kerr.UnknownTopicOrPartition.Code}
	f := startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{kmsg.DescribeConfigs: func(req kmsg.Request) kmsg.Response {
		resp := kmsg.NewPtrDescribeConfigsResponse()
		for _, r := range req.(*kmsg.DescribeConfigsRequest).Resources {
			out := kmsg.NewDescribeConfigsResponseResource()
			out.ResourceType, out.ResourceName, out.ErrorCode = r.ResourceType, r.ResourceName, codes[r.ResourceName]
			if out.ErrorCode != 0 {
				out.ErrorMessage = &why
			} else {
				three := "3"
				c := kmsg.NewDescribeConfigsResponseResourceConfig()
				c.Name, c.Value = "min.insync.replicas", &three
				out.Configs = append(out.Configs, c)
			}
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	}})
	c := openFake(t, Config{}, f)
	topics := []model.Topic{{Name: "a"}, {Name: "gone"}, {Name: "b"}, {Name: "c"}}
	if got, err := c.minISR(t.Context(), topics); err != nil || got["a"] != 3 {
		t.Errorf("%v %v", got, err)
	}
	codes["b"], codes["c"] = kerr.RequestTimedOut.Code, kerr.RequestTimedOut.Code
	got, err := c.minISR(t.Context(), topics)
	if err == nil || !strings.Contains(err.Error(), "of 2 topics") || !strings.Contains(err.Error(), why) || got["a"] != 3 || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
}
