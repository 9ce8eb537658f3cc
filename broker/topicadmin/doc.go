// Package topicadmin creates, deletes and enlarges topics by writing the nodes that Apache Kafka writes in
// ZooKeeper mode, and chooses the brokers of new replicas.
//
// Creation writes /config/topics/<t>, then /brokers/topics/<t>; the controller sees the new child and makes
// partitions and state. Deletion writes /admin/delete_topics/<t>. New partitions are a conditional write of the
// topic node. No write is repeated blindly: when an answer is lost the node is read back.
//
// Assignment is pure; its random start is an argument. Errors that a client caused wrap a *kerr.Error and
// carry a sentence for it. Admin is safe for concurrent use.
package topicadmin
