package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/server"
)

// PlainRequestBytesMax bounds every request that carries no records. Decoding makes an array as long as the
// request says before it sees the elements, up to one element for each byte that is left, and an element takes
// some hundred bytes of memory: what 100 MiB may ask for is more than a machine has. The largest honest request,
// a LeaderAndISR of 100,000 partitions, stays well below.
const PlainRequestBytesMax = 16 << 20

// producePartitionsMax bounds the topics and partitions of one Produce.
const producePartitionsMax = 1 << 16

// checkSize refuses a request that would take memory out of proportion when it is decoded. body is what follows
// the header.
func checkSize(req *server.Request, flexible bool, body []byte) error {
	if req.Key != produceAPI.key {
		if len(body) > PlainRequestBytesMax {
			return fmt.Errorf("%w: %s of %d bytes, at most %d are served", errRefused, kmsg.NameForKey(req.Key), len(body), PlainRequestBytesMax)
		}
		return nil
	}
	if n, ok := countProduce(req.Version, flexible, body); !ok || n > producePartitionsMax {
		return fmt.Errorf("%w: %s version %d with impossible or more than %d partitions", errRefused, kmsg.NameForKey(req.Key), req.Version, producePartitionsMax)
	}
	return nil
}

// countProduce walks over a Produce without allocating and counts its topics and partitions. ok is false when
// an array says that it is longer than what is there.
func countProduce(version int16, flexible bool, body []byte) (n int, ok bool) {
	w := walker{Reader: kbin.Reader{Src: body}, flexible: flexible}
	if version >= 3 {
		w.skipString() // transactional id
	}
	w.Int16() // acks
	w.Int32() // timeout
	for topics := w.length(); topics > 0 && w.Ok(); topics-- {
		w.skipString()
		for partitions := w.length(); partitions > 0 && w.Ok(); partitions-- {
			w.Int32() // index
			w.skipBytes()
			w.skipTags()
			n++
		}
		w.skipTags()
		n++
		if n > producePartitionsMax {
			return n, false
		}
	}
	return n, w.Ok()
}

// walker reads over the fields of a request in its flexible or its old encoding.
type walker struct {
	kbin.Reader
	flexible bool
}

func (w *walker) length() int32 {
	if w.flexible {
		return w.CompactArrayLen()
	}
	return w.ArrayLen()
}

func (w *walker) skipString() {
	n := 0
	if w.flexible {
		n = int(w.Uvarint()) - 1
	} else {
		n = int(w.Int16())
	}
	w.skip(n)
}

func (w *walker) skipBytes() {
	n := 0
	if w.flexible {
		n = int(w.Uvarint()) - 1
	} else {
		n = int(w.Int32())
	}
	w.skip(n)
}

func (w *walker) skip(n int) {
	if n > 0 {
		w.Span(n)
	}
}

func (w *walker) skipTags() {
	if w.flexible {
		kmsg.SkipTags(&w.Reader)
	}
}
