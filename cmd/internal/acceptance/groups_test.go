package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/broker/brokertest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// TestActiveGroup: a group with members is shown with who they are, and its offsets are not changed.
func TestActiveGroup(t *testing.T) {
	c := brokertest.Start(t, 1)
	home := t.TempDir()
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		streams, out, errb := iostreams.Test("a\nb\nc\n")
		got := cli.Run(t.Context(), args, streams, func(name string) string {
			return map[string]string{"HOME": home, "KCTL_TIMEOUT": patience, "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ",")}[name]
		})
		if got != want {
			t.Fatalf("kctl %v: exit %d, want %d\n%s%s", args, got, want, out, errb)
		}
		return out.String(), errb.String()
	}
	run(0, "topics", "create", "orders", "--partitions", "1", "--replication-factor", "1")
	run(0, "produce", "orders")
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.ConsumerGroup("audit"), kgo.ConsumeTopics("orders"), kgo.ClientID("night-shift"),
		kgo.InstanceID("shift-1"), kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 3; {
		fs := cl.PollFetches(t.Context())
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		n += fs.NumRecords()
	}
	if err := cl.CommitUncommittedOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, _ := run(0, "groups", "describe", "audit", "-o", "wide")
	for _, want := range []string{"Stable", "night-shift", "shift-1", "127.0.0.1", "orders:0", "cooperative-sticky"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _ = run(0, "lag", "groups", "audit", "-o", "json")
	if !strings.Contains(out, `"clientId": "night-shift"`) || !strings.Contains(out, `"lagRecords": 0`) {
		t.Error(out)
	}
	for _, args := range [][]string{
		{"groups", "reset-offsets", "audit", "--topic", "orders", "--to-earliest"}, {"groups", "reset-offsets", "audit", "--topic", "orders", "--to-earliest", "--execute"},
		{"groups", "delete", "audit", "--yes"},
	} {
		if _, errs := run(1, args...); !strings.Contains(errs, "group audit is Stable with 1 member(s): night-shift on 127.0.0.1") {
			t.Errorf("kctl %v: %s", args, errs)
		}
	}
	run(0, "groups", "reset-offsets", "audit", "--topic", "orders", "--to-current", "--export", home+"/now.csv") // looking is allowed
	if _, errs := run(1, "groups", "delete-offsets", "audit", "--topic", "orders", "--yes"); !strings.Contains(errs, "GROUP_SUBSCRIBED_TO_TOPIC") {
		t.Error(errs)
	}
	cl.Close() // a static member is missed only after its session
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if out, _ := run(0, "groups", "list", "-o", "name", "--state", "empty"); out == "audit\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the group does not become empty")
		}
		pause(t)
	}
	run(0, "groups", "reset-offsets", "audit", "--topic", "orders", "--to-earliest", "--execute")
}
