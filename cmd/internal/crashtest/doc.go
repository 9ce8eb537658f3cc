// Package crashtest holds the crash rounds: brokers as processes, killed with SIGKILL at random moments
// while a client writes with acks=all, and the proof that every acknowledged record is still there. The
// tests run with `make crash` (build tag crash), since they take minutes.
package crashtest
