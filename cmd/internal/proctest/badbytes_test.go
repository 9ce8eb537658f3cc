//go:build proc

package proctest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bounds of memory under attack, in MiB.
const (
	attackMiBMax = 1200 // the most that a broker may use while one of the attacks below runs; a bomb of 1 GiB unpacked takes half more
	idleKiBMax   = 12   // per idle connection
	idleConns    = 10000
)

// TestBadBytes: whatever bytes a client sends, and however slowly: the connection is closed or the answer is an
// error, memory stays bounded, nothing panics, and others are served meanwhile.
func TestBadBytes(t *testing.T) {
	c := startCluster(t, 1, map[string]string{"min.insync.replicas": "1", "default.replication.factor": "1"})
	c.createTopic(t, "bytes", 1, 1, nil)
	c.createTopic(t, "zstd", 1, 1, map[string]string{"compression.type": "zstd"})
	c.createTopic(t, "compact", 1, 1, map[string]string{"cleanup.policy": "compact"})
	c.mustServe(t)
	b := &victim{t: t, cluster: c, addr: c.Broker(1).Addr, pid: c.Broker(1).PID()}
	b.idle() // first: what later attacks leave free in the heap would hide what connections cost
	b.run("frame sizes", attackMiBMax, b.frameSizes)
	b.run("truncated frames", attackMiBMax, b.truncatedFrames)
	b.run("garbage", attackMiBMax, b.garbage)
	b.run("unknown keys and versions", attackMiBMax, b.unknownKeys)
	b.run("arrays that claim too much", attackMiBMax, b.hugeArrays)
	b.run("decompression bombs", attackMiBMax, b.bombs)
	b.run("slow writers", attackMiBMax, b.slowWriters)
	b.run("slow readers", attackMiBMax, b.slowReaders)
}

type victim struct {
	t       *testing.T
	cluster *testCluster
	addr    string
	pid     int
}

// run carries out one attack, and then the broker must serve and must not have used too much memory.
func (v *victim) run(name string, mibMax int, attack func(t *testing.T)) {
	v.t.Run(name, func(t *testing.T) {
		resetPeak(t, v.pid)
		begin := time.Now()
		attack(t)
		took := time.Since(begin)
		v.cluster.mustServe(t)
		peak := memory(t, v.pid, "VmHWM") >> 10
		if peak > mibMax {
			t.Errorf("the broker used %d MiB, at most %d are allowed", peak, mibMax)
		}
		t.Logf("%.1f s, peak %d MiB, now %d MiB", took.Seconds(), peak, memory(t, v.pid, "VmRSS")>>10)
	})
}

func (v *victim) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", v.addr, longWait)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// mustHangUp waits until the broker closes the connection without an answer.
func mustHangUp(t *testing.T, c net.Conn, what string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(longWait))
	got, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection stays open", what)
	}
	if len(got) > 0 {
		t.Errorf("%s: answered with %d bytes", what, len(got))
	}
}

// frame puts the size before a request.
func frame(key, version int16, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(10+len(body)))
	out = binary.BigEndian.AppendUint16(out, uint16(key))
	out = binary.BigEndian.AppendUint16(out, uint16(version))
	out = append(out, 0, 0, 0, 1, 0xff, 0xff) // correlation id, no client id
	return append(out, body...)
}

// request is the frame of a request.
func request(req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	var body []byte
	if req.IsFlexible() {
		body = append(body, 0)
	}
	return frame(req.Key(), version, req.AppendTo(body))
}

func (v *victim) frameSizes(t *testing.T) {
	for _, size := range []int32{-1, -2147483648, 0, 1, 7, 104857601, 1 << 30, 2147483647, 0x47455420 /* GET */, 0x16030100 /* TLS */} {
		c := v.dial(t)
		c.Write(binary.BigEndian.AppendUint32(nil, uint32(size)))
		mustHangUp(t, c, fmt.Sprintf("frame of %d bytes", size))
	}
	c := v.dial(t) // no request without records is that large
	c.Write(append(binary.BigEndian.AppendUint32(nil, 100<<20), 0, 3, 0, 9, 0, 0, 0, 1))
	mustHangUp(t, c, "a Metadata request of 100 MiB")
	// An allowed size of which next to nothing comes must not be allocated for.
	var conns []net.Conn
	for range 200 {
		c := v.dial(t)
		c.Write(append(binary.BigEndian.AppendUint32(nil, 100<<20), 0, 0, 0, 9, 0, 0, 0, 1))
		conns = append(conns, c)
	}
	v.cluster.mustServe(t)
	for _, c := range conns {
		c.Close()
	}
}

func (v *victim) truncatedFrames(t *testing.T) {
	whole := request(metadataFor("bytes"), 9)
	for cut := range len(whole) {
		c := v.dial(t)
		c.Write(whole[:cut])
		c.(*net.TCPConn).CloseWrite()
		mustHangUp(t, c, fmt.Sprintf("%d bytes of %d", cut, len(whole)))
		c.Close()
	}
	for cut := 4; cut < len(whole)-1; cut++ { // a size that fits, of a body that does not
		c := v.dial(t)
		short := append([]byte(nil), whole[:cut]...)
		binary.BigEndian.PutUint32(short, uint32(cut-4))
		c.Write(short)
		mustHangUp(t, c, fmt.Sprintf("a body of %d bytes of %d", cut, len(whole)))
		c.Close()
	}
}

func metadataFor(topic string) kmsg.Request {
	req := kmsg.NewPtrMetadataRequest()
	mt := kmsg.NewMetadataRequestTopic()
	mt.Topic = &topic
	req.Topics = append(req.Topics, mt)
	return req
}

// garbage sends random bytes as frames of every key, with a fixed seed.
func (v *victim) garbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 1500 {
		c := v.dial(t)
		body := make([]byte, rng.IntN(300))
		for i := range body {
			body[i] = byte(rng.Uint32() >> (rng.IntN(4) * 8) & uint32(rng.IntN(256)))
		}
		c.Write(frame(int16(n%70), int16(rng.IntN(12)), body))
		c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		io.Copy(io.Discard, c)
		c.Close()
	}
}

func (v *victim) unknownKeys(t *testing.T) {
	for _, kv := range [][2]int16{{-1, 0}, {-32768, 0}, {32767, 0}, {127, 0}, {500, 3}, {3, -1}, {3, 99}, {0, 32767}, {1, -32768}} {
		c := v.dial(t)
		c.Write(frame(kv[0], kv[1], nil))
		mustHangUp(t, c, fmt.Sprintf("key %d version %d", kv[0], kv[1]))
	}
	c := v.dial(t) // KIP-511: ApiVersions of an unknown version is answered with error 35 in version 0
	c.Write(frame(18, 99, nil))
	c.SetReadDeadline(time.Now().Add(longWait))
	head := make([]byte, 10)
	if _, err := io.ReadFull(c, head); err != nil || binary.BigEndian.Uint16(head[8:]) != 35 {
		t.Errorf("ApiVersions version 99: % x, %v", head, err)
	}
}

// hugeArrays sends requests that claim as many elements as bytes can stand for, several at once.
func (v *victim) hugeArrays(t *testing.T) {
	var all sync.WaitGroup
	for _, key := range []int16{0, 1, 2, 3, 4, 6, 8, 9, 11, 14, 19, 20, 23, 32, 37, 44} {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", v.addr, longWait)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			size := 7 << 20 // a Produce may be larger, anything else is refused before it is read
			if key == 0 {
				size = 60 << 20
			}
			body := make([]byte, size)
			for _, at := range []int{0, 4, 5, 6, 10, 14} { // wherever the array's length is
				binary.BigEndian.PutUint32(body[at:], uint32(size/4))
			}
			version := int16(0)
			if key == 0 {
				version = 3
				copy(body, []byte{0xff, 0xff, 0, 1, 0, 0, 0, 1})
				binary.BigEndian.PutUint32(body[8:], uint32(size/3))
			}
			c.SetDeadline(time.Now().Add(30 * time.Second))
			c.Write(frame(key, version, body))
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		})
	}
	all.Wait()
}

// bomb is a batch whose records unpack to a gigabyte of zeros.
type bomb struct {
	codec int8
	data  []byte
}

const bombBytes = 1 << 30

func bombs(t *testing.T) []bomb {
	zeros := &zeroReader{left: bombBytes}
	var zipped, framed, packed bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	io.Copy(gz, zeros)
	must(t, gz.Close())
	zeros.left = bombBytes
	lz := lz4.NewWriter(&framed)
	must(t, lz.Apply(lz4.BlockSizeOption(lz4.Block4Mb)))
	io.Copy(lz, zeros)
	must(t, lz.Close())
	zeros.left = bombBytes
	zs, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	must(t, err)
	io.Copy(zs, zeros)
	must(t, zs.Close())
	// Snappy: a block that says that it holds 4 GiB, and a xerial frame of such blocks.
	lying := []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}
	xerial := append([]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7}, lying...)
	// Honest snappy packs at most 64 to 1: copies of one byte, 64 at a time.
	var honest []byte
	honest = binary.AppendUvarint(honest, 1+64*400000)
	honest = append(honest, 0, 0)
	for range 400000 {
		honest = append(honest, 0xfe, 1, 0)
	}
	return []bomb{{1, zipped.Bytes()}, {3, framed.Bytes()}, {4, packed.Bytes()}, {2, lying}, {2, xerial}, {2, honest}}
}

type zeroReader struct{ left int }

func (z *zeroReader) Read(p []byte) (int, error) {
	n := min(len(p), z.left)
	clear(p[:n])
	if z.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// batch makes a record batch around packed records; only its CRC is right.
func (b bomb) batch(records int32) []byte {
	h := kmsg.RecordBatch{Magic: 2, Attributes: int16(b.codec), LastOffsetDelta: records - 1, NumRecords: records,
		FirstTimestamp: time.Now().UnixMilli(), MaxTimestamp: time.Now().UnixMilli(), ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		PartitionLeaderEpoch: -1, Records: b.data, Length: int32(49 + len(b.data))}
	out := h.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// bombs sends each bomb to topics where the broker has to unpack it, several at a time.
func (v *victim) bombs(t *testing.T) {
	for _, b := range bombs(t) {
		for _, topic := range []string{"zstd", "compact"} {
			if topic == "zstd" && b.codec == 4 {
				continue // same codec: stored as it came
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					code, err := v.produce(topic, b.batch(1000))
					if err != nil || code == 0 {
						t.Errorf("bomb of codec %d, %d bytes, to %s: code %d, %v", b.codec, len(b.data), topic, code, err)
					}
				})
			}
			all.Wait()
		}
	}
}

// produce sends one batch on a connection of its own and returns the error code of the partition.
func (v *victim) produce(topic string, batch []byte) (int16, error) {
	c, err := net.DialTimeout("tcp", v.addr, longWait)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	c.SetDeadline(time.Now().Add(longWait))
	if _, err := c.Write(request(req, 9)); err != nil {
		return 0, err
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		return 0, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(c, answer); err != nil {
		return 0, err
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = 9
	if err := resp.ReadFrom(answer[5:]); err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].ErrorCode, nil
}

// slowWriters send a large request byte by byte, or half of it and then nothing.
func (v *victim) slowWriters(t *testing.T) {
	whole := request(metadataFor("bytes"), 9)
	var conns []net.Conn
	for range 300 {
		c := v.dial(t)
		conns = append(conns, c)
	}
	for i := range whole[:len(whole)-1] {
		for _, c := range conns {
			c.Write(whole[i : i+1])
		}
		pass(t, 20*time.Millisecond)
	}
	v.cluster.mustServe(t)
	for _, c := range conns { // slow is no sin: the answer comes
		c.Write(whole[len(whole)-1:])
		c.SetReadDeadline(time.Now().Add(longWait))
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Errorf("slow writer: %v", err)
			break
		}
		c.Close()
	}
}

// slowReaders ask for much, many times, and never read.
func (v *victim) slowReaders(t *testing.T) {
	payload := make([]byte, 900<<10)
	rand.NewChaCha8([32]byte{}).Read(payload)
	for range 40 { // 36 MiB to fetch
		code, err := v.produce("bytes", plainBatch(payload))
		if err != nil || code != 0 {
			t.Fatalf("produce: %v, %v", kerr.ErrorForCode(code), err)
		}
	}
	fetch := kmsg.NewPtrFetchRequest()
	fetch.ReplicaID, fetch.MaxWaitMillis, fetch.MinBytes, fetch.MaxBytes, fetch.SessionEpoch = -1, 100, 1, 50<<20, -1
	ft := kmsg.NewFetchRequestTopic()
	ft.Topic = "bytes"
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.PartitionMaxBytes, fp.CurrentLeaderEpoch = 50<<20, -1
	ft.Partitions = append(ft.Partitions, fp)
	fetch.Topics = append(fetch.Topics, ft)
	asked := request(fetch, 11)
	for range 100 {
		c := v.dial(t)
		for range 20 {
			c.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := c.Write(asked); err != nil {
				break
			}
		}
	}
	pass(t, time.Second)
	v.cluster.mustServe(t)
}

// plainBatch is a batch of one record.
func plainBatch(value []byte) []byte {
	var rec []byte
	rec = append(rec, 0)               // attributes
	rec = binary.AppendVarint(rec, 0)  // timestamp delta
	rec = binary.AppendVarint(rec, 0)  // offset delta
	rec = binary.AppendVarint(rec, -1) // no key
	rec = binary.AppendVarint(rec, int64(len(value)))
	rec = append(rec, value...)
	rec = binary.AppendVarint(rec, 0) // no headers
	data := binary.AppendVarint(nil, int64(len(rec)))
	return bomb{codec: 0, data: append(data, rec...)}.batch(1)
}

// idle opens 10,000 connections, of which a tenth has sent half a frame, and measures what each costs.
func (v *victim) idle() {
	v.t.Run(fmt.Sprintf("%d idle connections", idleConns), func(t *testing.T) {
		raiseFileLimit(t, idleConns+500)
		before := memory(t, v.pid, "VmRSS")
		begin := time.Now()
		conns := make([]net.Conn, 0, idleConns)
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		for n := range idleConns {
			local := &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+n/5000), 1)}
			c, err := (&net.Dialer{LocalAddr: local, Timeout: longWait}).Dial("tcp", v.addr)
			if err != nil {
				t.Fatalf("connection %d: %v", n, err)
			}
			conns = append(conns, c)
			if n%10 == 0 {
				c.Write([]byte{0, 0, 0, 100, 0, 3})
			}
		}
		opened := time.Since(begin)
		v.cluster.mustServe(t)
		pass(t, time.Second)
		after := memory(t, v.pid, "VmRSS")
		each := float64(after-before) / idleConns
		t.Logf("opened in %.1f s; resident %d MiB before, %d MiB after: %.1f KiB for each connection", opened.Seconds(), before>>10, after>>10, each)
		if each > idleKiBMax {
			t.Errorf("%.1f KiB for each connection, at most %d are allowed", each, idleKiBMax)
		}
	})
	v.cluster.mustServe(v.t)
}

// raiseFileLimit lets this process open n files more.
func raiseFileLimit(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Cur >= n {
		return
	}
	if limit.Max < n {
		t.Fatalf("the hard limit of open files is %d, %d are needed", limit.Max, n)
	}
	limit.Cur = n
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}
