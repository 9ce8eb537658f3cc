//go:build peers

package admin_test

import (
	"testing"

	"kctl/admin"
)

// TestPeersControllerOfKRaft: the controller is the same with every question. Brokers of KRaft mode name any of them in
// Metadata. In ZooKeeper mode the quorum is not asked.
func TestPeersControllerOfKRaft(t *testing.T) {
	c := peer(t, true, false)
	kraft, err := c.IsKRaft(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Snapshot(t.Context(), admin.SnapshotOptions{NoTopics: true, Controller: true})
	if err != nil {
		t.Fatal(err)
	}
	if first.Controller.ID < 0 || first.Controller.Quorum != (kraft && !c.HasZooKeeper()) {
		t.Fatalf("KRaft %v: %+v", kraft, first.Controller)
	}
	for range 10 {
		s, err := c.Snapshot(t.Context(), admin.SnapshotOptions{NoTopics: true, Controller: true})
		if err != nil || s.Controller.ID != first.Controller.ID {
			t.Fatalf("%+v, then %+v: %v", first.Controller, s.Controller, err)
		}
	}
}
