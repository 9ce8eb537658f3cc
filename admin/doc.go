// Package admin reads and changes a cluster the way an operator does: through Kafka's wire protocol and
// through ZooKeeper, whichever is reachable, and it says of every figure where it was read.
//
// A Client is made by Open, which checks its configuration and contacts nobody; connections are made when
// a method needs them. With bootstrap addresses only, everything the protocol can tell is available; with a
// ZooKeeper address only, the brokers are found there. An answer that lacks a part is still an answer: the
// missing parts are listed as model.Problem (a dead broker is a row with its error).
//
// Connections are franz-go's (kgo). Requests to single brokers ask each replica for its own log end offset,
// high watermark and leader epoch, which no cluster-wide API shows.
//
// Errors are *Error with a Kind, from which the command line derives its exit code. A Client may be used by
// several goroutines. It imports zkutil and the pure packages below admin, never broker.
package admin
