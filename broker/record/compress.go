package record

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
