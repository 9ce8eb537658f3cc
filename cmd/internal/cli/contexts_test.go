package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// TestContextChanges: set, rename and import; the journal takes them back, and never holds a secret.
func TestContextChanges(t *testing.T) {
	k := newKctl(t)
	k.run("context", "add", "a", "-b", "h:1", "-X", "client.id=x").want(exit.OK, "", "context a is in")
	k.run("context", "set", "a", "-z", "z:1/k", "-X", "client.id=y", "--cluster-id", "ID").want(exit.OK, "", "is changed")
	k.run("context", "show", "a", "-o", "json").want(exit.OK, `"zookeeper": "z:1/k"`, "")
	for _, want := range []string{`"bootstrapServer": "h:1"`, `"client.id=y"`, `"clusterId": "ID"`} {
		if !strings.Contains(k.out.String(), want) {
			t.Errorf("no %s in %s", want, k.out)
		}
	}
	k.run("context", "set", "a", "--unset", "client.id", "--cluster-id", "none").want(exit.OK, "", "is changed")
	k.run("history", "undo", "3").want(exit.OK, "", "taking back change 3")
	k.run("context", "show", "a", "-o", "json").want(exit.OK, `"clusterId": "ID"`, "")
	k.run("history", "undo", "3").want(exit.Failed, "", "taken back already, by change 4")
	k.run("context", "set", "a", "-X", "nope=1").want(exit.Usage, "", `unknown setting "nope"`)
	k.run("context", "set", "a", "-b", "", "-z", "").want(exit.Usage, "", "needs --bootstrap-server or --zookeeper")
	k.run("context", "rename", "a", "b c").want(exit.Usage, "", "blanks")
	k.run("context", "rename", "a", "b").want(exit.OK, "", "b now")
	k.run("context", "show").want(exit.OK, "b", "")

	k.run("context", "set", "b", "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=u", "-X", "sasl.password=topsecret").want(exit.OK, "", "is changed")
	k.run("context", "delete", "b").want(exit.OK, "", "removed")
	k.run("history", "undo", "7").want(exit.Failed, "", "by hand: the context held the secret sasl.password")
	journal, err := os.ReadFile(filepath.Join(k.env["HOME"], ".local", "state", "kctl", "history.jsonl"))
	if err != nil || strings.Contains(string(journal), "topsecret") {
		t.Errorf("the journal holds a secret, or is not there: %v", err)
	}
}

// TestContextUndoExpects: what somebody else made of a context since the change is not overwritten by its undo; that the context
// has remembered its cluster meanwhile is no such change.
func TestContextUndoExpects(t *testing.T) {
	k := newKctl(t)
	k.run("context", "add", "a", "-b", "h:1").want(exit.OK, "", "context a is in")
	k.run("context", "set", "a", "-b", "h:2").want(exit.OK, "", "is changed")
	k.run("context", "set", "a", "--read-only").want(exit.OK, "", "is changed")
	k.run("history", "undo", "2").want(exit.Failed, "", "not as expected: it is bootstrapServer=h:2 readOnly=true; nothing was changed")
	k.run("history", "undo", "1").want(exit.Failed, "", "not as expected")
	k.run("context", "show", "a", "-o", "json").want(exit.OK, `"bootstrapServer": "h:2"`, "")
	k.run("history", "undo", "3").want(exit.OK, "", "taking back change 3")
	k.run("context", "show", "a", "-o", "json").want(exit.OK, `"readOnly": false`, "")

	file := filepath.Join(k.env["HOME"], ".config", "kctl", "config.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, "      clusterId: learned\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("history", "undo", "2").want(exit.OK, "", "taking back change 2")
	k.run("context", "show", "a", "-o", "json").want(exit.OK, `"bootstrapServer": "h:1"`, "")

	k.run("context", "delete", "a").want(exit.OK, "", "removed")
	k.run("context", "add", "a", "-b", "h:9").want(exit.OK, "", "context a is in")
	k.run("history", "undo", "6").want(exit.Failed, "", "not as expected: it is bootstrapServer=h:9")
	k.run("context", "delete", "a", "--expect", "zzz").want(exit.Usage, "", "neither none nor a mark")
	k.run("context", "delete", "a", "--expect", "none").want(exit.Failed, "", "not as expected")
	k.run("context", "set", "a", "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=u", "-X", "sasl.password=one").want(exit.OK, "", "is changed")
	k.run("history", "undo", "8").want(exit.OK, "", "taking back change 8")
}

// TestCompletionIsSilent: a shell gets words or nothing, never an error, and offers what needs no cluster without one.
func TestCompletionIsSilent(t *testing.T) {
	k := newKctl(t)
	k.env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:1"
	for _, tt := range []struct{ args, want string }{
		{"configs get ", "topic/"}, {"configs get topic/", ""}, {"configs set topic/a ", ""}, {"topics describe ", ""}, {"partitions list a:", ""},
		{"users describe ", ""}, {"quotas set ", "producer_byte_rate="}, {"acls list --operation ", "IdempotentWrite"}, {"acls list --topic ", ""}, {"history undo ", ""},
		{"users set a --mechanism ", "SCRAM-SHA-256"}, {"schema ACL", "ACLChangeList"},
	} {
		words := append([]string{"__complete"}, strings.Split(tt.args, " ")...)
		k.run(words...)
		lines := strings.Split(strings.TrimSpace(k.out.String()), "\n")
		if k.code != 0 || !strings.HasPrefix(lines[len(lines)-1], ":") || !strings.Contains(k.out.String(), tt.want) || strings.Contains(k.err.String(), "refused") {
			t.Errorf("%s: exit %d\n%s%s", tt.args, k.code, k.out, k.err)
		}
	}
}
