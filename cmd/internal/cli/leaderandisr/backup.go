package leaderandisr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/zkutil/cluster"
)

// backupKind is the kind of a backup; restore also reads what get prints with -o json.
const backupKind = "LeaderAndISRBackup"

// backup is the file that set --backup writes.
type backup struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	ClusterID  string       `json:"clusterId"`
	TakenAt    string       `json:"takenAt"`
	Items      []backupItem `json:"items"`
}

// backupItem is one partition: the row of get, the topic's id, and the bytes of the znode as they stood.
type backupItem struct {
	rows.LeaderAndISR
	TopicID string `json:"topicId,omitempty"`
	Znode   string `json:"znode,omitempty"`
}

// newFile refuses a file that exists: a backup is never overwritten.
func newFile(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return exit.Usagef("--backup %s: the file exists already; a backup is never overwritten", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("--backup: %v", err)
	}
	return nil
}

// writeBackup writes what the steps are about to change; nothing is changed when it cannot.
func writeBackup(path string, s *model.Snapshot, steps []admin.LeaderAndISRStep, now time.Time) error {
	if path == "" {
		return nil
	}
	b := backup{APIVersion: "kctl/v1", Kind: backupKind, ClusterID: s.ClusterID, TakenAt: now.UTC().Format(time.RFC3339)}
	ids := topicIDs(s)
	for i := range steps {
		n := &steps[i].Facts.State
		b.Items = append(b.Items, backupItem{LeaderAndISR: rows.OfStateNode(n, now), TopicID: ids[n.Topic], Znode: string(n.Raw)})
	}
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = file.Write(append(data, '\n'))
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		return &exit.Error{Code: exit.Failed, Msg: "nothing was changed: the backup cannot be written: " + err.Error()}
	}
	return nil
}

func topicIDs(s *model.Snapshot) map[string]string {
	ids := map[string]string{}
	for i := range s.Topics {
		if !s.Topics[i].ID.IsZero() {
			ids[s.Topics[i].Name] = s.Topics[i].ID.String()
		}
	}
	return ids
}

// saved is one partition of a backup as restore needs it.
type saved struct {
	tp      cluster.TopicPartition
	topicID string
	state   cluster.LeaderAndISR
}

// parseBackup reads a backup, or what get prints with -o json for one partition or for several.
func parseBackup(data []byte) (clusterID string, items []saved, err error) {
	type item struct {
		Topic       string             `json:"topic"`
		Partition   *int32             `json:"partition"`
		Leader      *int32             `json:"leader"`
		LeaderEpoch int32              `json:"leaderEpoch"`
		ISR         []cluster.BrokerID `json:"isr"`
		TopicID     string             `json:"topicId"`
	}
	var doc struct {
		Kind      string `json:"kind"`
		ClusterID string `json:"clusterId"`
		Items     []item `json:"items"`
		item
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return "", nil, err
	}
	switch doc.Kind {
	case backupKind, rows.LeaderAndISRKind.Name + "List":
	case rows.LeaderAndISRKind.Name:
		doc.Items = []item{doc.item}
	default:
		return "", nil, fmt.Errorf("kind is %q, not %s or what leader-and-isr get -o json prints", doc.Kind, backupKind)
	}
	seen := map[cluster.TopicPartition]bool{}
	for i, it := range doc.Items {
		if it.Partition == nil || it.Leader == nil {
			return "", nil, fmt.Errorf("item %d needs topic, partition, leader and isr", i)
		}
		tp := cluster.TopicPartition{Topic: it.Topic, Partition: *it.Partition}
		if err := plan.TopicName(tp.Topic); err != nil {
			return "", nil, fmt.Errorf("item %d: %w", i, err)
		}
		bad := func(b cluster.BrokerID) bool { return b < 0 }
		if tp.Partition < 0 || *it.Leader < -1 || len(it.ISR) == 0 || slices.ContainsFunc(it.ISR, bad) || seen[tp] {
			return "", nil, fmt.Errorf("item %d, %s:%d: the partition, the leader or the ISR is not valid, or it stands twice", i, tp.Topic, tp.Partition)
		}
		seen[tp] = true
		items = append(items, saved{tp, it.TopicID, cluster.LeaderAndISR{
			Leader: cluster.BrokerID(*it.Leader), LeaderEpoch: cluster.LeaderEpoch(it.LeaderEpoch), ISR: it.ISR,
		}})
	}
	if len(items) == 0 {
		return "", nil, errors.New("it has no partitions")
	}
	return doc.ClusterID, items, nil
}
