// Package brokertest runs a whole cluster inside a test: the embedded ZooKeeper and real brokers on free ports
// of 127.0.0.1, with everything under the test's temporary folder. Clients are franz-go's.
//
// A Cluster belongs to one test; Start registers its clean-up. Kill is a crash as far as that is possible inside a
// process, Stop an orderly end, and Restart brings a broker back with the same data and the same port.
package brokertest
