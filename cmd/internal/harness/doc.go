// Package harness runs a cluster as separate processes, so that a broker can be killed with SIGKILL as in
// real life: one ZooKeeper (embedded server or an address given), N brokers on loopback ports, each with its
// own data folder and log file. The demo, the crash rounds and the benchmarks stand on it.
//
// It knows only the kbroker command line, never the engine's packages. A Cluster is owned by one goroutine;
// Broker methods may be called from others.
package harness
