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

func TestDecodeBounds(t *testing.T) {
	metadata := func(topics int) []byte {
		req := kmsg.NewPtrMetadataRequest()
		req.Version = 9
		for range topics {
			name := ""
			req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
		}
		return req.AppendTo(nil)
	}
	for _, c := range []struct {
		name string
		key  int16
		body []byte
		ok   bool
	}{
		{"a Metadata", metadataAPI.key, metadata(10), true},
		{"a large Metadata", metadataAPI.key, metadata(plainElementsMax), true},
		{"too many topics in a Metadata", metadataAPI.key, metadata(plainElementsMax + 1), false},
		{"too large a Metadata", metadataAPI.key, append(metadata(1), make([]byte, plainRequestBytesMax)...), false},
		{"a Produce", produceAPI.key, produceBody(9, 10, 10), true},
		{"too many topics in a Produce", produceAPI.key, produceBody(9, producePartitionsMax+1, 0), false},
		{"a Produce that claims a million topics", produceAPI.key, append([]byte{0, 0, 1, 0, 0, 0, 1, 0xc0, 0x84, 0x3d}, make([]byte, 20)...), false},
	} {
		body := kmsg.RequestForKey(c.key)
		body.SetVersion(9)
		err := new(Service).decodeBody(&server.Request{Key: c.key, Version: 9}, body, c.body)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
