package cli_test

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/verb"
)

// leaves are the paths of all commands that do something, without "kctl".
func leaves() (out [][]string) {
	streams, _, _ := iostreams.Test("")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() {
			out = append(out, strings.Fields(c.CommandPath())[1:])
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.NewRoot(factory.New(streams, func(string) string { return "" })))
	return out
}

// silent is the address of a server that takes connections and never says anything.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

// completions runs __complete and returns the words, the directive and what stands on stderr beside cobra's own line,
// which its scripts throw away.
func completions(t *testing.T, env map[string]string, args ...string) (words []string, directive, stderr string) {
	streams, out, errb := iostreams.Test("")
	code := cli.Run(t.Context(), append([]string{"__complete"}, args...), streams, func(name string) string { return env[name] })
	if code != 0 {
		t.Errorf("%s: exit %d, %s", strings.Join(args, " "), code, errb)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, l := range strings.Split(errb.String(), "\n") {
		if l != "" && !strings.HasPrefix(l, "Completion ended with directive: ") {
			stderr += l + "\n"
		}
	}
	for _, l := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(l, "\t")
		words = append(words, word)
	}
	return words, lines[len(lines)-1], stderr
}

// TestCompletionOfADeadCluster: with a cluster that takes connections and never answers, no command keeps a shell
// waiting for longer than CompletionTime (and what it takes to close), and nothing is said.
func TestCompletionOfADeadCluster(t *testing.T) {
	addr := silent(t)
	env := map[string]string{"HOME": t.TempDir(), "KCTL_BOOTSTRAP_SERVER": addr, "KCTL_ZOOKEEPER": addr}
	var asks [][]string
	for _, path := range leaves() {
		asks = append(asks, append(slices.Clone(path), ""))
	}
	for _, words := range []string{
		"elect leader orders:0", "configs set topic/orders", "leader-and-isr set x:0 --leader", "reassign generate --drain", "consume x --group", "acls list --topic",
	} {
		asks = append(asks, append(strings.Fields(words), ""))
	}
	turns := make(chan struct{}, 12) // so many shells wait at the same time
	var wg sync.WaitGroup
	for _, args := range asks {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			began := time.Now()
			_, _, stderr := completions(t, env, append([]string{"--timeout", "20m"}, args...)...)
			// The bound has room for a busy machine; without CompletionTime it would be minutes, half of --timeout.
			if took := time.Since(began); took > 40*verb.CompletionTime {
				t.Errorf("%s: %s", strings.Join(args, " "), took)
			}
			if stderr != "" {
				t.Errorf("%s says %q", strings.Join(args, " "), stderr)
			}
		})
	}
	wg.Wait()
}

// TestCompletionWithoutFiles: a shell offers names of files only where a file is taken.
func TestCompletionWithoutFiles(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "KCTL_BOOTSTRAP_SERVER": "127.0.0.1:1"}
	files := []string{
		"context import", "docs man", "docs markdown", "dump checkpoint", "dump index", "dump segment", "dump snapshot", "dump timeindex", "dump txnindex",
		"leader-and-isr restore", "leftovers restore", "reassign execute", "reassign rollback", "reassign verify",
	}
	for _, path := range leaves() {
		_, directive, _ := completions(t, env, append(slices.Clone(path), "")...)
		name := strings.Join(path, " ")
		if wants := slices.Contains(files, name); wants != (directive == ":0") {
			t.Errorf("%s: directive %s", name, directive)
		}
	}
	for words, want := range map[string]string{
		"reassign generate --out": ":0", "acls create --from-file": ":0", "users set --password-file": ":0", "groups reset-offsets --expect": ":0",
		"cluster health --wait": ":4", "configs set --expect": ":4", "topics create --partitions": ":4", "--timeout": ":4", "--command-config": ":0",
	} {
		if _, directive, _ := completions(t, env, append(strings.Fields(words), "")...); directive != want {
			t.Errorf("%s: directive %s, want %s", words, directive, want)
		}
	}
}

// TestCompletionOfWords: words that need no cluster, and only those that begin with what was typed.
func TestCompletionOfWords(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "KCTL_BOOTSTRAP_SERVER": "127.0.0.1:1"}
	for typed, want := range map[string]string{
		"-o ":                          "table wide json yaml name",
		"elect preferred --via ":       "auto protocol zookeeper",
		"reassign execute --via ":      "auto api znode",
		"configs get --source ":        "protocol zookeeper",
		"users delete --mechanism ":    "SCRAM-SHA-256 SCRAM-SHA-512",
		"schema PartitionL":            "PartitionList",
		"configs set topi":             "topic/",
		"lab run stuck":                "stuck-transition",
		"topics cr":                    "create",
		"quotas set consumer_byte_rat": "consumer_byte_rate=",
	} {
		words, _, _ := completions(t, env, strings.Split(typed, " ")...)
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
