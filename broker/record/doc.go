// Package record reads, checks, changes in place and builds Kafka's record batches of format v2 (magic 2).
//
//	byte  0  base offset            int64   not under the CRC
//	      8  batch length           int32   bytes after this field
//	     12  partition leader epoch int32   not under the CRC
//	     16  magic                  int8    2
//	     17  CRC32C                 uint32  of all bytes from 21 on
//	     21  attributes             int16   0-2 codec, 3 timestamp type, 4 transactional, 5 control,
//	                                        6 base timestamp is a delete horizon
//	     23  last offset delta      int32
//	     27  base timestamp         int64   ms
//	     35  max timestamp          int64   ms
//	     43  producer id            int64   -1 none
//	     51  producer epoch         int16
//	     53  base sequence          int32
//	     57  record count           int32
//	     61  records, compressed as one block when the codec says so
//
// A Batch is a view on bytes that somebody else owns; nothing here copies a batch unless it says so. Bytes
// may be wrong in any way: parsing never panics and decompression never yields more than its limit.
// Old formats (magic 0 and 1) are refused with ErrUnsupportedFormat, as Kafka 4 does.
//
// Every function is safe for concurrent use on different batches; codecs are pooled inside.
package record
