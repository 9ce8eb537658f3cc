// Package logexec carries out the log effects of a replica.Partition against a storage.Log and returns the
// answering event. It starts no goroutine and decides nothing: the broker's shell and the simulation run the
// same code, so what is simulated is what is shipped.
//
// It imports broker/replica, broker/storage and zkutil/cluster. Functions are safe to call for different logs
// at the same time; calls for one partition are serialised by the partition's owner, as its core's are.
package logexec
