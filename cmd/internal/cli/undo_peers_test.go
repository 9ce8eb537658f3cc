//go:build peers

package cli_test

import (
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// TestPeerUndoLooksFirst: on Apache Kafka the way back of a SCRAM user and of a topic holds only while they are what the
// change left.
func TestPeerUndoLooksFirst(t *testing.T) {
	k := changingPeer(t)
	const user = "kctl-undo"
	k.env["KCTL_TEST_PASSWORD"] = "secret"
	t.Cleanup(func() { k.run("users", "delete", user, "--yes") })
	k.run("users", "set", user, "--password-env", "KCTL_TEST_PASSWORD", "--yes").want(exit.OK, "done", "will set")
	first := k.last()
	k.run("users", "set", user, "--password-env", "KCTL_TEST_PASSWORD", "--mechanism", "SCRAM-SHA-512", "--iterations", "9000", "--yes").want(exit.OK, "replace", "will set")
	k.run("history", "undo", first, "--yes").want(exit.Failed, "", "have 9000 iterations, expected were 8192; nothing was changed")
	k.run("history", "undo", k.last(), "--yes").want(exit.Failed, "", "the password before is not known")
	k.run("users", "delete", user, "--yes").want(exit.OK, "done", "will delete")
	k.run("history", "undo", first, "--yes").want(exit.Failed, "", "no SCRAM credentials")
	k.run("users", "set", user, "--password-env", "KCTL_TEST_PASSWORD", "--yes").want(exit.OK, "done", "will set")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "done", "taking back")

	topic := peerTopic(t, k, "1")
	made := k.last()
	k.in = "one record\n"
	k.run("produce", topic).want(exit.OK, "", "1 records to")
	k.run("history", "undo", made, "--yes").want(exit.Failed, "", "1 records were written to topic")
}
