// Package replica is the state machine of one replica of one partition: who leads, which replicas are in
// sync, how far the log is committed, and what a follower must cut before it may fetch.
//
// It is pure. Partition.Step takes one Event and appends the Effects that the caller must carry out, in the
// order given; the package knows no clock, socket, disk, goroutine or log, and imports none. Time enters as
// the At field of events. The same code therefore runs in the broker (broker/replicashell) and in the
// simulation (broker/sim), and every rule is told by a script under testdata.
//
// # Duties of the caller
//
//  1. Calls of one Partition are serialised. Reading methods (CheckFetch and its like) count as calls.
//  2. Effects are carried out in order. Those marked "answered by" leave the process or touch the disk; each
//     has exactly one answering event, which is stepped before the log is used for anything else. Log effects
//     are run by broker/replica/logexec, which returns the answering event.
//  3. The leader's append is: CheckProduce, append to the log, Step(Appended), in one critical section. The
//     follower's is: AcceptsFetch, append, Step(FetchAnswered), likewise. After StopFetching nothing from
//     the old leader may be appended (V3 point C.6); AcceptsFetch refuses it.
//  4. A write to ZooKeeper whose outcome is unknown is reported as Unknown, never retried by the caller. The
//     core asks to read back (ReadState) and decides.
//
// # Rules and their sources
//
//   - LeaderAndISR is applied by leader epoch: higher wins, equal is answered as done (so a resend confirms),
//     lower is refused; any order and any number of deliveries end in the same state (V3 C.2 to C.10).
//   - The high watermark of the leader is the smallest log end of the maximal ISR and of followers that are
//     about to join; it never falls and does not advance while the ISR is below min.insync.replicas
//     (V3 G.4, Kafka 3.9). The maximal ISR is the committed one, plus what a write in flight would add.
//   - An ISR change is used only after its conditional write was confirmed (V3 G.8); while one is in flight
//     no second one is written (KAFKA-12686, KAFKA-13091).
//   - A refused or unknown write is read back; if the znode holds what was written, it is adopted (KAFKA-1382).
//     If another decision is there, the leader stays leader but leaves the ISR alone until it is told.
//   - Truncation goes by leader epochs (KIP-101, KIP-279, Fetch v12), never by the high watermark, which is
//     what V3 point C.9 asked for and what lost data.
package replica
