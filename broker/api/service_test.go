package api

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replicashell"
	"kctl/broker/server"
	"kctl/zkutil/cluster"
)

// wire runs the service behind a real server.
type wire struct {
	t    *testing.T
	addr string
}

func newWire(t *testing.T, s *Service) wire {
	t.Helper()
	srv := server.New(server.Options{Handler: s, Logger: slog.New(slog.DiscardHandler)})
	addr, err := srv.Listen("PLAINTEXT", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Run(t.Context()) })
	t.Cleanup(func() { srv.Close(); wg.Wait() })
	return wire{t, addr.String()}
}

func (w wire) dial() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// exchange sends req and decodes the answer in the version of the request, or v0 for raw answers.
func (w wire) exchange(c net.Conn, req kmsg.Request) kmsg.Response {
	w.t.Helper()
	send(w.t, c, req)
	resp := req.ResponseKind()
	body := frame(w.t, c)
	if resp.IsFlexible() && resp.Key() != 18 {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		w.t.Fatalf("decode answer: %v", err)
	}
	return resp
}

func send(t *testing.T, c net.Conn, req kmsg.Request) {
	t.Helper()
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 9)); err != nil {
		t.Fatal(err)
	}
}

// frame reads one answer, checks its correlation id and returns the rest.
func frame(t *testing.T, c net.Conn) []byte {
	t.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if got := binary.BigEndian.Uint32(head[4:]); got != 9 {
		t.Fatalf("correlation id %d, want 9", got)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	return body
}

func wantClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("read gave %d bytes, %v; want a closed connection", n, err)
	}
}

func TestApiVersionsTellsTheTable(t *testing.T) {
	w := newWire(t, newService(t, &fakes{}))
	for v := int16(0); v <= 4; v++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = v, "test", "1.0"
		resp := w.exchange(w.dial(), req).(*kmsg.ApiVersionsResponse)
		if resp.ErrorCode != 0 || len(resp.ApiKeys) != len(definitions()) {
			t.Fatalf("v%d: error %d, %d keys", v, resp.ErrorCode, len(resp.ApiKeys))
		}
		for _, k := range resp.ApiKeys {
			if req := kmsg.RequestForKey(k.ApiKey); req == nil || k.MaxVersion > req.MaxVersion() || k.MinVersion > k.MaxVersion {
				t.Errorf("key %d versions %d to %d cannot be decoded", k.ApiKey, k.MinVersion, k.MaxVersion)
			}
		}
	}
	bad := kmsg.NewPtrApiVersionsRequest()
	bad.Version, bad.ClientSoftwareName, bad.ClientSoftwareVersion = 3, "-bad-", "1"
	if resp := w.exchange(w.dial(), bad).(*kmsg.ApiVersionsResponse); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("bad software name: error %d", resp.ErrorCode)
	}
}

// TestMustHaveVersions guards the floors and ceilings that real clients need.
func TestMustHaveVersions(t *testing.T) {
	want := map[int16][2]int16{0: {3, 11}, 1: {4, 17}, 2: {1, 9}, 3: {0, 12}, 8: {2, 9}, 9: {1, 9}, 10: {0, 6}, 11: {0, 9}, 12: {0, 4},
		13: {0, 5}, 14: {0, 5}, 15: {0, 5}, 16: {0, 5}, 18: {0, 4}, 19: {2, 7}, 20: {1, 6}, 22: {0, 5}, 23: {2, 4}, 32: {1, 4}, 37: {0, 3}, 44: {0, 1}, 60: {0, 1}}
	for _, d := range definitions() {
		if w, ok := want[d.key]; ok && (d.min > w[0] || d.max < w[1]) {
			t.Errorf("%s serves %d to %d, clients need %d to %d", kmsg.NameForKey(d.key), d.min, d.max, w[0], w[1])
		}
		delete(want, d.key)
	}
	for k := range want {
		t.Errorf("%s is not served", kmsg.NameForKey(k))
	}
}

func TestApiVersionsOfTheFuture(t *testing.T) {
	w := newWire(t, newService(t, &fakes{}))
	c := w.dial()
	raw := []byte{0, 0, 0, 14, 0, 18, 0, 99, 0, 0, 0, 9, 0xff, 0xff, 1, 2, 3, 4}
	if _, err := c.Write(raw); err != nil {
		t.Fatal(err)
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(frame(t, c)); err != nil {
		t.Fatal(err)
	}
	if resp.ErrorCode != kerr.UnsupportedVersion.Code || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MaxVersion != 4 {
		t.Errorf("%+v", resp)
	}
	// The connection goes on.
	req := kmsg.NewPtrApiVersionsRequest()
	if resp := w.exchange(c, req).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 {
		t.Errorf("after the fallback: error %d", resp.ErrorCode)
	}
}

func TestRefusedRequestsCloseTheConnection(t *testing.T) {
	w := newWire(t, newService(t, &fakes{}))
	header := func(key, version int16, rest ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
		b = kbin.AppendInt16(b, key)
		b = kbin.AppendInt16(b, version)
		return append(binary.BigEndian.AppendUint32(b, 9), rest...)
	}
	for name, raw := range map[string][]byte{
		"unknown key":              header(999, 0, 0xff, 0xff),
		"negative key":             header(-1, 0, 0xff, 0xff),
		"key in the gap":           header(71, 0, 0xff, 0xff),
		"version too new":          header(3, 99, 0xff, 0xff),
		"negative version":         header(18, -1, 0xff, 0xff),
		"version too old":          header(1, 0, 0xff, 0xff),
		"client id cut off":        header(3, 1, 0, 9, 'x'),
		"no client id":             header(3, 1),
		"array of two billion":     header(3, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff),
		"compact array of 4 G":     header(3, 12, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"varint without end":       header(3, 12, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"tags without end":         header(3, 12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"records longer than rest": header(0, 3, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			c := w.dial()
			if _, err := c.Write(raw); err != nil {
				t.Fatal(err)
			}
			wantClosed(t, c)
		})
	}
}

// batch makes something with the magic byte of a record batch at its place.
func batch(magic byte) []byte {
	b := make([]byte, 61)
	b[16] = magic
	return b
}

func produceRequest(acks int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 11, acks, 1000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, records
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func TestProduceErrors(t *testing.T) {
	f := &fakes{produce: func(_ int16, parts []replicashell.ProducePartition) []replicashell.ProduceResult {
		var out []replicashell.ProduceResult
		for _, p := range parts {
			out = append(out, replicashell.ProduceResult{TP: p.TP, Err: kerr.UnknownTopicOrPartition.Code, BaseOffset: -1})
		}
		return out
	}}
	w := newWire(t, newService(t, f))
	txn := produceRequest(-1, "t", 0, batch(2))
	txn.TransactionID = ptr("x")
	for name, c := range map[string]struct {
		req  *kmsg.ProduceRequest
		want *kerr.Error
	}{
		"old format":     {produceRequest(-1, "t", 0, batch(1)), kerr.UnsupportedForMessageFormat},
		"acks":           {produceRequest(2, "t", 0, batch(2)), kerr.InvalidRequiredAcks},
		"internal topic": {produceRequest(-1, "__consumer_offsets", 0, batch(2)), kerr.InvalidTopicException},
		"transaction":    {txn, kerr.TransactionalIDAuthorizationFailed},
		"unknown topic":  {produceRequest(-1, "nope", 0, batch(2)), kerr.UnknownTopicOrPartition},
		"other's leader": {produceRequest(-1, "t", 1, batch(2)), kerr.NotLeaderForPartition},
	} {
		resp := w.exchange(w.dial(), c.req).(*kmsg.ProduceResponse)
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != c.want.Code {
			t.Errorf("%s: error %d, want %d", name, p.ErrorCode, c.want.Code)
		}
		if c.want == kerr.NotLeaderForPartition && (p.CurrentLeader.LeaderID != 2 || p.CurrentLeader.LeaderEpoch != 3 || len(resp.Brokers) != 1 || resp.Brokers[0].Port != 9092) {
			t.Errorf("%s: the new leader is not told: %+v %+v", name, p.CurrentLeader, resp.Brokers)
		}
	}
}

func TestProduceWithoutAcks(t *testing.T) {
	f := &fakes{produce: func(_ int16, parts []replicashell.ProducePartition) []replicashell.ProduceResult {
		out := make([]replicashell.ProduceResult, len(parts))
		for i, p := range parts {
			out[i] = replicashell.ProduceResult{TP: p.TP}
			if p.TP.Partition == 1 {
				out[i].Err = kerr.NotLeaderForPartition.Code
			}
		}
		return out
	}}
	w := newWire(t, newService(t, f))
	c := w.dial()
	send(t, c, produceRequest(0, "t", 0, batch(2)))
	if resp := w.exchange(c, kmsg.NewPtrApiVersionsRequest()).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 {
		t.Fatal("acks=0 was answered") // the answer of ApiVersions would have been mistaken for it
	}
	send(t, c, produceRequest(0, "t", 1, batch(2)))
	wantClosed(t, c)
}

func TestMetadataVersions(t *testing.T) {
	f := &fakes{created: map[string]map[int32][]cluster.BrokerID{}}
	w := newWire(t, newService(t, f, "num.partitions=3"))
	c := w.dial()
	for v := int16(0); v <= 12; v++ {
		req := kmsg.NewPtrMetadataRequest()
		req.Version = v
		resp := w.exchange(c, req).(*kmsg.MetadataResponse)
		if len(resp.Brokers) != 2 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("v%d: %d brokers, %d topics", v, len(resp.Brokers), len(resp.Topics))
		}
		if v >= 10 && resp.Topics[0].TopicID != [16]byte{1} {
			t.Errorf("v%d: no topic id", v)
		}
		req.Topics = []kmsg.MetadataRequestTopic{}
		if n := len(w.exchange(c, req).(*kmsg.MetadataResponse).Topics); (v == 0) != (n == 1) {
			t.Errorf("v%d: an empty list gives %d topics", v, n)
		}
	}
	ask := func(version int16, auto bool, rt kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
		req := kmsg.NewPtrMetadataRequest()
		req.Version, req.AllowAutoTopicCreation, req.Topics = version, auto, []kmsg.MetadataRequestTopic{rt}
		return w.exchange(c, req).(*kmsg.MetadataResponse).Topics[0]
	}
	for name, k := range map[string]struct {
		version int16
		auto    bool
		topic   kmsg.MetadataRequestTopic
		want    int16
	}{
		"by id":            {12, false, kmsg.MetadataRequestTopic{TopicID: [16]byte{1}}, 0},
		"by unknown id":    {12, false, kmsg.MetadataRequestTopic{TopicID: [16]byte{2}}, kerr.UnknownTopicID.Code},
		"bad name":         {12, true, kmsg.MetadataRequestTopic{Topic: ptr("a/b")}, kerr.InvalidTopicException.Code},
		"not to be made":   {12, false, kmsg.MetadataRequestTopic{Topic: ptr("quiet")}, kerr.UnknownTopicOrPartition.Code},
		"to be made":       {12, true, kmsg.MetadataRequestTopic{Topic: ptr("made")}, kerr.LeaderNotAvailable.Code},
		"old: always made": {1, false, kmsg.MetadataRequestTopic{Topic: ptr("old")}, kerr.LeaderNotAvailable.Code},
	} {
		if got := ask(k.version, k.auto, k.topic); got.ErrorCode != k.want {
			t.Errorf("%s: error %d, want %d", name, got.ErrorCode, k.want)
		}
	}
	if made := f.creations(); len(made) != 2 || len(made["made"]) != 3 {
		t.Errorf("created %v", made)
	}
}

func TestCreateTopicsChecks(t *testing.T) {
	f := &fakes{created: map[string]map[int32][]cluster.BrokerID{}}
	w := newWire(t, newService(t, f))
	topic := func(name string, partitions int32, factor int16) kmsg.CreateTopicsRequestTopic {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, factor
		return rt
	}
	config := topic("config", 1, 1)
	config.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: ptr("soon")}}
	both := topic("both", 1, 1)
	both.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
	dead := topic("dead", -1, -1)
	dead.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{7}}}
	cases := []struct {
		rt   kmsg.CreateTopicsRequestTopic
		want int16
	}{
		{topic("ok", 2, 2), kerr.RequestTimedOut.Code}, // the fake controller never elects leaders
		{topic("defaults", -1, -1), kerr.RequestTimedOut.Code},
		{topic("a b", 1, 1), kerr.InvalidTopicException.Code},
		{topic("none", 0, 1), kerr.InvalidPartitions.Code},
		{topic("many", 1<<30, 1), kerr.InvalidPartitions.Code},
		{topic("wide", 1, 3), kerr.InvalidReplicationFactor.Code},
		{topic("twice", 1, 1), kerr.InvalidRequest.Code},
		{topic("twice", 1, 1), kerr.InvalidRequest.Code},
		{config, kerr.InvalidConfig.Code},
		{both, kerr.InvalidRequest.Code},
		{dead, kerr.InvalidReplicaAssignment.Code},
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 1
	for _, c := range cases {
		req.Topics = append(req.Topics, c.rt)
	}
	resp := w.exchange(w.dial(), req).(*kmsg.CreateTopicsResponse)
	for i, c := range cases {
		got := resp.Topics[i]
		if got.Topic != c.rt.Topic || got.ErrorCode != c.want || got.Configs == nil {
			t.Errorf("%s: error %d, want %d; configs %v", got.Topic, got.ErrorCode, c.want, got.Configs)
		}
	}
	if made := f.creations(); len(made) != 2 || len(made["ok"]) != 2 || resp.Topics[0].TopicID != [16]byte{7} {
		t.Errorf("created %v", made)
	}
	req.ValidateOnly, req.Topics = true, req.Topics[:1]
	if resp := w.exchange(w.dial(), req).(*kmsg.CreateTopicsResponse); resp.Topics[0].ErrorCode != 0 || resp.Topics[0].NumPartitions != 2 {
		t.Errorf("validate only: %+v", resp.Topics[0])
	}
	f.passive.Store(true)
	if resp := w.exchange(w.dial(), req).(*kmsg.CreateTopicsResponse); resp.Topics[0].ErrorCode != kerr.NotController.Code {
		t.Errorf("not the controller: error %d", resp.Topics[0].ErrorCode)
	}
}

func TestUpdateMetadataFencing(t *testing.T) {
	w := newWire(t, newService(t, &fakes{}))
	send := func(controllerEpoch int32, brokerEpoch int64) int16 {
		req := clusterUpdate()
		req.ControllerEpoch, req.BrokerEpoch = controllerEpoch, brokerEpoch
		return w.exchange(w.dial(), req).(*kmsg.UpdateMetadataResponse).ErrorCode
	}
	for _, c := range []struct {
		controller int32
		broker     int64
		want       int16
	}{{2, 5, 0}, {2, -1, 0}, {2, 6, 0}, {2, 4, kerr.StaleBrokerEpoch.Code}, {1, 5, kerr.StaleControllerEpoch.Code}} {
		if got := send(c.controller, c.broker); got != c.want {
			t.Errorf("controller epoch %d, broker epoch %d: error %d, want %d", c.controller, c.broker, got, c.want)
		}
	}
}

func TestAllocateProducerIDs(t *testing.T) {
	f := &fakes{}
	w := newWire(t, newService(t, f))
	ask := func(broker int32) *kmsg.AllocateProducerIDsResponse {
		req := kmsg.NewPtrAllocateProducerIDsRequest()
		req.BrokerID, req.BrokerEpoch = broker, 7
		return w.exchange(w.dial(), req).(*kmsg.AllocateProducerIDsResponse)
	}
	if r := ask(2); r.ErrorCode != 0 || r.ProducerIDStart != 4000 || r.ProducerIDLen != 1000 {
		t.Errorf("%+v", r)
	}
	if r := ask(9); r.ErrorCode != kerr.BrokerIDNotRegistered.Code {
		t.Errorf("unknown broker: %+v", r)
	}
	f.passive.Store(true)
	if r := ask(2); r.ErrorCode != kerr.NotController.Code {
		t.Errorf("not the controller: %+v", r)
	}
}

// FuzzRequest throws bytes at every handler: whatever they are, nothing panics and exactly one answer is given.
func FuzzRequest(f *testing.F) {
	for _, d := range definitions() {
		for _, v := range []int16{d.min, d.max} {
			req := kmsg.RequestForKey(d.key)
			req.SetVersion(v)
			rest := []byte{0xff, 0xff}
			if req.IsFlexible() {
				rest = append(rest, 0)
			}
			f.Add(d.key, v, req.AppendTo(rest))
		}
	}
	p := produceRequest(-1, "t", 0, batch(2))
	f.Add(int16(0), int16(11), p.AppendTo([]byte{0xff, 0xff, 0}))
	s := newService(f, &fakes{})
	f.Fuzz(func(t *testing.T, key, version int16, rest []byte) {
		req := &server.Request{Key: key, Version: version, CorrelationID: 1, Rest: rest, Conn: &server.Conn{Listener: "PLAINTEXT"}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what waits for leaders gives up at once
		s.Serve(ctx, req)
		if !req.Answered() {
			t.Fatalf("%s v%d was not answered", kmsg.NameForKey(key), version)
		}
	})
}
