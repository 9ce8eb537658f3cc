package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression is a codec number as in a batch's attributes.
type Compression int8

// The codecs.
const (
	None Compression = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String returns Kafka's name of the codec.
func (c Compression) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec-%d", int8(c))
}

// ParseCompression reads a topic's compression.type; ok is false for producer and for unknown names.
func ParseCompression(name string) (c Compression, ok bool) {
	switch name {
	case "none", "uncompressed":
		return None, true
	case "gzip":
		return Gzip, true
	case "snappy":
		return Snappy, true
	case "lz4":
		return LZ4, true
	case "zstd":
		return Zstd, true
	}
	return None, false
}

// zstdWindowMax bounds the memory one zstd decoder takes; producers up to level 20 stay below it.
const zstdWindowMax = 32 << 20

var (
	gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}
	lz4Readers  = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	lz4Writers  = sync.Pool{New: func() any { return newLZ4Writer() }}
	zstdReaders = sync.Pool{New: func() any { return newZstdReader() }}
	zstdWriters = sync.Pool{New: func() any { return newZstdWriter() }}
)

func newLZ4Writer() *lz4.Writer {
	w := lz4.NewWriter(io.Discard)
	// As Java's producer: independent 64 KiB blocks. The option can only fail after a write.
	_ = w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false))
	return w
}

func newZstdReader() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindowMax))
	if err != nil {
		panic(err) // constant options
	}
	return r
}

func newZstdWriter() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // constant options
	}
	return w
}

// Decompress appends what src unpacks to to dst[:0] and returns it. More than limit bytes give ErrTooLarge,
// having allocated little more than limit; damaged input gives ErrCorrupt. None returns src itself.
func Decompress(c Compression, dst, src []byte, limit int) ([]byte, error) {
	var out []byte
	var err error
	switch c {
	case None:
		if len(src) > limit {
			return nil, ErrTooLarge
		}
		return src, nil
	case Gzip:
		out, err = gunzip(dst, src, limit)
	case Snappy:
		out, err = unsnappy(dst, src, limit)
	case LZ4:
		r := lz4Readers.Get().(*lz4.Reader)
		r.Reset(bytes.NewReader(src))
		out, err = readLimited(r, dst, len(src), limit)
		r.Reset(nil)
		lz4Readers.Put(r)
	case Zstd:
		r := zstdReaders.Get().(*zstd.Decoder)
		if err = r.Reset(bytes.NewReader(src)); err == nil {
			out, err = readLimited(r, dst, len(src), limit)
		}
		_ = r.Reset(nil)
		zstdReaders.Put(r)
	default:
		return nil, ErrUnsupportedCompression
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("%s: %v: %w", c, err, ErrCorrupt)
	}
	return out, err
}

func gunzip(dst, src []byte, limit int) ([]byte, error) {
	r := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(r)
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return nil, err
	}
	return readLimited(r, dst, len(src), limit)
}

// readLimited reads all of r into dst[:0], growing it step by step so that a lying input costs at most twice
// what it really holds.
func readLimited(r io.Reader, dst []byte, hint, limit int) ([]byte, error) {
	dst = dst[:0]
	if cap(dst) == 0 {
		dst = make([]byte, 0, min(max(4*hint, 512), limit+1))
	}
	for {
		if len(dst) == cap(dst) {
			grown := make([]byte, len(dst), min(2*cap(dst)+512, limit+1))
			copy(grown, dst)
			dst = grown
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return nil, ErrTooLarge
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeaderBytes = 16

// unsnappy reads both the framing of Java's SnappyOutputStream (xerial) and a raw snappy block.
func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	size, err := snappySize(src, limit)
	if err != nil {
		return nil, err
	}
	if cap(dst) < size || dst == nil {
		dst = make([]byte, 0, size)
	}
	return xerial.DecodeCapped(dst[:0:cap(dst)], src)
}

// snappySize adds up the lengths that the blocks declare.
func snappySize(src []byte, limit int) (int, error) {
	if !bytes.HasPrefix(src, xerialMagic) {
		return snappyBlockSize(src, limit)
	}
	if len(src) < xerialHeaderBytes {
		return 0, io.ErrUnexpectedEOF
	}
	total := 0
	for rest := src[xerialHeaderBytes:]; len(rest) > 0; {
		if len(rest) < 4 {
			return 0, io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(rest)
		if uint64(n) > uint64(len(rest)-4) {
			return 0, io.ErrUnexpectedEOF
		}
		size, err := snappyBlockSize(rest[4:4+n], limit-total)
		if err != nil {
			return 0, err
		}
		total += size
		rest = rest[4+n:]
	}
	return total, nil
}

func snappyBlockSize(block []byte, limit int) (int, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return 0, err
	}
	if n > limit {
		return 0, ErrTooLarge
	}
	// One byte of snappy makes at most 64; a longer claim is a lie and must not be allocated for.
	if n > 64*len(block) {
		return 0, s2.ErrCorrupt
	}
	return n, nil
}

// Compress appends the packed form of src to dst and returns it.
func Compress(c Compression, dst, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		return compressStream(w, dst, src)
	case Snappy:
		// The encoder writes its header only at the start of a slice; when it had room the append copies
		// the bytes onto themselves.
		n := len(dst)
		return append(dst, xerial.Encode(dst[n:n], src)...), nil
	case LZ4:
		w := lz4Writers.Get().(*lz4.Writer)
		defer lz4Writers.Put(w)
		return compressStream(w, dst, src)
	case Zstd:
		w := zstdWriters.Get().(*zstd.Encoder)
		defer zstdWriters.Put(w)
		return w.EncodeAll(src, dst), nil
	}
	return nil, ErrUnsupportedCompression
}

type resetWriter interface {
	io.WriteCloser
	Reset(io.Writer)
}

func compressStream(w resetWriter, dst, src []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	w.Reset(buf)
	if _, err := w.Write(src); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return buf.Bytes(), nil
}
