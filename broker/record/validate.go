package record

import (
	"fmt"
	"math"
)

// Check verifies one batch that somebody else made: CRC, record count against offset delta, codec,
// producer fields. It does no work per record. strict additionally demands what a producing client must
// send: as many records as offsets. Batches that went through compaction hold fewer.
func (b Batch) Check(strict bool) error {
	if len(b) < HeaderSize {
		return ErrIncomplete
	}
	if err := b.Verify(); err != nil {
		return err
	}
	delta, count := b.LastOffsetDelta(), b.Count()
	switch {
	case b.BaseOffset() < 0 || b.LastOffset() < b.BaseOffset() || b.LastOffset() == math.MaxInt64:
		return fmt.Errorf("offsets %d to delta %d: %w", b.BaseOffset(), delta, ErrInvalid)
	case count < 0 || int64(count) > int64(delta)+1:
		return fmt.Errorf("%d records with last offset delta %d: %w", count, delta, ErrInvalid)
	case strict && (count < 1 || int64(count) != int64(delta)+1):
		return fmt.Errorf("%d records with last offset delta %d: %w", count, delta, ErrInvalid)
	case b.Compression() > Zstd:
		return fmt.Errorf("codec %d: %w", b.Compression(), ErrUnsupportedCompression)
	case b.HasProducerID() && b.ProducerEpoch() < 0:
		return fmt.Errorf("producer id without epoch: %w", ErrInvalid)
	case strict && b.HasProducerID() && !b.IsControl() && b.BaseSequence() < 0:
		return fmt.Errorf("producer id without sequence: %w", ErrInvalid)
	case b.Compression() == None && int64(count)*minRecordBytes > int64(len(b)-HeaderSize):
		return fmt.Errorf("%d records in %d bytes: %w", count, len(b), ErrInvalid)
	}
	return nil
}

// CheckRecords unpacks the batch and verifies every record: lengths, offset deltas without holes and, with
// needKeys (a compacted topic), that every record has a key. limit bounds the unpacked bytes.
func (b Batch) CheckRecords(needKeys bool, limit int) error {
	it, err := b.Records(nil, limit)
	if err != nil {
		return err
	}
	return it.check(needKeys)
}

func (it *Iterator) check(needKeys bool) error {
	b := it.batch
	next := b.BaseOffset()
	for it.Next() {
		r := it.Record()
		if r.Offset != next {
			return fmt.Errorf("record at offset delta %d, expected %d: %w",
				r.Offset-b.BaseOffset(), next-b.BaseOffset(), ErrInvalid)
		}
		if needKeys && r.Key == nil && !b.IsControl() {
			return fmt.Errorf("record without key in a compacted topic: %w", ErrInvalid)
		}
		next++
	}
	return it.Err()
}
