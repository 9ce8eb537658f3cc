package api

import (
	"bytes"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/server"
)

// BenchmarkFetchBody lays out and writes an answer of six partitions with 64 KiB each.
func BenchmarkFetchBody(b *testing.B) {
	released := 0
	data := bytes.Repeat([]byte("x"), 64<<10)
	parts := make([]fetchPartition, 6)
	b.SetBytes(int64(len(parts) * len(data)))
	b.ReportAllocs()
	for b.Loop() {
		for i := range parts {
			parts[i] = fetchPartition{topic: "topic", partition: int32(i), divergingEpoch: -1, divergingEnd: -1, leader: -1,
				leaderEpoch: -1, records: memSlice{data: data, released: &released}}
		}
		body := newFetchBody(1, 12, 0, 7, parts, nil)
		if _, err := body.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
		body.Release()
	}
}

// BenchmarkProduceDecode decodes a request with three batches of 64 KiB, which are not copied.
func BenchmarkProduceDecode(b *testing.B) {
	records := make([]byte, 64<<10)
	req := produceRequest(-1, "topic", 0, records)
	for i := range int32(2) {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i+1, records
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
	}
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
	s := newService(b, &fakes{})
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.decode(&server.Request{Key: 0, Version: req.Version, Rest: frame[12:]}); err != nil {
			b.Fatal(err)
		}
	}
}
