// Package cluster holds the value types that every layer of the product shares: broker, topic and
// partition identities, the epochs that fence them, and LeaderAndISR, the decision that the controller
// publishes for each partition.
//
// It imports nothing of the product and nothing that touches a clock, a disk or a socket, so the pure
// cores (broker/replica, broker/controller) and the operator's tools can both stand on it. All types are
// plain values; none is safe for concurrent mutation, all are safe to copy (Clone where they hold slices).
package cluster
