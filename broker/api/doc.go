// Package api answers the requests of Kafka's protocol, one file per API key. Each file states the key and the
// versions that it serves; the table of these statements is what ApiVersions answers, so it cannot promise what
// is not served.
//
// A request's header is checked against the table before anything is decoded: an unknown key or version closes
// the connection, as in Apache Kafka, except that an unknown version of ApiVersions is answered in version 0
// with UNSUPPORTED_VERSION (KIP-511). Bytes that do not decode close the connection too. Handlers run in the
// connection's goroutine; Produce answers later when it waits for replicas, everything else blocks its own
// connection only.
//
// Frames are given back to their pool by Produce and Fetch alone: whatever other requests decode may be kept by
// those who get it. Fetch answers are written by this package around ranges of log files (storage.Slice);
// everything else is encoded by kmsg.
//
// The dependencies are small interfaces of this package; broker hands them in.
package api
