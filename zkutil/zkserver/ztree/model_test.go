package ztree

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kctl/zkutil/zkop"
)

// model is a naive ZooKeeper: whole-state copies instead of pending records, searches instead of indexes.
type model struct {
	nodes    map[string]modelNode
	sessions map[int64]bool
	watches  []modelWatch
	zxid     int64
	fired    []FiredWatch
}

type modelNode struct {
	data    []byte
	stat    zkop.Stat
	created int32 // children ever
}

type modelWatch struct {
	session int64
	path    string
	child   bool
}

func newModel() *model {
	m := &model{nodes: map[string]modelNode{}, sessions: map[int64]bool{}}
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		m.nodes[p] = modelNode{data: []byte{}}
	}
	m.nodes["/zookeeper/config"] = modelNode{data: []byte{}, stat: zkop.Stat{Aversion: -1}}
	return m
}

func (m *model) clone() *model {
	c := *m
	c.nodes = maps.Clone(m.nodes)
	c.watches = slices.Clone(m.watches)
	c.fired = slices.Clone(m.fired)
	return &c
}

func (m *model) children(path string) []string {
	prefix := strings.TrimSuffix(path, "/") + "/"
	var out []string
	for p := range m.nodes {
		if rest, ok := strings.CutPrefix(p, prefix); ok && rest != "" && !strings.Contains(rest, "/") {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

func (m *model) stat(path string) zkop.Stat {
	n := m.nodes[path]
	n.stat.NumChildren = int32(len(m.children(path)))
	n.stat.DataLength = int32(len(n.data))
	n.stat.Cversion = n.created*2 - n.stat.NumChildren
	return n.stat
}

func modelParent(path string) string {
	p := path[:strings.LastIndex(path, "/")]
	if p == "" {
		return "/"
	}
	return p
}

// fire removes the matching watches in the order in which they were set; a session that watches the same path
// in both ways is told of a deletion once, at its first watch.
func (m *model) fire(path string, typ zkop.EventType) {
	var kept []modelWatch
	told := map[int64]bool{}
	for _, w := range m.watches {
		hit := w.path == path && (typ == zkop.NodeDeleted || w.child == (typ == zkop.NodeChildrenChanged))
		if !hit {
			kept = append(kept, w)
			continue
		}
		if !told[w.session] {
			m.fired = append(m.fired, FiredWatch{Session: w.session, Event: zkop.Event{Type: typ, Path: path}, Zxid: m.zxid})
		}
		told[w.session] = true
	}
	m.watches = kept
}

func (m *model) watch(session int64, path string, child bool) {
	w := modelWatch{session, path, child}
	if !slices.Contains(m.watches, w) {
		m.watches = append(m.watches, w)
	}
}

func (m *model) read(session int64, req zkop.Request) zkop.Response {
	_, ok := m.nodes[req.Path]
	if req.Kind == zkop.Exists && req.Watch {
		m.watch(session, req.Path, false)
	}
	if !ok {
		return zkop.Response{Err: zkop.ErrNoNode}
	}
	if req.Kind == zkop.Check {
		return zkop.Response{Err: m.cond(req)}
	}
	r := zkop.Response{Stat: m.stat(req.Path)}
	switch req.Kind {
	case zkop.Get:
		r.Data = m.nodes[req.Path].data
	case zkop.Children:
		r.Children = m.children(req.Path)
	}
	if req.Watch && req.Kind != zkop.Exists {
		m.watch(session, req.Path, req.Kind == zkop.Children)
	}
	return r
}

func (m *model) write(at, session int64, req zkop.Request) zkop.Response {
	switch req.Kind {
	case zkop.Create:
		return m.create(at, session, req)
	case zkop.Delete:
		if special(req.Path) {
			return zkop.Response{Err: zkop.ErrBadArguments}
		}
		if err := m.cond(req); err != nil {
			return zkop.Response{Err: err}
		}
		if len(m.children(req.Path)) > 0 {
			return zkop.Response{Err: zkop.ErrNotEmpty}
		}
		m.remove(req.Path)
		return zkop.Response{}
	case zkop.Set:
		if err := m.cond(req); err != nil {
			return zkop.Response{Err: err}
		}
		n := m.nodes[req.Path]
		n.data, n.stat.Mzxid, n.stat.Mtime = req.Data, m.zxid, at
		n.stat.Version++
		m.nodes[req.Path] = n
		m.fire(req.Path, zkop.NodeDataChanged)
		return zkop.Response{Stat: m.stat(req.Path)}
	default:
		return zkop.Response{Err: m.cond(req)}
	}
}

func (m *model) cond(req zkop.Request) error {
	n, ok := m.nodes[req.Path]
	if !ok {
		return zkop.ErrNoNode
	}
	if req.Version != zkop.AnyVersion && req.Version != n.stat.Version {
		return zkop.ErrBadVersion
	}
	return nil
}

func (m *model) create(at, session int64, req zkop.Request) zkop.Response {
	parent := modelParent(req.Path)
	p, ok := m.nodes[parent]
	if !ok {
		return zkop.Response{Err: zkop.ErrNoNode}
	}
	path, owner := req.Path, int64(0)
	if req.Mode == zkop.PersistentSequential || req.Mode == zkop.EphemeralSequential {
		path = fmt.Sprintf("%s%010d", path, p.created)
	}
	if req.Mode == zkop.Ephemeral || req.Mode == zkop.EphemeralSequential {
		owner = session
	}
	if _, exists := m.nodes[path]; exists {
		return zkop.Response{Err: zkop.ErrNodeExists}
	}
	if p.stat.EphemeralOwner != 0 {
		return zkop.Response{Err: zkop.ErrNoChildrenForEphemeral}
	}
	p.created++
	p.stat.Pzxid = m.zxid
	m.nodes[parent] = p
	m.nodes[path] = modelNode{data: req.Data, stat: zkop.Stat{
		Czxid: m.zxid, Mzxid: m.zxid, Pzxid: m.zxid, Ctime: at, Mtime: at, EphemeralOwner: owner,
	}}
	m.fire(path, zkop.NodeCreated)
	m.fire(parent, zkop.NodeChildrenChanged)
	return zkop.Response{Path: path, Stat: m.stat(path)}
}

func (m *model) remove(path string) {
	delete(m.nodes, path)
	parent := modelParent(path)
	p := m.nodes[parent]
	p.stat.Pzxid = m.zxid
	m.nodes[parent] = p
	m.fire(path, zkop.NodeDeleted)
	m.fire(parent, zkop.NodeChildrenChanged)
}

func (m *model) do(at, session int64, req zkop.Request) (zkop.Response, []FiredWatch) {
	m.fired = nil
	if !m.sessions[session] {
		return zkop.Response{Err: zkop.ErrSessionExpired}, nil
	}
	if !IsWrite(&req) {
		return m.read(session, req), nil
	}
	try := m.clone()
	try.zxid++
	var resp zkop.Response
	if req.Kind != zkop.Multi {
		resp = try.write(at, session, req)
	} else {
		resp.Results = make([]zkop.Response, len(req.Ops))
		for i, op := range req.Ops {
			resp.Results[i] = try.write(at, session, op)
			if err := resp.Results[i].Err; err != nil {
				for j := range resp.Results {
					resp.Results[j] = zkop.Response{Err: zkop.ErrRolledBack}
				}
				resp.Results[i].Err, resp.Err = err, err
				break
			}
		}
	}
	if resp.Err == nil {
		*m = *try
	}
	return resp, m.fired
}

func (m *model) closeSession(id int64) []FiredWatch {
	m.fired = nil
	m.zxid++
	m.watches = slices.DeleteFunc(m.watches, func(w modelWatch) bool { return w.session == id })
	var own []string
	for p, n := range m.nodes {
		if n.stat.EphemeralOwner == id {
			own = append(own, p)
		}
	}
	slices.Sort(own)
	for _, p := range own {
		m.remove(p)
	}
	delete(m.sessions, id)
	return m.fired
}

var (
	genPath = rapid.SampledFrom([]string{"/a", "/b", "/a/x", "/a/y", "/a/x/1", "/b/s", "/zookeeper", "/zookeeper/q", "/a/x0000000001"})
	genMode = rapid.SampledFrom([]zkop.Mode{zkop.Persistent, zkop.Persistent, zkop.Ephemeral, zkop.PersistentSequential, zkop.EphemeralSequential})
)

func genWrite(rt *rapid.T) zkop.Request {
	req := zkop.Request{
		Kind: rapid.SampledFrom([]zkop.Kind{zkop.Create, zkop.Create, zkop.Set, zkop.Delete, zkop.Check}).Draw(rt, "kind"),
		Path: genPath.Draw(rt, "path"), Version: rapid.Int32Range(-1, 2).Draw(rt, "version"),
	}
	if req.Kind == zkop.Create || req.Kind == zkop.Set {
		req.Data = rapid.SampledFrom([][]byte{nil, {}, []byte("data")}).Draw(rt, "data")
	}
	if req.Kind == zkop.Create {
		req.Mode = genMode.Draw(rt, "mode")
	}
	return req
}

func genRequest(rt *rapid.T) zkop.Request {
	switch rapid.IntRange(0, 9).Draw(rt, "class") {
	case 0, 1, 2:
		return zkop.Request{
			Kind: rapid.SampledFrom([]zkop.Kind{zkop.Get, zkop.Exists, zkop.Children}).Draw(rt, "kind"),
			Path: rapid.SampledFrom([]string{"/", "/a", "/b", "/a/x", "/a/x/1", "/b/s"}).Draw(rt, "path"), Watch: rapid.Bool().Draw(rt, "watch"),
		}
	case 3, 4:
		req := zkop.Request{Kind: zkop.Multi}
		for range rapid.IntRange(1, 5).Draw(rt, "ops") {
			req.Ops = append(req.Ops, genWrite(rt))
		}
		return req
	default:
		return genWrite(rt)
	}
}

// normal drops what the contract leaves open: a sole check answers with the stat from the tree.
func normal(r zkop.Response, req zkop.Request) zkop.Response {
	if req.Kind == zkop.Check {
		r.Stat = zkop.Stat{}
	}
	return r
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree, m := New(Options{}), newModel()
		ms := int64(1_000_000)
		var ids []int64
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			ms += int64(rapid.IntRange(0, 5).Draw(rt, "ms"))
			at := time.UnixMilli(ms)
			switch c := rapid.IntRange(0, 15).Draw(rt, "step"); {
			case c == 0 || len(ids) == 0:
				id := tree.OpenSession(at, time.Hour)
				ids = append(ids, id)
				m.zxid++
				m.sessions[id] = true
			case c == 1:
				id := rapid.SampledFrom(ids).Draw(rt, "closed")
				fired := slices.Clone(tree.CloseSession(at, id))
				if m.sessions[id] {
					compare(rt, "close", fired, m.closeSession(id))
				}
			default:
				id, req := rapid.SampledFrom(ids).Draw(rt, "session"), genRequest(rt)
				resp, fired := tree.Do(at, id, nil, req)
				wantResp, wantFired := m.do(ms, id, req)
				compare(rt, fmt.Sprintf("response to %+v", req), normal(resp, req), normal(wantResp, req))
				compare(rt, "fired", slices.Clone(fired), wantFired)
			}
			checkState(rt, tree, m)
		}
	})
}

func compare(rt *rapid.T, what string, got, want any) {
	equal := cmp.Options{
		cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || errors.Is(b, a) }),
		cmp.Transformer("nilSlice", func(s []string) string { return strings.Join(s, ",") }),
		cmp.Transformer("nilFired", func(s []FiredWatch) string {
			s = slices.Clone(s)
			for i := range s {
				s[i].acl = nil
			}
			return fmt.Sprint(len(s), s)
		}),
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		rt.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func checkState(rt *rapid.T, tree *Tree, m *model) {
	if tree.NodeCount() != len(m.nodes) {
		rt.Fatalf("%d nodes, want %d", tree.NodeCount(), len(m.nodes))
	}
	size := int64(0)
	tree.Walk("/", func(path string, data []byte, stat zkop.Stat) bool {
		n, ok := m.nodes[path]
		if !ok || string(n.data) != string(data) || stat != m.stat(path) {
			rt.Fatalf("%s: %+v, want %+v", path, stat, m.stat(path))
		}
		size += int64(len(path) + len(data))
		return true
	})
	for id := range m.sessions {
		var own []string
		for p, n := range m.nodes {
			if n.stat.EphemeralOwner == id {
				own = append(own, p)
			}
		}
		slices.Sort(own)
		if !slices.Equal(own, tree.Ephemerals(id)) {
			rt.Fatalf("ephemerals %v, want %v", tree.Ephemerals(id), own)
		}
	}
	if tree.DataSize() != size || tree.Zxid() != m.zxid || len(tree.queue) != 0 || len(tree.pending) != 0 {
		rt.Fatalf("size %d want %d, zxid %d want %d, pending %d", tree.DataSize(), size, tree.Zxid(), m.zxid, len(tree.queue))
	}
}

// TestBatchesAndRecovery: preparing writes in batches gives the responses, events and state of doing them one
// by one; so do replay of the encoded transactions, and a snapshot taken anywhere plus replay of the rest.
func TestBatchesAndRecovery(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		single, batched := New(Options{}), New(Options{})
		var log [][]byte
		var image *Image
		imageAt := 0
		at := time.UnixMilli(5000)
		var ids []int64
		for range rapid.IntRange(1, 25).Draw(rt, "batches") {
			type step struct {
				txn   *Txn
				resp  zkop.Response
				fired []FiredWatch
			}
			var steps []step
			var closed []int64
			for range rapid.IntRange(1, 6).Draw(rt, "size") {
				var st step
				c := rapid.IntRange(0, 12).Draw(rt, "step")
				switch {
				case len(ids) == 0 || c == 0:
					st.txn = batched.PrepareOpenSession(at, time.Minute)
					single.OpenSession(at, time.Minute)
				case c == 1:
					id := rapid.SampledFrom(ids).Draw(rt, "closed")
					st.txn = batched.PrepareCloseSession(at, id)
					st.fired = slices.Clone(single.CloseSession(at, id))
					closed = append(closed, id)
				default:
					id, req := rapid.SampledFrom(ids).Draw(rt, "session"), genRequest(rt)
					if !IsWrite(&req) {
						continue
					}
					var refused, resp zkop.Response
					st.txn, refused = batched.Prepare(at, id, nil, &req)
					resp, fired := single.Do(at, id, nil, req)
					if st.txn == nil {
						compare(rt, "refusal", refused, resp)
					}
					st.resp, st.fired = resp, slices.Clone(fired)
				}
				if st.txn != nil {
					steps = append(steps, st)
				}
			}
			for _, st := range steps {
				b := AppendTxn(nil, st.txn)
				log = append(log, b)
				resp, fired := batched.Apply(st.txn)
				compare(rt, "response", resp, st.resp)
				compare(rt, "fired", slices.Clone(fired), st.fired)
				if st.txn.Kind == TxnOpenSession {
					ids = append(ids, st.txn.Session)
				}
			}
			ids = slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(closed, id) && len(ids) > 1 })
			if err := Equal(single, batched); err != nil {
				rt.Fatal(err)
			}
			for _, id := range ids { // the same watches in both
				if _, ok := single.SessionTimeout(id); ok {
					req := zkop.Request{Kind: zkop.Exists, Path: genPath.Draw(rt, "watched"), Watch: true}
					single.Read(id, nil, &req)
					batched.Read(id, nil, &req)
				}
			}
			if image == nil && rapid.IntRange(0, 5).Draw(rt, "freeze") == 0 {
				image, imageAt = batched.Freeze(), len(log)
			}
		}
		recoverFrom(rt, batched, New(Options{}), log)
		if image != nil {
			var b strings.Builder
			if _, err := image.WriteTo(&b); err != nil {
				rt.Fatal(err)
			}
			restored, err := Restore([]byte(b.String()), at, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			recoverFrom(rt, batched, restored, log[imageAt:])
		}
	})
}

func recoverFrom(rt *rapid.T, want, from *Tree, log [][]byte) {
	for _, b := range log {
		txn, err := DecodeTxn(b)
		if err != nil {
			rt.Fatal(err)
		}
		if err := from.Replay(txn); err != nil {
			rt.Fatal(err)
		}
	}
	if err := Equal(want, from); err != nil {
		rt.Fatal(err)
	}
	for _, s := range want.Sessions() {
		if !slices.Equal(want.Ephemerals(s.ID), from.Ephemerals(s.ID)) {
			rt.Fatal("ephemerals differ")
		}
	}
	if want.DataSize() != from.DataSize() {
		rt.Fatal("sizes differ")
	}
}
