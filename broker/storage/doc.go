// Package storage keeps partitions' logs on disk in Apache Kafka's format, to the byte: segments, offset and
// time indexes, leader epochs, producer state, checkpoints and the marks of a log directory. An Apache Kafka
// 3.9 broker can open what this package wrote and the other way round. DESIGN.md beside this file draws the
// formats, lists the crash cases and gives the order of locks.
//
// Manager owns the log directories; Log is one partition's replica. One goroutine at a time may change a Log
// (a mutex inside sees to it), any number may read it at the same time: LogStartOffset, LogEndOffset and Read
// take no lock that an append holds across I/O. Nothing here starts a goroutine that outlives a call; the
// owner calls Manager.Housekeep from time to time.
//
// The package imports broker/vfs, broker/record, broker/obs and zkutil/cluster; the disk is reached through
// vfs.FS alone, so crashes, full disks and I/O errors are test inputs.
package storage
