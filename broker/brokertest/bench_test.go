package brokertest

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/peer"
	"kctl/broker/record"
)

// benchBatch makes a batch of about 64 KiB from records of 100 bytes.
func benchBatch(b *testing.B) []byte {
	b.Helper()
	builder := record.NewBuilder(record.None)
	value := make([]byte, 100)
	for builder.Size()+len(value) < 64<<10 {
		builder.Add(1_700_000_000_000, nil, value)
	}
	out, err := builder.Build(nil)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// connectLeader opens a raw connection to the leader of partition 0.
func connectLeader(b *testing.B, c *Cluster, topic string) *peer.Conn {
	b.Helper()
	addr := net.JoinHostPort("127.0.0.1", c.ports[c.Leader(topic, 0)])
	conn, err := peer.Dial(b.Context(), nil, addr, "bench", startTimeout)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn
}

func produceRequest(topic string, acks int16, records []byte) *kmsg.ProduceRequest {
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = records
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis, req.Topics = 9, acks, 30_000, append(req.Topics, t)
	return req
}

// BenchmarkProduce is one request of 64 KiB after the other over TCP, with brokers on the operating system's files.
// With three replicas an operation is the whole round: append, both followers' fetches, the answer.
func BenchmarkProduce(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		b.Run("replicas="+strconv.Itoa(replicas), func(b *testing.B) {
			c := Start(b, replicas)
			c.CreateTopic("t", 1, int16(replicas), "retention.bytes=67108864", "segment.bytes=16777216")
			conn := connectLeader(b, c, "t")
			req := produceRequest("t", -1, benchBatch(b))
			b.SetBytes(int64(len(req.Topics[0].Partitions[0].Records)))
			b.ReportAllocs()
			for b.Loop() {
				resp, err := conn.Do(context.Background(), req)
				if err != nil {
					b.Fatal(err)
				}
				if code := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
					b.Fatalf("produce: error %d", code)
				}
			}
		})
	}
}

// BenchmarkFetch reads 1 MiB an operation over TCP from the page cache.
func BenchmarkFetch(b *testing.B) {
	c := Start(b, 1)
	c.CreateTopic("t", 1, 1)
	conn := connectLeader(b, c, "t")
	for range 64 { // 4 MiB
		if _, err := conn.Do(b.Context(), produceRequest("t", 1, benchBatch(b))); err != nil {
			b.Fatal(err)
		}
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes = 1 << 20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = "t", append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MinBytes, req.MaxBytes, req.MaxWaitMillis, req.SessionEpoch, req.Topics = 12, 1, 1<<20, 500, -1, append(req.Topics, t)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := conn.DoReuse(context.Background(), req)
		if err != nil {
			b.Fatal(err)
		}
		got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
		if len(got) < 512<<10 || binary.BigEndian.Uint64(got) != 0 {
			b.Fatalf("fetch gave %d bytes", len(got))
		}
		b.SetBytes(int64(len(got)))
	}
}
