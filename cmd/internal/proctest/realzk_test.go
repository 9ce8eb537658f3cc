//go:build proc && peers

package proctest

import (
	"testing"

	"kctl/zkutil/zktest/realzk"
)

// TestRoundsRealZooKeeper: the same rounds over a real ensemble of three ZooKeeper servers, with a chroot.
func TestRoundsRealZooKeeper(t *testing.T) {
	jars, err := realzk.JarsFromEnv()
	must(t, err)
	ensemble, err := realzk.Start(t.Context(), realzk.Options{Jars: jars, Dir: t.TempDir(), Servers: 3})
	must(t, err)
	t.Cleanup(func() {
		if err := ensemble.Close(); err != nil {
			t.Errorf("stop the ensemble: %v", err)
		}
	})
	runRounds(t, ensemble.ConnectString("/crash"))
}
