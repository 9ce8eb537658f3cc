package plan

import "strings"

// protected are the znodes that brokers and controllers own, with the command that changes what they hold safely.
// A path belongs to the first entry that it equals or lies below.
var protected = []struct{ path, why string }{
	{"/brokers/ids", "brokers register themselves there; a wrong entry makes the controller believe that a broker lives or died"},
	{"/brokers/topics", "it says which replicas a partition has and who leads it: kctl leader-and-isr set, kctl elect and kctl topics change it with every check"},
	{"/brokers", "brokers and topics are found there"},
	{"/controller_epoch", "it fences controllers that were replaced; a lower number lets them write again"},
	{"/controller", "it is the lock of the active controller: kctl controller move has another one elected"},
	{"/cluster", "it is the identity of the cluster: brokers with another id do not start"},
	{"/admin/delete_topics", "a child there deletes a topic with its records: kctl topics delete does it with a plan"},
	{"/config", "brokers read it only after a notification: kctl configs set writes both"},
	{"/kafka-acl", "brokers read it only after a notification"},
	{"/kafka-acl-extended", "brokers read it only after a notification"},
	{"/latest_producer_id_block", "a number given twice makes two producers look like one"},
	{"/isr_change_notification", "brokers tell the controller of changes there"},
	{"/log_dir_event_notification", "brokers tell the controller of failed log directories there"},
	{"/delegation_token", "it holds credentials"},
	{"/feature", "it decides which features brokers use"},
	{"/migration", "it is the state of a migration to KRaft"},
	{"/zookeeper", "it belongs to ZooKeeper itself"},
}

// ZnodeDanger says why a znode must not be written by hand; empty when it may. Where the connection has no chroot
// the layout is recognised below another path too.
func ZnodeDanger(path string) string {
	if path == "/" {
		return "it is the root of the tree"
	}
	for _, p := range protected {
		if path == p.path || strings.HasPrefix(path, p.path+"/") {
			return p.why
		}
	}
	for _, p := range protected[:7] {
		if i := strings.Index(path, p.path); i > 0 && (len(path) == i+len(p.path) || path[i+len(p.path)] == '/') {
			return p.why
		}
	}
	return ""
}
