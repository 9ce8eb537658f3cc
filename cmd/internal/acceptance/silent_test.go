package acceptance

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kctl/admin/kafkatest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// local are commands that contact nobody, or for which a silent cluster is no case of their own.
var local = map[string]string{
	"context add": "", "context delete": "", "context import": "", "context list": "", "context rename": "", "context set": "", "context show": "", "context use": "",
	"docs man": "", "docs markdown": "", "dump checkpoint": "", "dump index": "", "dump segment": "", "dump snapshot": "", "dump timeindex": "", "dump txnindex": "",
	"history": "", "history show": "", "schema": "", "version": "",
	"lab list":          "without ZooKeeper it shows what it knows by itself",
	"history undo":      "it runs one of the others",
	"leftovers restore": "it reads its file first, which names what is asked",
	"tui":               "it shows the failure and tries again",
}

// readingArguments are arguments with which commands that change nothing, and take any, contact the cluster.
var readingArguments = map[string]string{
	"brokers describe": "1", "configs get": "topic/a", "consume": "a", "groups describe": "g", "leader-and-isr get": "a", "quotas describe": "--user a",
	"reassign generate": "--drain 1", "topics describe": "a", "transactions describe": "x", "users describe": "a",
	"zk get": "/a", "zk stat": "/a", "zk ls": "/", "zk tree": "/", "zk watch": "/a",
}

// TestSilentCluster: with servers that take connections and never say anything (suspended, or hanging on a disk) every
// command ends soon behind its --timeout, with exit 5 and an error that names the address, and prints nothing else.
func TestSilentCluster(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.EachConn(t, ln, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	s := silentCluster{addr: ln.Addr().String(), home: t.TempDir(), turns: make(chan struct{}, 24)}
	arguments := changingArguments(t, s.home)
	var wg sync.WaitGroup
	for _, c := range leaves() {
		name := strings.TrimPrefix(c.CommandPath(), "kctl ")
		if _, ok := local[name]; ok {
			continue
		}
		args := append(strings.Fields(name), strings.Fields(arguments[name]+readingArguments[name])...)
		if c.Flags().Lookup("yes") != nil {
			args = append(args, "--yes")
		}
		for _, where := range [][]string{{"-b", s.addr}, {"-z", s.addr}, {"-b", s.addr, "-z", s.addr}} {
			wg.Go(func() { s.ask(t, slices.Concat(args, where)) })
		}
	}
	for _, line := range []string{"cluster health --until-healthy --wait 1s", "cluster health --watch --wait 1s"} { // never seen healthy, and never seen
		wg.Go(func() { s.ask(t, append(strings.Fields(line), "-b", s.addr)) })
	}
	wg.Wait()
}

type silentCluster struct {
	addr, home string
	turns      chan struct{} // so many commands wait at the same time
}

func (s silentCluster) ask(t *testing.T, args []string) {
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a command that still runs then is interrupted, and shows it
	defer cancel()
	streams, out, errb := iostreams.Test("")
	env := map[string]string{"HOME": s.home}
	code := cli.Run(ctx, append(args, "--timeout", "1s"), streams, func(name string) string { return env[name] })
	said := errb.String()
	if code == 2 && !slices.Contains(args, "-z") && strings.Contains(said, "needs ZooKeeper") {
		return
	}
	if ctx.Err() != nil {
		t.Errorf("kctl %q ran for a minute", args)
	}
	if code != 5 || out.Len() > 0 || !strings.Contains(said, s.addr) {
		t.Errorf("kctl %q: exit %d\n%s%s", args, code, out, said)
	}
}
