package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// meddled is a connection on which somebody meddles with each multi.
type meddled struct {
	zkutil.Client
	before func() // runs before a multi is sent
	lose   int    // so many answers to multis are lost
	drop   bool   // and the requests with them
	multis int
}

func (m *meddled) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	if reqs[0].Kind != zkop.Multi {
		return m.Client.Do(ctx, session, reqs...)
	}
	m.multis++
	if m.before != nil {
		m.before()
	}
	lost := []zkop.Response{{Err: zkop.ErrOutcomeUnknown}}
	if m.lose == 0 {
		return m.Client.Do(ctx, session, reqs...)
	}
	m.lose--
	if !m.drop {
		m.Client.Do(ctx, session, reqs...)
	}
	return lost
}

// storedClient is a Client turned to an embedded ZooKeeper without brokers, and its connection.
func storedClient(t *testing.T) (*Client, *meddled) {
	t.Helper()
	srv, err := zkserver.Start(t.Context(), zkserver.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	m := &meddled{}
	c, err := Open(t.Context(), Config{
		ZooKeeper: ZooKeeperAddress{Servers: []string{srv.Addr()}},
		ConnectZooKeeper: func(ctx context.Context, a ZooKeeperAddress, d time.Duration, log *slog.Logger) (zkutil.Client, error) {
			var err error
			m.Client, err = Config{}.connectZooKeeper(ctx, a, d, log)
			return m, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.ScramUsers(t.Context(), nil)
	if turned, uerr := c.UseStored(t.Context(), err, StoredUse{Write: true, Notice: func(string) {}}); !turned || uerr != nil {
		t.Fatalf("not turned to ZooKeeper: %v, then %v", err, uerr)
	}
	return c, m
}

func (m *meddled) get(t *testing.T, path string) string {
	t.Helper()
	data, _, err := zkutil.Any(m.Client).Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (m *meddled) put(t *testing.T, path, data string) {
	t.Helper()
	ops := zkutil.Any(m.Client)
	if _, err := ops.Set(t.Context(), path, []byte(data), zkop.AnyVersion); !errors.Is(err, zkop.ErrNoNode) {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if parent := path[:strings.LastIndexByte(path, '/')]; parent != "" {
		if err := ops.EnsurePath(t.Context(), parent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ops.Create(t.Context(), path, []byte(data), zkop.Persistent); err != nil {
		t.Fatal(err)
	}
}

func (m *meddled) notices(t *testing.T, folder string) int {
	t.Helper()
	children, _, err := zkutil.Any(m.Client).Children(t.Context(), folder)
	if err != nil && !errors.Is(err, zkop.ErrNoNode) {
		t.Fatal(err)
	}
	return len(children)
}

var scramBoth = []model.ScramCredential{{User: "al ice", Mechanism: "SCRAM-SHA-256", Iterations: 4096}, {User: "al ice", Mechanism: "SCRAM-SHA-512", Iterations: 5000}}

// TestStoredUsers: credentials are made, one is taken away, and what others have in the znode stays.
func TestStoredUsers(t *testing.T) {
	c, m := storedClient(t)
	const path = "/config/users/al%20ice"
	m.put(t, path, `{"version":1,"config":{"producer_byte_rate":"7","SCRAM-SHA-256":"salt=,stored_key=,server_key=,iterations=1"},"x":[1]}`)
	if err := c.SetScramUser(t.Context(), scramBoth, "pw-secret"); err != nil {
		t.Fatal(err)
	}
	cfg, err := znode.DecodeConfig(znode.UserConfig, "al%20ice", []byte(m.get(t, path)))
	if err != nil || cfg.Values["producer_byte_rate"] != "7" || len(cfg.Unknown) != 1 {
		t.Fatalf("%v, %v", cfg, err)
	}
	for _, cr := range scramBoth {
		got, err := znode.DecodeScramCredential(cfg.Values[cr.Mechanism])
		if err != nil || got.Iterations != cr.Iterations {
			t.Errorf("%s: %v, %v", cr.Mechanism, got, err)
			continue
		}
		if again, _ := znode.NewScramCredential(cr.Mechanism, "pw-secret", got.Salt, got.Iterations); again.Encode() != cfg.Values[cr.Mechanism] || len(got.Salt) != scramSalt {
			t.Errorf("%s is not of the password", cr.Mechanism)
		}
	}
	if have, err := c.ScramUsers(t.Context(), []string{"al ice"}); err != nil || !slices.Equal(have, scramBoth) {
		t.Errorf("%v, %v", have, err)
	}
	if m.notices(t, znode.ConfigChangesPath) != 1 || m.get(t, znode.ConfigChangePrefix+"0000000000") != `{"version":2,"entity_path":"users/al%20ice"}` {
		t.Error("the notification is not as brokers read it")
	}
	if err := c.DeleteScramUser(t.Context(), scramBoth[:1]); err != nil {
		t.Fatal(err)
	}
	if have, err := c.ScramUsers(t.Context(), nil); err != nil || !slices.Equal(have, scramBoth[1:]) {
		t.Errorf("%v, %v", have, err)
	}
	if err := c.DeleteScramUser(t.Context(), scramBoth[:1]); err != nil || m.multis != 2 {
		t.Errorf("what is gone is deleted again: %v, %d writes", err, m.multis)
	}
	if err := c.SetScramUser(t.Context(), []model.ScramCredential{{User: "..", Mechanism: "SCRAM-SHA-512", Iterations: 4096}}, "x"); KindOf(err) != BadInput {
		t.Error(err)
	}
	m.put(t, path, `{"version":1,"config":{"SCRAM-SHA-512":5}}`)
	if err := c.SetScramUser(t.Context(), scramBoth, "pw"); err == nil || !strings.Contains(err.Error(), "nothing was written") || m.get(t, path) != `{"version":1,"config":{"SCRAM-SHA-512":5}}` {
		t.Errorf("a znode that cannot be read: %v", err)
	}
}

// TestStoredOvertaken: keys that others write at the same moment stay, and so does ours.
func TestStoredOvertaken(t *testing.T) {
	c, m := storedClient(t)
	const path = "/config/clients/app"
	others := 0
	m.before = func() {
		if others++; others <= 3 { // the first of them makes the node
			cfg := znode.Config{Values: map[string]string{"request_percentage": strings.Repeat("1", others)}}
			m.put(t, path, string(cfg.Encode()))
		}
	}
	e, v := model.QuotaEntity{ClientID: "app"}, 1024.0
	if err := c.AlterQuotas(t.Context(), e, []plan.QuotaChange{{Entity: e, Key: "producer_byte_rate", After: &v}}, false); err != nil {
		t.Fatal(err)
	}
	if got := m.get(t, path); !strings.Contains(got, `"producer_byte_rate":"1024"`) || !strings.Contains(got, `"request_percentage":"111"`) || others != 4 {
		t.Errorf("%s after %d writes", got, others)
	}
	m.before = func() { others++; m.put(t, path, m.get(t, path)) } // without end
	v = 2048
	if err := c.AlterQuotas(t.Context(), e, []plan.QuotaChange{{Entity: e, Key: "producer_byte_rate", After: &v}}, false); !errors.Is(err, errOvertaken) || m.multis != 4+editTries {
		t.Errorf("%v after %d writes", err, m.multis)
	}
}

// TestStoredLostAnswer: a write whose answer is lost is made once, whether it arrived or not.
func TestStoredLostAnswer(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		c, m := storedClient(t)
		m.lose, m.drop = 1, !arrived
		rule := model.ACL{ResourceType: "TransactionalId", ResourceName: "a:b", PatternType: plan.PrefixedPattern, Principal: "User:p", Permission: "Allow", Operation: "Describe", Host: "*"}
		if errs, err := c.CreateACLs(t.Context(), []model.ACL{rule}); err != nil || errs[0] != nil {
			t.Fatalf("arrived %v: %v, %v", arrived, errs, err)
		}
		want := `{"acls":[{"principal":"User:p","permissionType":"Allow","host":"*","operation":"Describe"}],"version":1}`
		if got := m.get(t, "/kafka-acl-extended/prefixed/TransactionalId/a:b"); got != want {
			t.Errorf("arrived %v: %s", arrived, got)
		}
		if n := m.notices(t, znode.ExtendedACLChangesPath); n != 1 {
			t.Errorf("arrived %v: %d notifications", arrived, n)
		}
		m.lose = 1
		if errs, err := c.DeleteACLs(t.Context(), []model.ACL{rule}); err != nil || errs[0] != nil {
			t.Fatalf("arrived %v: %v, %v", arrived, errs, err)
		}
		if have, err := c.ACLs(t.Context(), model.ACLFilter{}); err != nil || len(have) != 0 {
			t.Errorf("arrived %v: %v, %v", arrived, have, err)
		}
		if _, ok, _ := zkutil.Any(m.Client).Exists(t.Context(), "/kafka-acl-extended/prefixed/TransactionalId/a:b"); ok {
			t.Errorf("arrived %v: a node without rules is left", arrived)
		}
	}
}

// TestStoredACLs: rules of one resource are one write; what cannot be stored is refused by itself.
func TestStoredACLs(t *testing.T) {
	c, m := storedClient(t)
	rule := func(kind, name, op string) model.ACL {
		return model.ACL{ResourceType: kind, ResourceName: name, PatternType: plan.LiteralPattern, Principal: "User:p", Permission: "Allow", Operation: op, Host: "*"}
	}
	acls := []model.ACL{rule("Topic", "t", "Read"), rule("Group", "a/b", "Read"), rule("Cluster", "kafka-cluster", "ClusterAction"), rule("Topic", "t", "Write")}
	errs, err := c.CreateACLs(t.Context(), acls)
	if err != nil || errs[0] != nil || KindOf(errs[1]) != BadInput || errs[2] != nil || errs[3] != nil {
		t.Fatalf("%v, %v", errs, err)
	}
	if m.multis != 2 || m.notices(t, znode.ACLChangesPath) != 2 || m.get(t, znode.ACLChangePrefix+"0000000000") != "TOPIC:t" {
		t.Errorf("%d writes", m.multis)
	}
	have, err := c.ACLs(t.Context(), model.ACLFilter{Principal: "User:p"})
	if err != nil || !slices.Equal(have, []model.ACL{acls[2], acls[0], acls[3]}) {
		t.Errorf("%v, %v", have, err)
	}
}

// TestUseStored: where ZooKeeper is no help, or must not be used, nothing is turned.
func TestUseStored(t *testing.T) {
	c, m := storedClient(t)
	c.stored = nil
	down := &Error{Kind: Unreachable, Msg: "nobody answers"}
	use := func(cause error, u StoredUse) (string, error) {
		var said []string
		u.Notice = func(s string) { said = append(said, s) }
		turned, err := c.UseStored(t.Context(), cause, u)
		if turned != c.Stored() || turned && len(said) == 0 {
			t.Errorf("turned %v, said %q", turned, said)
		}
		c.stored = nil
		return strings.Join(said, "; "), err
	}
	refused := &Error{Kind: Unauthorized, Msg: "login refused"}
	for _, cause := range []error{refused, &Error{Kind: Failed}, &Error{Kind: NotFound}} {
		if said, err := use(cause, StoredUse{Write: true}); said != "" || err != nil {
			t.Errorf("%v: %s, %v", cause, said, err)
		}
	}
	if _, err := use(down, StoredUse{}); KindOf(err) != NotFound {
		t.Errorf("nothing of Kafka: %v", err)
	}
	m.put(t, "/kafka/brokers/ids/1", "{}")
	if _, err := use(down, StoredUse{Write: true}); KindOf(err) != BadInput || !strings.Contains(HintOf(err), "/kafka") {
		t.Errorf("below a chroot: %v, %s", err, HintOf(err))
	}
	m.put(t, "/brokers/ids/1", "{}")
	if _, err := use(down, StoredUse{Write: true}); KindOf(err) != Unreachable || !strings.Contains(err.Error(), "nobody answers") {
		t.Errorf("registered: %v", err)
	}
	for _, cause := range []error{down, refused} {
		if said, err := use(cause, StoredUse{Write: true, BreakGlass: true}); !strings.Contains(said, "broker 1 is registered") || err != nil {
			t.Errorf("break glass, %v: %s, %v", cause, said, err)
		}
	}
	if id, err := c.VerifyCluster(t.Context()); id != "" || err != nil {
		t.Errorf("cluster %q, %v", id, err)
	}
	m.put(t, "/cluster/id", `{"version":"1","id":"E3ClF0gORC6KlDrpd1XecQ"}`)
	if id, err := c.VerifyCluster(t.Context()); id != "E3ClF0gORC6KlDrpd1XecQ" || err != nil {
		t.Errorf("cluster %q, %v", id, err)
	}
	m.put(t, "/migration", `{"version":0}`)
	if said, err := use(down, StoredUse{}); !strings.Contains(said, "KRaft") || err != nil {
		t.Errorf("migration: %s, %v", said, err)
	}
}
