package api

import (
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/server"
)

// Decoding makes an array as long as the request says, up to one element for every two bytes that are left, and
// an element takes some hundred bytes of memory, its answer as much again: what 100 MiB may ask for is more than
// a machine has. So requests that carry no records have bounds of their own, far above anything honest.
const (
	plainRequestBytesMax   = 8 << 20
	controlRequestBytesMax = 64 << 20 // a LeaderAndISR of a million partitions
	plainElementsMax       = 200_000  // topics, partitions, members, ... of one request
	producePartitionsMax   = 1 << 16  // topics and partitions of one Produce

	// largeRequestBytes is from where on requests are decoded one at a time.
	largeRequestBytes = 128 << 10
)

// RequestBytesMax is the size of the largest request of an API key that is served; 0: socket.request.max.bytes
// alone decides.
func RequestBytesMax(key int16) int {
	switch key {
	case produceAPI.key:
		return 0
	case leaderAndISRAPI.key, stopReplicaAPI.key, updateMetadataAPI.key:
		return controlRequestBytesMax
	}
	return plainRequestBytesMax
}

// decodeBody fills body, within the bounds.
func (s *Service) decodeBody(req *server.Request, body kmsg.Request, src []byte) error {
	name := kmsg.NameForKey(req.Key)
	if req.Key == produceAPI.key {
		if n, ok := countProduce(req.Version, body.IsFlexible(), src); !ok || n > producePartitionsMax {
			return fmt.Errorf("%w: %s version %d with impossible or more than %d partitions", errRefused, name, req.Version, producePartitionsMax)
		}
		return readBody(req, body, src)
	}
	if most := RequestBytesMax(req.Key); len(src) > most {
		return fmt.Errorf("%w: %s of %d bytes, at most %d are served", errRefused, name, len(src), most)
	}
	if len(src) <= largeRequestBytes {
		return readBody(req, body, src)
	}
	s.large.Lock()
	defer s.large.Unlock()
	if err := readBody(req, body, src); err != nil {
		return err
	}
	if RequestBytesMax(req.Key) == plainRequestBytesMax && elements(reflect.ValueOf(body).Elem(), 2) > plainElementsMax {
		return fmt.Errorf("%w: %s of more than %d elements", errRefused, name, plainElementsMax)
	}
	return nil
}

func readBody(req *server.Request, body kmsg.Request, src []byte) error {
	if err := body.ReadFrom(src); err != nil {
		return fmt.Errorf("%w: %s version %d does not decode: %v", errRefused, kmsg.NameForKey(req.Key), req.Version, err)
	}
	return nil
}

// elements counts what the arrays of a request hold, down to a depth.
func elements(v reflect.Value, depth int) int {
	n := 0
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Slice || f.Type().Elem().Kind() == reflect.Uint8 {
			continue
		}
		n += f.Len()
		if depth < 2 || f.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		for j := range f.Len() {
			n += elements(f.Index(j), depth-1)
		}
	}
	return n
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
