// Package server is the network side of a broker: listeners, connections, request frames and the order of
// answers. It knows nothing of what a request means; a Handler does.
//
// Frames, both ways:
//
//	+-----------+---------+---------+----------------+----------------------------+
//	| size int32| key i16 | ver i16 | correlation i32| client id, [tags], body    |   request
//	+-----------+---------+---------+----------------+----------------------------+
//	| size int32| correlation i32   | [tags], body                                |   answer
//	+-----------+-------------------+---------------------------------------------+
//
// One goroutine per connection reads a frame, calls the Handler and goes on. A Handler that cannot answer yet
// (produce with acks=all) returns without an answer and gives it later from any goroutine; answers leave in the
// order of the requests through a bounded queue, and while that is full the connection is not read. A writer
// goroutine exists only while an answer given elsewhere is being sent, so an idle connection costs one
// goroutine and a buffer of half a KiB.
//
// Sizes are checked before anything is allocated: a frame smaller than its header or larger than the limit
// closes the connection, and memory for a frame grows with the bytes that arrive, not with the size that was
// claimed.
package server
