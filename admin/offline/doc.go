// Package offline reads the files of a broker's log directory as they lie on the disk: log segments, their
// indexes, producer snapshots, checkpoints and the files that name the directory and its topics. It needs no
// broker, writes nothing, and says of a damaged file what is good and where the damage begins.
//
// Files come in as io.ReaderAt or io.Reader; no file is opened here. Everything streams: memory is bounded by
// one record (MaxRecord) or one entry, whatever the size of the file. No bytes make it panic.
//
//	segment (magic 2, all numbers big-endian; KIP-98)
//	  base offset i64 | length i32 | leader epoch i32 | magic i8 | crc32c u32 | attributes i16 | last offset delta i32 |
//	  base timestamp i64 | max timestamp i64 | producer id i64 | producer epoch i16 | base sequence i32 | count i32 | records
//	segment (magic 0 and 1; KIP-32)
//	  offset i64 | size i32 | crc32 u32 | magic i8 | attributes i8 | timestamp i64 (1) | key len i32 | key | value len i32 | value
//	index      relative offset i32 | position i32
//	timeindex  timestamp i64 | relative offset i32
//	txnindex   version i16 | producer id i64 | first offset i64 | last offset i64 | last stable offset i64
//	snapshot   version i16 | crc32c u32 | count i32 | producer id i64 | epoch i16 | last sequence i32 | last offset i64 |
//	           offset delta i32 | timestamp i64 | coordinator epoch i32 | first offset of the open transaction i64
//	checkpoint text: version, number of lines, lines of "topic partition offset" or "epoch start-offset"
//
// Values are not safe for concurrent use.
package offline
