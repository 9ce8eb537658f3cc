// Package zkdata reads the data directory of a ZooKeeper server that does not run: Apache ZooKeeper's (snapshots and
// transaction logs in jute, plain, gzip or snappy) and that of the embedded server (zkutil/zkserver). Open builds the
// tree as the server would after a start and serves it as a read-only zkutil.Client, so that a post-mortem uses the
// same code as a living cluster. Nothing is written, no lock is taken, and a damaged end of a log is passed over: the
// Report says what was used and what is missing.
//
// It keeps the whole tree in memory, as a server does. It may import zkutil, zkop and jute, but not the embedded
// server: that one belongs to the engine. A Client may be used by several goroutines.
//
// Apache ZooKeeper (numbers big-endian; buffers and strings with an i32 length):
//
//	snapshot.<zxid>  "ZKSN" version i32 dbid i64 | sessions | ACLs | nodes, ended by the path "/" | adler32 i64 "/" | …
//	log.<zxid>       "ZKLG" version i32 dbid i64 | { adler32 i64 | length i32 | transaction | 'B' } | zeros
//
// A snapshot is taken while changes go on: those behind its zxid may be in it already, and are applied once more.
// For the embedded server's files see zkutil/zkserver/DESIGN.md.
package zkdata
