// Package model holds the operator's picture of a cluster as plain values: brokers, topics, partitions,
// leaderAndISR nodes, replica positions and transitions, each with the source it was read from.
//
// It is shared by the reader (package admin), the pure judgement (admin/check, admin/plan) and the
// presentation (admin/rows), so that the command line and the terminal interface can never disagree.
// It does no I/O and imports only the value types of zkutil/cluster. Values are not safe for concurrent
// change; once handed out by admin nobody changes them any more.
package model
