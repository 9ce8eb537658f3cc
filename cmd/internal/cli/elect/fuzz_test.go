package elect

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzElectionFile: a file of kafka-leader-election.sh, or what someone took for one, gives partitions or an error.
func FuzzElectionFile(f *testing.F) {
	for _, s := range []string{`{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}`, `{"partitions":[]}`, `{"partitions":[{"topic":"t"}]}`,
		`{"partitions":[{"topic":"a:1,b","partition":-1}]}`, `[]`, `null`, ``, `{"partitions":null}`} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "election.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		targets, err := readElectionFile(path, nil)
		if err != nil {
			return
		}
		if len(targets) == 0 {
			t.Fatalf("%q gives no partition and no error", data)
		}
		for _, target := range targets {
			if len(target.Partitions) == 0 {
				t.Fatalf("%q gives all partitions of %s", data, target.Topic)
			}
		}
	})
}
