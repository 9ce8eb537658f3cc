package controllershell

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/ztree"
	"kctl/zkutil/znode"
)

// ensemble is an in-memory ZooKeeper for tests in virtual time.
type ensemble struct {
	mu      sync.Mutex // guards all below
	tree    *ztree.Tree
	clients map[int64]*memClient // by session
	admin   int64
}

func newEnsemble(t *testing.T) *ensemble {
	e := &ensemble{tree: ztree.New(ztree.Options{}), clients: map[int64]*memClient{}}
	e.admin = e.tree.OpenSession(time.Now(), 1000*time.Hour)
	for _, path := range znode.PersistentPaths() {
		e.must(t, zkop.Request{Kind: zkop.Create, Path: path})
	}
	return e
}

func (e *ensemble) do(session int64, reqs ...zkop.Request) []zkop.Response {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]zkop.Response, len(reqs))
	for i, r := range reqs {
		var fired []ztree.FiredWatch
		out[i], fired = e.tree.Do(time.Now(), session, nil, r)
		e.fire(fired)
	}
	return out
}

func (e *ensemble) fire(fired []ztree.FiredWatch) {
	for _, f := range fired {
		if c := e.clients[f.Session]; c != nil {
			ev := f.Event
			c.feed <- zkutil.Notice{Watch: &ev, Session: c.session}
		}
	}
}

func (e *ensemble) must(t *testing.T, req zkop.Request) zkop.Response {
	t.Helper()
	resp := e.do(e.admin, req)[0]
	if resp.Err != nil {
		t.Fatalf("admin %s: %v", req.Path, resp.Err)
	}
	return resp
}

// memClient is one broker's client of an ensemble.
type memClient struct {
	e       *ensemble
	session zkutil.Session // guarded by e.mu
	feed    chan zkutil.Notice
}

func (e *ensemble) connect() *memClient {
	c := &memClient{e: e, feed: make(chan zkutil.Notice, 1<<16)}
	c.open()
	return c
}

// open starts the client's next session.
func (c *memClient) open() {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	id := c.e.tree.OpenSession(time.Now(), 1000*time.Hour)
	c.session = zkutil.Session{Epoch: c.session.Epoch + 1, ID: id, State: zkutil.Connected}
	c.e.clients[id] = c
	c.feed <- zkutil.Notice{Session: c.session}
}

// become changes what the client believes about its session; Expired ends it on the server too.
func (c *memClient) become(state zkutil.SessionState) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if state == zkutil.Expired || state == zkutil.Closed {
		delete(c.e.clients, c.session.ID)
		c.e.fire(c.e.tree.CloseSession(time.Now(), c.session.ID))
	}
	c.session.State = state
	c.feed <- zkutil.Notice{Session: c.session}
}

func (c *memClient) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	now := c.Session()
	if ctx.Err() != nil || now.State != zkutil.Connected || session != 0 && session != now.Epoch {
		out := make([]zkop.Response, len(reqs))
		for i := range out {
			out[i].Err = zkop.ErrOutcomeUnknown
			if session != now.Epoch || now.State == zkutil.Expired {
				out[i].Err = zkop.ErrSessionExpired
			}
		}
		return out
	}
	return c.e.do(now.ID, reqs...)
}

func (c *memClient) Session() zkutil.Session {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.session
}

func (c *memClient) Subscribe() (<-chan zkutil.Notice, func()) { return c.feed, func() {} }

func (c *memClient) Close() error { c.become(zkutil.Closed); return nil }

// fakeBroker answers control requests over any connection it is handed.
type fakeBroker struct {
	id cluster.BrokerID

	mu     sync.Mutex // guards all below
	seen   []kmsg.Request
	hang   chan struct{} // not nil: requests wait until it is closed
	refuse bool          // connections are refused
	oneOff bool          // each connection is closed after one answer
	codes  int16         // of every partition in LeaderAndISR
}

func (f *fakeBroker) set(change func(*fakeBroker)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// requests returns what the broker was sent so far.
func (f *fakeBroker) requests() []kmsg.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func (f *fakeBroker) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		req, correlation, err := readRequest(r)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.seen = append(f.seen, req)
		hang, once := f.hang, f.oneOff
		f.mu.Unlock()
		if hang != nil {
			<-hang
		}
		if _, err := conn.Write(frame(f.answer(req), correlation)); err != nil || once {
			return
		}
	}
}

func (f *fakeBroker) answer(req kmsg.Request) kmsg.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := req.ResponseKind()
	switch req := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		for _, t := range req.TopicStates {
			out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
			for _, p := range t.PartitionStates {
				out.Partitions = append(out.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition, ErrorCode: f.codes})
			}
			resp.(*kmsg.LeaderAndISRResponse).Topics = append(resp.(*kmsg.LeaderAndISRResponse).Topics, out)
		}
	case *kmsg.StopReplicaRequest:
		for _, t := range req.Topics {
			for _, p := range t.PartitionStates {
				resp.(*kmsg.StopReplicaResponse).Partitions = append(resp.(*kmsg.StopReplicaResponse).Partitions,
					kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition})
			}
		}
	}
	return resp
}

func readRequest(r io.Reader) (kmsg.Request, int32, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, 0, err
	}
	b := kbin.Reader{Src: body}
	key, version, correlation := b.Int16(), b.Int16(), b.Int32()
	b.NullableString()
	req := kmsg.RequestForKey(key)
	if req == nil {
		return nil, 0, errors.New("unknown key")
	}
	req.SetVersion(version)
	if req.IsFlexible() {
		kmsg.SkipTags(&b)
	}
	return req, correlation, req.ReadFrom(b.Src)
}

func frame(resp kmsg.Response, correlation int32) []byte {
	out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(correlation))
	if resp.IsFlexible() {
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// network connects dialers to fake brokers by address.
type network struct {
	work    sync.WaitGroup
	mu      sync.Mutex             // guards the rest
	brokers map[string]*fakeBroker // by address
	open    []net.Conn
}

func (n *network) add(addr string, f *fakeBroker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.brokers[addr] = f
}

func (n *network) dial(_ context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	f := n.brokers[addr]
	n.mu.Unlock()
	if f == nil {
		return nil, errors.New("no route to " + addr)
	}
	f.mu.Lock()
	refused := f.refuse
	f.mu.Unlock()
	if refused {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	n.mu.Lock()
	n.open = append(n.open, server)
	n.mu.Unlock()
	n.work.Go(func() { f.serve(server) })
	return client, nil
}

func (n *network) close() {
	n.mu.Lock()
	for _, c := range n.open {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.work.Wait()
}
