package offline

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

var be = binary.BigEndian

// compressed returns b in the given codec, as a producer writes it.
func compressed(t testing.TB, c Codec, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch c {
	case Gzip:
		w := gzip.NewWriter(&out)
		_, err = w.Write(b)
		w.Close()
	case Snappy:
		return s2.EncodeSnappy(nil, b)
	case LZ4:
		w := lz4.NewWriter(&out)
		_, err = w.Write(b)
		w.Close()
	case Zstd:
		w, zerr := zstd.NewWriter(&out)
		if zerr != nil {
			t.Fatal(zerr)
		}
		_, err = w.Write(b)
		w.Close()
	default:
		return b
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func varBytes(b, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(b, -1)
	}
	return append(binary.AppendVarint(b, int64(len(v))), v...)
}

// v2 builds a batch of magic 2 whose values are given; attributes beside the codec are ored in.
func v2(t testing.TB, base int64, codec Codec, attributes uint16, ts int64, values ...string) []byte {
	t.Helper()
	var body []byte
	for i, v := range values {
		r := []byte{0}
		r = binary.AppendVarint(r, int64(i)) // timestamp delta
		r = binary.AppendVarint(r, int64(i))
		r = varBytes(r, []byte("key"))
		r = varBytes(r, []byte(v))
		r = binary.AppendVarint(r, 1)
		r = varBytes(r, []byte("h"))
		r = varBytes(r, nil)
		body = append(binary.AppendVarint(body, int64(len(r))), r...)
	}
	return v2Raw(base, attributes|uint16(codec), ts, int32(len(values)), compressed(t, codec, body))
}

func v2Raw(base int64, attributes uint16, ts int64, count int32, body []byte) []byte {
	b := make([]byte, v2HeaderBytes, v2HeaderBytes+len(body))
	be.PutUint64(b, uint64(base))
	be.PutUint32(b[8:], uint32(v2HeaderBytes+len(body)-logOverhead))
	be.PutUint32(b[12:], 7) // leader epoch
	b[16] = 2
	be.PutUint16(b[21:], attributes)
	be.PutUint32(b[23:], uint32(count-1))
	be.PutUint64(b[27:], uint64(ts))
	be.PutUint64(b[35:], uint64(ts)+uint64(count-1))
	be.PutUint64(b[43:], 42)
	be.PutUint16(b[51:], 3)
	be.PutUint32(b[53:], 100)
	be.PutUint32(b[57:], uint32(count))
	b = append(b, body...)
	be.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// message builds a message of magic 0 or 1.
func message(magic byte, offset int64, attributes byte, ts int64, key, value []byte) []byte {
	b := make([]byte, v0HeaderBytes)
	be.PutUint64(b, uint64(offset))
	b[16], b[17] = magic, attributes
	if magic == 1 {
		b = be.AppendUint64(b, uint64(ts))
	}
	for _, v := range [][]byte{key, value} {
		if v == nil {
			b = be.AppendUint32(b, 0xffffffff)
			continue
		}
		b = append(be.AppendUint32(b, uint32(len(v))), v...)
	}
	be.PutUint32(b[8:], uint32(len(b)-logOverhead))
	be.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

func segment(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
