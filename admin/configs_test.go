package admin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/broker/brokertest"
)

// configured opens an in-process cluster with one topic that has two values of its own.
func configured(t *testing.T) (*admin.Client, model.ConfigResource) {
	t.Helper()
	cl := brokertest.Start(t, 1)
	zk, err := admin.ParseZooKeeperAddress(cl.ZooKeeper())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := admin.ParseBootstrap(strings.Join(cl.Addrs(), ","))
	if err != nil {
		t.Fatal(err)
	}
	c, err := admin.Open(t.Context(), admin.Config{Bootstrap: boot, ZooKeeper: zk, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, _, err = c.CreateTopic(t.Context(), plan.NewTopic{
		Name: "orders", Partitions: 1, ReplicationFactor: 1, Configs: map[string]string{"retention.ms": "1000", "cleanup.policy": "compact"},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c, model.ConfigResource{Type: model.TopicResource, Name: "orders"}
}

// overrides reads what is set on the topic itself.
func overrides(t *testing.T, c *admin.Client, r model.ConfigResource) string {
	t.Helper()
	rs, err := c.Configs(t.Context(), []model.ConfigResource{r}, nil)
	if err != nil || rs[0].Err != nil {
		t.Fatal(err, rs)
	}
	var out []string
	for _, e := range rs[0].Entries {
		if v, own := e.Override(r); own {
			out = append(out, e.Name+"="+*v)
		}
	}
	return strings.Join(out, " ")
}

func alter(ctx context.Context, t *testing.T, c *admin.Client, r model.ConfigResource, direct bool, ops ...plan.ConfigOp) {
	t.Helper()
	rs, err := c.Configs(ctx, []model.ConfigResource{r}, nil)
	if err != nil {
		t.Fatal(err)
	}
	chs, err := plan.PlanConfigs(&rs[0], ops, false)
	if err != nil {
		t.Fatal(err)
	}
	var results []admin.ConfigResult
	if direct {
		results, err = c.WriteConfigsToZooKeeper(ctx, chs)
	} else {
		results, err = c.AlterConfigs(ctx, chs, false)
	}
	if err != nil || len(results) != 1 || results[0].Err != nil {
		t.Fatalf("%v %v", results, err)
	}
	if missing, err := c.AwaitConfigs(ctx, chs); err != nil || len(missing) > 0 {
		t.Fatalf("%v %v", missing, err)
	}
}

// TestConfigChangesKeepOtherKeys: by the incremental request, by the old one that replaces everything, and in
// ZooKeeper: no other key is dropped.
func TestConfigChangesKeepOtherKeys(t *testing.T) {
	c, r := configured(t)
	set := func(key, value string) plan.ConfigOp {
		return plan.ConfigOp{Kind: plan.SetConfig, Key: key, Value: value}
	}
	alter(t.Context(), t, c, r, false, set("retention.ms", "2000"), plan.ConfigOp{Kind: plan.AppendConfig, Key: "cleanup.policy", Value: "delete"})
	if got := overrides(t, c, r); got != "cleanup.policy=compact,delete retention.ms=2000" {
		t.Errorf("incremental: %s", got)
	}
	c.ForgetAPI(kmsg.IncrementalAlterConfigs.Int16())
	alter(t.Context(), t, c, r, false, set("retention.ms", "3000"), plan.ConfigOp{Kind: plan.SubtractConfig, Key: "cleanup.policy", Value: "compact"})
	if got := overrides(t, c, r); got != "cleanup.policy=delete retention.ms=3000" {
		t.Errorf("the old request: %s", got)
	}
	alter(t.Context(), t, c, r, true, set("max.message.bytes", "5000"), plan.ConfigOp{Kind: plan.DeleteConfig, Key: "retention.ms"})
	if got := overrides(t, c, r); got != "cleanup.policy=delete max.message.bytes=5000" {
		t.Errorf("ZooKeeper: %s", got)
	}
}
