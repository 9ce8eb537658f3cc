package storage

import (
	"strings"
	"testing"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

func TestStrayIsKeptAndNotOpened(t *testing.T) {
	fs := vfs.NewMem(func() int64 { return 1 })
	tp := cluster.TopicPartition{Topic: "a", Partition: 3}
	for life := range 3 {
		m, err := OpenManager(fs, []string{"/d"}, ManagerOptions{BrokerID: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Log(tp); ok {
			t.Fatalf("life %d: the stray log was opened", life)
		}
		if life == 0 {
			if _, err := m.Create(tp, cluster.TopicID{1}, DefaultConfig()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := m.Stray(tp); err != nil {
					t.Fatal(err)
				}
			}
		}
		strays := 0
		entries, err := fs.List("/d")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name, "a-3.") && strings.HasSuffix(e.Name, "-stray") {
				strays++
			}
		}
		if strays != 1 {
			t.Fatalf("life %d: %d stray folders", life, strays)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
