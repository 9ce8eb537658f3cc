package acceptance

import (
	"strings"
	"testing"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// TestControllerDenies: a /controller that somebody made by hand names a broker that knows nothing of it. Doctor finds it, with what
// that broker says, and the command that it names mends it.
func TestControllerDenies(t *testing.T) {
	c := doctorCluster(t)
	l := lab{t, map[string]string{"HOME": t.TempDir(), "KCTL_TIMEOUT": "16s", "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER": c.ZooKeeper()}} // half of it goes into looking for a controller
	if l.finds("controller-denies") {
		t.Fatal("it is found before it was made")
	}
	named := cluster.BrokerID(1)
	if c.Controller() == named {
		named = 2
	}
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	data := znode.Controller{BrokerID: named, TimestampMs: time.Now().UnixMilli(), KRaftEpoch: -1}.Encode()
	if r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{
		{Kind: zkop.Delete, Path: znode.ControllerPath, Version: zkop.AnyVersion},
		{Kind: zkop.Create, Path: znode.ControllerPath, Data: data, Mode: zkop.Persistent},
	}})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	l.await("controller-denies", func() bool { return l.finds("controller-denies") })
	code, out, errs := l.kctl("doctor", "controller-denies")
	if code != 10 || !strings.Contains(out, "NOT_CONTROLLER to a request for the controller") || !strings.Contains(out, "belongs to no session") || !strings.Contains(out, "kctl controller move --yes") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := l.kctl("controller", "move", "--yes"); code != 0 {
		t.Fatalf("controller move: exit %d\n%s%s", code, out, errs)
	}
	if l.finds("controller-denies") {
		t.Error("it is still found")
	}
}
