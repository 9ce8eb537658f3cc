package offline

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxBlock bounds one block of snappy, which is decompressed as a whole.
const maxBlock = 128 << 20

var errTooLarge = errors.New("larger than this program reads at once")

// decompress returns the uncompressed stream of a batch's records. close releases it.
func decompress(c Codec, magic int8, r io.Reader) (stream io.Reader, closer func(), err error) {
	closer = func() {}
	switch c {
	case None:
		return r, closer, nil
	case Gzip:
		stream, err = gzip.NewReader(r)
	case Snappy:
		stream = &snappyReader{r: bufio.NewReader(r)}
	case LZ4:
		if magic == 0 {
			r, err = fixLZ4(r)
		}
		stream = lz4.NewReader(r)
	case Zstd:
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecoderLowmem(true)); err == nil {
			stream, closer = d, d.Close
		}
	default:
		err = fmt.Errorf("compression %s is not known", c)
	}
	return stream, closer, err
}

// xerial is the head of the framing that Kafka's Java clients put around snappy blocks.
var xerial = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// snappyReader reads one raw block, or the blocks of the framing; one at a time.
type snappyReader struct {
	r      *bufio.Reader
	begun  bool
	framed bool
	block  []byte
	in     []byte
}

func (s *snappyReader) Read(p []byte) (int, error) {
	for len(s.block) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.block)
	s.block = s.block[n:]
	return n, nil
}

func (s *snappyReader) fill() error {
	if !s.begun {
		s.begun = true
		head, _ := s.r.Peek(len(xerial))
		if s.framed = bytes.Equal(head, xerial); s.framed {
			if _, err := s.r.Discard(len(xerial) + 8); err != nil { // and two version numbers
				return io.ErrUnexpectedEOF
			}
		} else {
			return s.decode(s.r)
		}
	}
	if !s.framed {
		return io.EOF
	}
	var length [4]byte
	if _, err := io.ReadFull(s.r, length[:]); err != nil {
		return err // io.EOF between blocks is the end
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxBlock {
		return fmt.Errorf("snappy block of %d bytes: %w", n, errTooLarge)
	}
	return s.decode(io.LimitReader(s.r, int64(n)))
}

func (s *snappyReader) decode(r io.Reader) error {
	b := bytes.NewBuffer(s.in[:0])
	if _, err := b.ReadFrom(io.LimitReader(r, maxBlock+1)); err != nil {
		return err
	}
	s.in = b.Bytes()
	n, err := s2.DecodedLen(s.in)
	if err != nil {
		return fmt.Errorf("snappy: %w", err)
	}
	if n > maxBlock || len(s.in) > maxBlock || n > 64*len(s.in) { // a copy of 64 bytes takes two or more
		return fmt.Errorf("snappy block of %d bytes: %w", n, errTooLarge)
	}
	if s.block, err = s2.Decode(nil, s.in); err != nil {
		return fmt.Errorf("snappy: %w", err)
	}
	return nil
}

// fixLZ4 replaces the header checksum of a frame: producers of magic 0 computed it over the frame's magic number
// as well (KAFKA-3160), which a right decoder refuses.
func fixLZ4(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	const sizeFlag = 1 << 3
	head, err := br.Peek(7)
	if err != nil {
		return br, fmt.Errorf("lz4: %w", io.ErrUnexpectedEOF)
	}
	n := 6
	if head[4]&sizeFlag != 0 {
		n += 8
	}
	fixed := make([]byte, n+1)
	if _, err := io.ReadFull(br, fixed); err != nil {
		return br, fmt.Errorf("lz4: %w", err)
	}
	fixed[n] = byte(xxh32(fixed[4:n]) >> 8)
	return io.MultiReader(bytes.NewReader(fixed), br), nil
}

// xxh32 is XXH32 with seed 0 of fewer than 16 bytes.
func xxh32(b []byte) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	h := uint32(p5) + uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
