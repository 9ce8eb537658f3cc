package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/iostreams"
)

// errorOf runs kctl, which must fail: nothing on stdout, one JSON object of kind Error on stderr with the exit code in it.
func errorOf(t *testing.T, env map[string]string, args ...string) exit.Document {
	t.Helper()
	streams, out, errb := iostreams.Test("")
	code := cli.Run(t.Context(), args, streams, func(name string) string { return env[name] })
	var doc exit.Document
	if err := json.Unmarshal(errb.Bytes(), &doc); err != nil {
		t.Errorf("kctl %s: exit %d, stderr is no JSON object: %v: %.300s", strings.Join(args, " "), code, err, errb)
		return doc
	}
	if code == 0 || int(doc.Code) != code || doc.Kind != "Error" || doc.Error == "" || strings.Count(errb.String(), "\n") != 1 {
		t.Errorf("kctl %s: exit %d: %s", strings.Join(args, " "), code, errb)
	}
	if out.Len() > 0 {
		t.Errorf("kctl %s: an error, but stdout has %.200q", strings.Join(args, " "), out)
	}
	return doc
}

// needed are arguments with which a command gets as far as the cluster; commands without an entry take none.
var needed = map[string]string{
	"acls create": "--allow-principal User:a --operation Read --topic t --yes", "acls delete": "--principal User:a --yes", "brokers describe": "1",
	"configs delete": "topic/t retention.ms --yes", "configs get": "topic/t", "configs set": "topic/t retention.ms=1 --yes", "consume": "t", "produce": "t",
	"elect leader": "t:0 1 --yes", "elect preferred": "--all --yes", "elect unclean": "t --yes", "groups delete": "g --yes", "groups delete-offsets": "g t --yes", "groups describe": "g",
	"groups reset-offsets": "g --topic t --to-earliest --execute --yes", "lab run": "stuck-transition --yes", "lab undo": "stuck-transition --yes",
	"leader-and-isr get": "t", "leader-and-isr set": "t:0 --leader 1 --yes", "leader-and-isr watch": "--count 1",
	"log-dirs move": "t:0 1 /d --yes", "quotas set": "consumer_byte_rate=1 --user a --yes", "quotas delete": "--user a --all --yes", "quotas describe": "--user a",
	"reassign generate": "--balance", "topics alter": "t --partitions 9 --yes", "topics create": "t", "topics delete": "t --yes", "topics describe": "t",
	"transactions abort": "i --yes", "transactions describe": "i", "users delete": "u --yes", "users describe": "u", "users set": "u --password-env P --yes",
	"zk create": "/x --data y --yes", "zk delete": "/x --yes", "zk get": "/", "zk ls": "/", "zk set": "/x y --yes", "zk stat": "/", "zk tree": "/", "zk watch": "/ --count 1",
	"controller move": "--yes", "leftovers clean": "--yes", "cluster health": "", "transactions find-hanging": "--broker-id 1",
}

// offline are the commands that contact no cluster.
var offline = []string{"context", "docs", "dump", "history", "schema", "completion", "version", "help", "tui", "lab list"}

// TestErrorsAreObjects: with -o json every command says what is wrong as one JSON object on stderr and leaves stdout empty:
// for a flag that does not exist, before and behind -o, for a word too many, and for a cluster that is not there.
func TestErrorsAreObjects(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "KCTL_BOOTSTRAP_SERVER": "127.0.0.1:1", "KCTL_ZOOKEEPER": "127.0.0.1:1", "KCTL_TIMEOUT": "300ms", "P": "secret"}
	turns := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for _, path := range leaves() {
		name := strings.Join(path, " ")
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			for _, args := range [][]string{{"--no-such-flag", "-o", "json"}, {"-ojson", "--no-such-flag"}, {"--no-such-flag", "--output=json"}} {
				if doc := errorOf(t, env, append(slices.Clone(path), args...)...); doc.Code != exit.Usage || !strings.Contains(doc.Error, "no-such-flag") || doc.Hint == "" {
					t.Errorf("%s %v: %+v", name, args, doc)
				}
			}
			if slices.ContainsFunc(offline, func(o string) bool { return name == o || strings.HasPrefix(name, o+" ") }) || strings.Contains(name, "restore") {
				return
			}
			args := append(slices.Clone(path), strings.Fields(needed[name])...)
			switch path[len(path)-1] {
			case "execute", "verify", "rollback":
				args = append(args, "no-such-file", "-o", "json")
			default:
				args = append(args, "-o", "json")
			}
			if doc := errorOf(t, env, args...); doc.Hint == "" {
				t.Errorf("%s: %+v has no hint", name, doc)
			}
		})
	}
	wg.Wait()
}

// TestErrorsBeforeACommand: an error that comes before a command is found has its form too.
func TestErrorsBeforeACommand(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir()}
	for _, args := range []string{
		"nosuch -o json", "-o json nosuch", "--no-such-flag -o json", "topics nosuch -ojson", "--output=json topics lst", "help nosuch -o json", "help topics nosuch -o json",
		"completion tcsh -o json", "--timeout x topics list -o json", "topics list --timeout 0s -vo json", "--context nosuch topics list -o json", "topics list --output json -X a=b",
	} {
		if doc := errorOf(t, env, strings.Fields(args)...); doc.Code != exit.Usage || doc.Hint == "" {
			t.Errorf("%s: %+v", args, doc)
		}
	}
	env["KCTL_OUTPUT"] = "json"
	errorOf(t, env, "--no-such-flag")
	streams, _, errb := iostreams.Test("")
	cli.Run(t.Context(), []string{"--no-such-flag", "-o", "table"}, streams, func(name string) string { return env[name] })
	if !strings.HasPrefix(errb.String(), "kctl: unknown flag") {
		t.Errorf("-o table comes before the environment: %s", errb)
	}
}
