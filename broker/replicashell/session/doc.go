// Package session keeps fetch sessions (KIP-227) and, for each, the queue of its partitions that have
// something new.
//
// Kafka's session saves bytes on the wire but looks at every partition of the session on every fetch. Here a
// partition that has nothing to give is parked: its Entry waits at the partition, and an append or a moved
// high watermark puts it back into the session's queue. A fetch of 10,000 idle partitions looks at none.
//
// A fetch without a session uses the same structure for the time of one request.
//
// # Protocol
//
// Cache.Begin resolves a request's session id and epoch, and applies its changed and forgotten partitions.
// (0, -1) is sessionless; (0, 0) asks for a new session; (id, 0) and (id, -1) end session id first; (id, n)
// is incremental and must carry the epoch after the last. Errors: 70 FETCH_SESSION_ID_NOT_FOUND, 71
// INVALID_FETCH_SESSION_EPOCH, 106 FETCH_SESSION_TOPIC_ID_ERROR (topic ids in one request, names in another).
// When all slots are taken, the session unused for the longest time is evicted if it has been idle for
// EvictAfter, or if the newcomer is a follower and it is not; otherwise the newcomer gets no session. Followers'
// sessions that were not used for EvictAfter go in any case.
//
// # Concurrency
//
// Cache is safe for concurrent use. Session.Mark may be called by anyone, also under a partition's lock; the
// rest of a Session belongs to the request that holds Session.Collect. The lock inside a session is a leaf.
//
// The package imports only zkutil/cluster and knows neither partitions nor logs.
package session
