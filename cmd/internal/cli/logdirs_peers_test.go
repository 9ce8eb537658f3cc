//go:build peers

package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// TestPeerLogDirs: directories of Apache Kafka brokers, and with two of them per broker a move there and back.
func TestPeerLogDirs(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "1:2,2:3")
	k.in = strings.Repeat(strings.Repeat("x", 1000)+"\n", 2000)
	k.until(exit.OK, "produce", topic, "--acks", "all")
	k.in = ""
	k.run("log-dirs", "describe", "--topic", topic).want(exit.OK, "online", "")
	var list struct {
		Items []struct {
			Broker   int
			Dir      string
			Total    *int64 `json:"totalBytes"`
			Replicas []struct{ SizeBytes int64 }
		}
	}
	k.until(exit.OK, "log-dirs", "describe", "--broker", "2", "--topic", topic, "-o", "json")
	if err := json.Unmarshal(k.out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	replicas := 0
	for _, d := range list.Items {
		replicas += len(d.Replicas)
		if d.Broker != 2 || d.Total == nil || *d.Total <= 0 {
			t.Errorf("%+v", d)
		}
	}
	if replicas != 2 {
		t.Errorf("broker 2 has %d replicas, want 2: %s", replicas, k.out)
	}
	k.run("log-dirs", "describe", "--broker", "2,99").want(exit.Partial, "not registered", "broker 99")
	k.run("log-dirs", "move", topic+":0", "--broker", "2", "--to", "/nowhere", "--yes").want(exit.Usage, "", "has no log directory /nowhere")
	if len(list.Items) < 2 {
		t.Log("the brokers have one log directory each: moves need two")
		return
	}
	for _, d := range list.Items {
		k.until(exit.OK, "log-dirs", "move", topic, "--broker", "2", "--to", d.Dir, "--yes", "--wait", "60s")
		k.run("log-dirs", "describe", "--replicas", "--broker", "2", "--topic", topic, "--no-headers")
		if n := strings.Count(k.out.String(), " "+d.Dir+" "); n != 2 {
			t.Errorf("%d replicas in %s, want 2:\n%s", n, d.Dir, k.out)
		}
	}
	k.until(exit.OK, "consume", topic, "--from-beginning", "--max-messages", "2000", "-f", "%o\n")
	if n := strings.Count(k.out.String(), "\n"); n != 2000 {
		t.Errorf("%d records after the moves, want 2000", n)
	}
}
