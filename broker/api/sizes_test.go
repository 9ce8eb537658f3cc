package api

import (
	"bytes"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/server"
)

func produceBody(version int16, topics, partitions int) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version = version
	for range topics {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = "topic"
		for p := range partitions {
			part := kmsg.NewProduceRequestTopicPartition()
			part.Partition = int32(p)
			if p%2 == 0 {
				part.Records = bytes.Repeat([]byte{7}, p)
			}
			t.Partitions = append(t.Partitions, part)
		}
		req.Topics = append(req.Topics, t)
	}
	return req.AppendTo(nil)
}

// The walk over a Produce must agree with the decoder in every version, and find every cut.
func TestCountProduce(t *testing.T) {
	for version := produceAPI.min; version <= produceAPI.max; version++ {
		body := produceBody(version, 3, 5)
		if n, ok := countProduce(version, version >= 9, body); n != 3+3*5 || !ok {
			t.Errorf("version %d: %d, %v", version, n, ok)
		}
		last := 0
		if version >= 9 {
			last = 1 // the tags at the end are the decoder's
		}
		for cut := range len(body) - last {
			if _, ok := countProduce(version, version >= 9, body[:cut]); ok {
				t.Errorf("version %d: nothing is missing in %d of %d bytes", version, cut, len(body))
			}
		}
	}
}

func TestCheckSize(t *testing.T) {
	many := produceBody(9, producePartitionsMax+1, 0)
	for _, c := range []struct {
		name string
		key  int16
		body []byte
		ok   bool
	}{
		{"a large Metadata", metadataAPI.key, make([]byte, PlainRequestBytesMax), true},
		{"too large a Metadata", metadataAPI.key, make([]byte, PlainRequestBytesMax+1), false},
		{"a Produce", produceAPI.key, produceBody(9, 10, 10), true},
		{"too many topics", produceAPI.key, many, false},
		{"a Produce that claims a million topics", produceAPI.key, append([]byte{0, 0, 1, 0, 0, 0, 1, 0xc0, 0x84, 0x3d}, make([]byte, 20)...), false},
	} {
		err := checkSize(&server.Request{Key: c.key, Version: 9}, true, c.body)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
