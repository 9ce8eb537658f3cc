package plan

import "testing"

func TestZnodeDanger(t *testing.T) {
	for path, dangerous := range map[string]bool{
		"/": true, "/brokers": true, "/brokers/topics/a/partitions/0/state": true, "/controller": true, "/controller_epoch": true,
		"/cluster/id": true, "/config/topics/a": true, "/admin/delete_topics/a": true, "/kafka/brokers/topics/a": true, "/kafka/controller": true,
		"/zookeeper/quota": true, "/kafka-acl/Topic/a": true,
		"/admin/reassign_partitions": false, "/admin/preferred_replica_election": false, "/app": false, "/app/config": false,
		"/controllers": false, "/app/controller_epoch2": false, "/consumers/g": false,
	} {
		if got := ZnodeDanger(path) != ""; got != dangerous {
			t.Errorf("%s: %v", path, got)
		}
	}
}
