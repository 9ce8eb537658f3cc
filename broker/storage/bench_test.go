package storage

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kctl/broker/record"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// benchBatch makes a batch of about 64 KiB from records of the given size.
func benchBatch(tb testing.TB, size int) []byte {
	b := record.NewBuilder(record.None)
	value := bytes.Repeat([]byte("x"), size)
	for b.Size()+size < 64<<10 {
		b.Add(1_700_000_000_000, nil, value)
	}
	out, err := b.Build(nil)
	must(tb, err)
	return out
}

func benchDir(b *testing.B) string {
	dir, err := os.MkdirTemp(os.Getenv("KCTL_BENCH_DIR"), "storage")
	must(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func benchManager(b *testing.B, dir string) *Manager {
	m, err := OpenManager(vfs.OS{}, []string{dir}, ManagerOptions{BrokerID: 1, ClusterID: "c", RecoveryThreads: 2})
	must(b, err)
	return m
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 1024} {
		for _, producer := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dB/idempotent=%v", size, producer), func(b *testing.B) {
				m := benchManager(b, benchDir(b))
				defer m.Close()
				cfg := DefaultConfig()
				cfg.SegmentBytes, cfg.RetentionBytes, cfg.FileDeleteDelayMs = 256<<20, 256<<20, 0
				l, err := m.Create(testTP, testID, cfg)
				must(b, err)
				data := benchBatch(b, size)
				count := record.Batch(data).Count()
				seq := int32(0)
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				n := 0
				used := cpuTime()
				for b.Loop() {
					record.Batch(data).SetBaseOffset(0)
					if producer {
						record.Batch(data).SetProducer(1, 0, seq)
						seq = record.AddSequence(seq, count)
					}
					if _, err := l.AppendAsLeader(data, 1, AppendOptions{}); err != nil {
						b.Fatal(err)
					}
					if n++; n%4096 == 0 { // keep the disk small
						b.StopTimer()
						l.SetHighWatermark(math.MaxInt64)
						must(b, m.Housekeep(time.Now()))
						b.StartTimer()
					}
				}
				b.ReportMetric(float64((cpuTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	m := benchManager(b, benchDir(b))
	defer m.Close()
	l, err := m.Create(testTP, testID, DefaultConfig())
	must(b, err)
	data := benchBatch(b, 1024)
	for range 2048 {
		record.Batch(data).SetBaseOffset(0)
		mustAppend(b, l, data, 1)
	}
	count := int64(record.Batch(data).Count())
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("sequential/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			at, total := int64(0), int64(0)
			used := cpuTime()
			for b.Loop() {
				if at >= l.LogEndOffset() {
					at = 0
				}
				s, err := l.Read(at, size, math.MaxInt64, true)
				if err != nil {
					b.Fatal(err)
				}
				n, err := s.WriteTo(io.Discard)
				s.Release()
				if err != nil {
					b.Fatal(err)
				}
				total += n
				at += n / int64(len(data)) * count
			}
			b.SetBytes(total / int64(b.N))
			b.ReportMetric(float64((cpuTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
	b.Run("tail", func(b *testing.B) {
		b.ReportAllocs()
		at := l.LogEndOffset() - count
		for b.Loop() {
			s, err := l.Read(at, 1<<20, math.MaxInt64, true)
			if err != nil || s.Size() != len(data) {
				b.Fatal(s.Size(), err)
			}
			s.Release()
		}
	})
}

// cpuTime is the processor time that this process has used: on a busy machine the only honest clock.
func cpuTime() time.Duration {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// BenchmarkOpen creates 10,000 logs, then opens them after a clean stop: empty ones, ones with a batch, and the
// latter after a kill.
func BenchmarkOpen(b *testing.B) {
	const logs = 10_000
	for _, fill := range []bool{false, true} {
		for _, clean := range []bool{true, false} {
			b.Run(fmt.Sprintf("filled=%v/clean=%v", fill, clean), func(b *testing.B) {
				dir := benchDir(b)
				m := benchManager(b, dir)
				start := cpuTime()
				for i := range logs {
					l, err := m.Create(cluster.TopicPartition{Topic: "topic", Partition: int32(i)}, testID, DefaultConfig())
					must(b, err)
					if fill {
						mustAppend(b, l, batch(b, 10, 1), 1)
					}
				}
				b.ReportMetric((cpuTime() - start).Seconds(), "cpu-s/create-10k")
				for b.Loop() {
					b.StopTimer()
					start = cpuTime()
					must(b, m.Close())
					b.ReportMetric((cpuTime() - start).Seconds(), "cpu-s/close-10k")
					if !clean {
						must(b, os.Remove(filepath.Join(dir, fileClean)))
						must(b, os.Remove(filepath.Join(dir, fileRecovery)))
					}
					b.StartTimer()
					start = cpuTime()
					m = benchManager(b, dir)
					b.ReportMetric((cpuTime() - start).Seconds(), "cpu-s/open-10k")
					if len(m.Logs()) != logs {
						b.Fatal(len(m.Logs()))
					}
				}
				b.StopTimer()
				start = cpuTime()
				must(b, m.Housekeep(time.Now()))
				b.ReportMetric((cpuTime()-start).Seconds()*1000, "cpu-ms/housekeep")
				must(b, m.Close())
			})
		}
	}
}
