// Package proctest holds the tests that need brokers as processes of their own: crash rounds, where brokers
// are killed with SIGKILL while a client writes with acks=all and every acknowledged record must still be
// there, and the scale test of a cluster with many topics. They take minutes and carry the build tag proc;
// `make crash`, `make faults` and `make scale` run them.
package proctest
