// Package controller is the cluster's controller as a pure state machine: events in, effects out.
//
// It elects itself through ZooKeeper, loads the cluster, keeps every partition led by a live member of its
// ISR, creates and deletes topics, and tracks every decision until each replica confirmed it. It knows no
// clock, socket, disk, goroutine or log: time enters inside events, everything that leaves the process is an
// Effect, and each ZK and Send effect has exactly one answering event. The goroutines that run the effects
// are in broker/controllershell; the simulation runs the same core.
//
//	        SessionStarted, WatchFired, ZKDone, Answered, TimerFired, requests
//	                                  |
//	                                  v
//	standby --won /controller--> Controller.Step --> ZK, Send, ArmTimer, RaiseAlert, Reply, ...
//	   ^                              |
//	   +---- Resigned (fenced, session ended, /controller removed)
//
// Work is done in jobs, one at a time, as in Apache Kafka's controller event thread. A job is a chain of
// ZooKeeper rounds; what it decided is sent to the brokers when its writes were answered (decide, persist,
// publish). Every write is one multi that first checks the version of /controller_epoch; a mismatch there
// ends the role at once. A lost reply is read back, never blindly retried.
//
// Imports: the value types, znode codecs and ZooKeeper requests of zkutil, Kafka's message structs. A
// Controller is not safe for concurrent use. Sources: Detailed Replication Design V3; Apache Kafka 3.9 in
// ZooKeeper mode; KIP-380 (broker epochs), KIP-497 (AlterPartition), KIP-460 (elections), KIP-570.
package controller
