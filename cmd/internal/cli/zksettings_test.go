package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// TestZooKeeperSecrets: contexts carry the settings of the way to ZooKeeper; their secrets are in the configuration file and
// nowhere else, also where a blank stands behind the name.
func TestZooKeeperSecrets(t *testing.T) {
	k := newKctl(t)
	const secret = "topsecret"
	run := func(args ...string) *kctl {
		t.Helper()
		k.run(args...)
		journal, _ := os.ReadFile(filepath.Join(k.env["HOME"], ".local", "state", "kctl", "history.jsonl"))
		if strings.Contains(k.out.String()+k.err.String()+string(journal), secret) {
			t.Errorf("kctl %v shows a secret:\n%s%s%s", args, k.out, k.err, journal)
		}
		return k
	}
	run("-X", "list").want(exit.OK, "kctl.zookeeper.auth", "")
	run("context", "add", "a", "-z", "127.0.0.1:1/k", "-X", "zookeeper.ssl.client.enable=true", "-X", "zookeeper.ssl.keystore.password="+secret, "-X", "kctl.zookeeper.auth =digest:kafka:"+secret).want(exit.OK, "", "context a is in")
	run("context", "show", "a", "-o", "json").want(exit.OK, "kctl.zookeeper.auth =***", "")
	run("context", "list", "-o", "wide").want(exit.OK, "zookeeper.ssl.keystore.password=***", "")
	run("context", "set", "a", "-X", "kctl.zookeeper.auth=digest:other:"+secret).want(exit.OK, "", "is changed")
	run("history", "undo", "2").want(exit.Failed, "", "by hand: the context held the secret")
	run("zk", "ls", "/", "--timeout", "1s", "--verbose").want(exit.Unreachable, "", "connection refused")
	run("context", "set", "a", "-X", "zookeeper.sasl.client=true").want(exit.OK, "", "is changed")
	run("zk", "ls", "/").want(exit.Usage, "", "does not log in to ZooKeeper with SASL")
	run("context", "set", "a", "-X", "kctl.zookeeper.aut="+secret).want(exit.Usage, "", `did you mean "kctl.zookeeper.auth"?`)
	run("zk", "ls", "/", "-z", "h:1", "-X", "kctl.zookeeper.auth="+secret).want(exit.Usage, "", "kctl.zookeeper.auth is not digest:USER:PASSWORD")
	file := filepath.Join(t.TempDir(), "zk-tls.properties")
	if err := os.WriteFile(file, []byte("zookeeper.ssl.client.enable=true\nzookeeper.ssl.keystore.password="+secret+"\nzookeeper.connect=h:2182/k\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("context", "import", "b", file).want(exit.OK, "", "context b is in")
	run("context", "show", "b", "-o", "json").want(exit.OK, `"zookeeper": "h:2182/k"`, "")
	config, err := os.ReadFile(filepath.Join(k.env["HOME"], ".config", "kctl", "config.yaml"))
	if err != nil || strings.Count(string(config), secret) != 2 {
		t.Errorf("the configuration holds the settings of the first context alone: %v\n%s", err, config)
	}
}
