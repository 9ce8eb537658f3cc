package znode

import (
	"encoding/json"
	"math"
	"slices"

	"kctl/zkutil/cluster"
)

// DecodeClusterID reads ClusterIDPath.
func DecodeClusterID(data []byte) (string, error) {
	d := newDecoder(ClusterIDPath, data)
	d.take("version")
	id := d.text("id", true)
	if d.err == nil && id == "" {
		d.fail("id", "is empty")
	}
	return id, d.err
}

// EncodeClusterID writes version "1", a string as in Kafka.
func EncodeClusterID(id string) []byte {
	e := newEncoder(64)
	e.text("version", "1")
	e.text("id", id)
	return e.end(nil)
}

// ProducerIDBlock is the value of ProducerIDBlockPath: the block of producer ids handed out last. First and
// Last are both part of it.
type ProducerIDBlock struct {
	Broker      cluster.BrokerID
	First, Last int64
}

// ProducerIDBlockSize is the number of ids in a block.
const ProducerIDBlockSize = 1000

// DecodeProducerIDBlock reads it. Null data, as the node is created with, gives ok false: no block was
// handed out yet.
func DecodeProducerIDBlock(data []byte) (b ProducerIDBlock, ok bool, err error) {
	if len(data) == 0 {
		return b, false, nil
	}
	d := newDecoder(ProducerIDBlockPath, data)
	d.int32("version", 1)
	b.Broker = cluster.BrokerID(d.int32("broker", -1))
	b.First = d.decimal("block_start", true, 0)
	b.Last = d.decimal("block_end", true, 0)
	if d.err == nil && (b.Last < b.First || b.Last == math.MaxInt64) {
		d.fail("block_end", "%d does not end a block that starts at %d", b.Last, b.First)
	}
	return b, d.err == nil, d.err
}

// Encode writes version 1.
func (b ProducerIDBlock) Encode() []byte {
	e := newEncoder(80)
	e.int("version", 1)
	e.int("broker", int64(b.Broker))
	e.decimal("block_start", b.First)
	e.decimal("block_end", b.Last)
	return e.end(nil)
}

// Feature is the value of FeaturePath: finalised features of the cluster.
type Feature struct {
	// Version is 1 or 2; Status 0 is disabled, 1 enabled.
	Version, Status int32
	// Features is the JSON object of finalised features; nil means {}.
	Features json.RawMessage
	Unknown  Fields
}

// NewFeature is what the first controller writes: enabled, none finalised.
func NewFeature() Feature { return Feature{Version: 2, Status: 1} }

// DecodeFeature reads versions 1 and 2.
func DecodeFeature(data []byte) (Feature, error) {
	d := newDecoder(FeaturePath, data)
	f := Feature{Version: d.int32("version", 1), Status: int32(d.integer("status", 0, 1))}
	if raw, ok := d.take("features"); ok && string(raw) != "null" {
		if splitObject(raw) == nil {
			d.fail("features", "%s is not an object", excerpt(raw))
		} else if string(raw) != "{}" {
			f.Features = slices.Clone(raw)
		}
	}
	f.Unknown = d.unknown()
	return f, d.err
}

// Encode writes the version that f has.
func (f Feature) Encode() []byte {
	e := newEncoder(64)
	features := f.Features
	if features == nil {
		features = json.RawMessage("{}")
	}
	e.raw("features", features)
	e.int("version", int64(f.Version))
	e.int("status", int64(f.Status))
	return e.end(f.Unknown)
}
