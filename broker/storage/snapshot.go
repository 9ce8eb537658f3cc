package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"kctl/broker/record"
)

// Producer snapshot (<offset>.snapshot), version 1, big-endian:
//
//	[version int16 = 1][CRC32C uint32 of all that follows][entries int32]
//	each entry: [producer id int64][epoch int16][last sequence int32][last offset int64][offset delta int32]
//	            [timestamp int64][coordinator epoch int32][first offset of the open transaction int64]
//
// Apache Kafka writes one entry per producer, its last batch. We write up to batchesKept, oldest first: Kafka
// keeps the last entry of an id when it reads the file, and we can recognise retries of all of them after a
// restart.
const (
	snapshotVersion    = 1
	snapshotHeader     = 10
	snapshotEntryBytes = 46
)

func encodeSnapshot(entries []producer) []byte {
	buf := make([]byte, snapshotHeader, snapshotHeader+snapshotEntryBytes*len(entries)*2)
	n := 0
	for i := range entries {
		p := &entries[i]
		if p.n == 0 { // only markers so far
			buf = appendSnapshotEntry(buf, p, producerBatch{record.NoSequence, -1, 0, p.lastTimestamp})
			n++
		}
		for k := range p.n {
			buf = appendSnapshotEntry(buf, p, p.batches[k])
			n++
		}
	}
	binary.BigEndian.PutUint16(buf, snapshotVersion)
	binary.BigEndian.PutUint32(buf[6:], uint32(n))
	binary.BigEndian.PutUint32(buf[2:], crc32.Checksum(buf[6:], castagnoli))
	return buf
}

func appendSnapshotEntry(buf []byte, p *producer, b producerBatch) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(p.id))
	buf = binary.BigEndian.AppendUint16(buf, uint16(p.epoch))
	buf = binary.BigEndian.AppendUint32(buf, uint32(b.lastSeq))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.lastOffset))
	buf = binary.BigEndian.AppendUint32(buf, uint32(b.offsetDelta))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.timestamp))
	buf = binary.BigEndian.AppendUint32(buf, uint32(p.coordinatorEpoch))
	return binary.BigEndian.AppendUint64(buf, uint64(p.txnFirst))
}

// decodeSnapshot reads a snapshot; anything wrong with it is ErrMalformed.
func decodeSnapshot(data []byte) ([]producer, error) {
	if len(data) < snapshotHeader {
		return nil, fmt.Errorf("snapshot of %d bytes: %w", len(data), ErrMalformed)
	}
	if v := binary.BigEndian.Uint16(data); v != snapshotVersion {
		return nil, fmt.Errorf("snapshot version %d: %w", v, ErrMalformed)
	}
	if crc := binary.BigEndian.Uint32(data[2:]); crc != crc32.Checksum(data[6:], castagnoli) {
		return nil, fmt.Errorf("snapshot CRC: %w", ErrMalformed)
	}
	n := binary.BigEndian.Uint32(data[6:])
	rest := data[snapshotHeader:]
	if uint64(n)*snapshotEntryBytes != uint64(len(rest)) {
		return nil, fmt.Errorf("snapshot says %d entries in %d bytes: %w", n, len(rest), ErrMalformed)
	}
	var out []producer
	at := make(map[int64]int, n)
	for ; len(rest) > 0; rest = rest[snapshotEntryBytes:] {
		id := int64(binary.BigEndian.Uint64(rest))
		i, ok := at[id]
		if !ok {
			i = len(out)
			at[id] = i
			out = append(out, *newProducer(id))
		}
		if err := out[i].merge(rest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge takes one encoded entry, the newest so far of its producer.
func (p *producer) merge(e []byte) error {
	p.setEpoch(int16(binary.BigEndian.Uint16(e[8:])))
	b := producerBatch{
		lastSeq:     int32(binary.BigEndian.Uint32(e[10:])),
		lastOffset:  int64(binary.BigEndian.Uint64(e[14:])),
		offsetDelta: int32(binary.BigEndian.Uint32(e[22:])),
		timestamp:   int64(binary.BigEndian.Uint64(e[26:])),
	}
	p.lastTimestamp = b.timestamp
	p.coordinatorEpoch = int32(binary.BigEndian.Uint32(e[34:]))
	p.txnFirst = int64(binary.BigEndian.Uint64(e[38:]))
	if p.id < 0 || p.epoch < 0 || b.offsetDelta < 0 || b.lastSeq < record.NoSequence || p.txnFirst < -1 {
		return fmt.Errorf("snapshot entry of producer %d: %w", p.id, ErrMalformed)
	}
	if b.lastSeq != record.NoSequence || b.lastOffset >= 0 {
		p.push(b)
	}
	return nil
}
