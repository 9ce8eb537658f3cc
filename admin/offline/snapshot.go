package offline

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// ProducerState is one producer of a producer snapshot.
type ProducerState struct {
	ProducerID       int64
	ProducerEpoch    int16
	LastSequence     int32
	LastOffset       int64
	OffsetDelta      int32 // the last batch has LastOffset-OffsetDelta to LastOffset
	Timestamp        int64
	CoordinatorEpoch int32
	TxnFirstOffset   int64 // of the open transaction, -1: none
}

const (
	snapshotHead       = 2 + 4 + 4
	snapshotEntryBytes = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
)

// ProducerSnapshot reads a producer snapshot (NNN.snapshot beside a segment) and hands each producer to fn. The
// checksum covers the whole file and is known at its end only.
func ProducerSnapshot(r io.Reader, size int64, fn func(*ProducerState) error) (*IndexReport, error) {
	report := &IndexReport{Size: size}
	bad := func(at int64, cause string) (*IndexReport, error) {
		report.Damage = append(report.Damage, Damage{Position: at, Length: size - at, Offset: -1, Cause: cause})
		return report, nil
	}
	if size < snapshotHead {
		return bad(0, fmt.Sprintf("%d bytes are less than the head of a producer snapshot", size))
	}
	in := bufio.NewReaderSize(r, 64<<10)
	var b [snapshotEntryBytes]byte
	if _, err := io.ReadFull(in, b[:snapshotHead]); err != nil {
		return report, noEOF(err)
	}
	be := binary.BigEndian
	version, stored, count := int16(be.Uint16(b[:])), be.Uint32(b[2:]), int64(int32(be.Uint32(b[6:])))
	if version != 1 {
		return bad(0, fmt.Sprintf("version %d is not known", version))
	}
	sum := crc32.Update(0, castagnoli, b[6:snapshotHead])
	whole := (size - snapshotHead) / snapshotEntryBytes
	at := int64(snapshotHead)
	for range min(max(count, 0), whole) {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return report, noEOF(err)
		}
		sum = crc32.Update(sum, castagnoli, b[:])
		at += snapshotEntryBytes
		report.Entries++
		if err := fn(producerState(b[:])); err != nil {
			return report, err
		}
	}
	switch {
	case count < 0 || count > whole:
		return bad(at, fmt.Sprintf("it promises %d producers and has room for %d", count, whole))
	case at != size:
		return bad(at, fmt.Sprintf("%d bytes follow the last of %d producers", size-at, count))
	case sum != stored:
		return bad(0, fmt.Sprintf("the checksum is 0x%08x, the bytes have 0x%08x", stored, sum))
	}
	return report, nil
}

func producerState(b []byte) *ProducerState {
	be := binary.BigEndian
	return &ProducerState{
		ProducerID: int64(be.Uint64(b)), ProducerEpoch: int16(be.Uint16(b[8:])), LastSequence: int32(be.Uint32(b[10:])),
		LastOffset: int64(be.Uint64(b[14:])), OffsetDelta: int32(be.Uint32(b[22:])), Timestamp: int64(be.Uint64(b[26:])),
		CoordinatorEpoch: int32(be.Uint32(b[34:])), TxnFirstOffset: int64(be.Uint64(b[38:])),
	}
}
