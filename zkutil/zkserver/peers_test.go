//go:build peers

package zkserver

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/zkutil/zkserver/jute"
	"kctl/zkutil/zktest/realzk"
)

// side is one of the two servers of the differential test with the connections of the script.
type side struct {
	t     *testing.T
	addr  string
	conns []*rawClient
	// Transaction ids and session ids differ between servers; these give them comparable names.
	steps    map[int64]int
	zxids    []int64 // per step: the last zxid seen
	sessions map[int64]int
	opened   int
	events   []string
}

func newSide(t *testing.T, addr string, conns int) *side {
	s := &side{t: t, addr: addr, steps: map[int64]int{}, sessions: map[int64]int{0: 0}}
	for range conns {
		s.conns = append(s.conns, nil)
		s.open(len(s.conns) - 1)
	}
	return s
}

func (s *side) open(i int) {
	s.conns[i] = startRaw(s.t, s.addr, 30*time.Second)
	s.opened++
	s.sessions[s.conns[i].session] = s.opened
}

// step is one request of the script.
type step struct {
	conn    int
	op      int32
	body    []byte
	seen    int  // setWatches: the step whose zxid it claims to have seen last
	reopen  bool // after a closeSession
	reattch bool // cut the connection and come back
}

// run executes the step and returns what it showed, in comparable form.
func (s *side) run(n int, st step) string {
	s.events = nil
	c := s.conns[st.conn]
	out := ""
	switch {
	case st.reattch:
		_ = c.nc.Close()
		again := dialRaw(s.t, s.addr)
		again.session, again.password, again.seen, again.xid = c.session, c.password, c.seen, c.xid
		if !again.handshake(30 * time.Second) {
			s.t.Fatal("cannot re-attach")
		}
		s.conns[st.conn] = again
	default:
		body := st.body
		if st.op == opSetWatches || st.op == opSetWatches2 {
			body = append(jute.AppendLong(nil, s.zxids[st.seen]), body...)
		}
		c.send(st.op, body)
		r := s.reply(st.conn, c.xid)
		if _, known := s.steps[r.zxid]; isWriteOp(st.op) && r.code == 0 && !known { // a failed multi has no zxid here
			s.steps[r.zxid] = n
		}
		out = fmt.Sprintf("code %d", r.code)
		if r.code == 0 {
			out += " " + s.body(st.op, &r.d)
			if rest := r.d.Rest(); len(rest) > 0 || r.d.Err() != nil {
				out += fmt.Sprintf(" rest %x %v", rest, r.d.Err())
			}
		}
	}
	if st.reopen {
		s.events = nil // ZooKeeper tells a closing session of its own ephemerals; this server does not
		c.mustClose()
		s.open(st.conn)
	}
	for i, c := range s.conns { // a ping's answer comes after all events so far
		_ = c.writeFrame(jute.AppendInt(jute.AppendInt(nil, xidPing), opPing))
		s.reply(i, xidPing)
	}
	s.zxids = append(s.zxids, s.conns[st.conn].seen)
	slices.Sort(s.events)
	return out + " events " + strings.Join(s.events, " ")
}

// reply collects events until the reply with that xid.
func (s *side) reply(conn int, xid int32) rawReply {
	for {
		r, err := s.conns[conn].receive()
		if err != nil {
			s.t.Fatal(err)
		}
		if r.xid == xid {
			return r
		}
		if r.xid != xidWatch {
			s.t.Fatalf("xid %d, want %d", r.xid, xid)
		}
		s.events = append(s.events, fmt.Sprintf("%d:%d/%d%s", conn, r.d.Int(), r.d.Int(), r.d.String()))
	}
}

func isWriteOp(op int32) bool {
	switch op {
	case opCreate, opCreate2, opCreateContainer, opDelete, opSetData, opSetACL, opMulti, opCloseSession:
		return true
	}
	return false
}

func (s *side) stat(d *jute.Decoder) string {
	zxid := func() string {
		z := d.Long()
		if n, ok := s.steps[z]; ok {
			return fmt.Sprint("#", n)
		}
		if z == 0 {
			return "0"
		}
		return "other"
	}
	out := fmt.Sprint("c", zxid(), " m", zxid())
	ctime, mtime := d.Long(), d.Long()
	out += fmt.Sprintf(" same-time %v v%d cv%d av%d", ctime == mtime, d.Int(), d.Int(), d.Int())
	out = strings.Replace(out, "same-time true", "", 1)
	out = strings.Replace(out, "same-time false", "", 1)
	owner := d.Long()
	if n, ok := s.sessions[owner]; ok {
		out += fmt.Sprint(" owner ", n)
	} else {
		out += fmt.Sprintf(" owner 0x%x", uint64(owner))
	}
	return out + fmt.Sprint(" len ", d.Int(), " kids ", d.Int(), " p", zxid())
}

func sorted(v []string) string {
	slices.Sort(v)
	return fmt.Sprintf("%q", v)
}

func (s *side) body(op int32, d *jute.Decoder) string {
	switch op {
	case opCreate, opSync:
		return d.String()
	case opCreate2, opCreateContainer:
		return d.String() + " " + s.stat(d)
	case opExists, opSetData, opSetACL:
		return s.stat(d)
	case opGetData:
		data := d.Buffer()
		return fmt.Sprintf("%q null %v %s", data, data == nil, s.stat(d))
	case opGetACL:
		out := ""
		for range d.Count(12) {
			out += fmt.Sprint(d.Int(), d.String(), ":", d.String(), " ")
		}
		return out + s.stat(d)
	case opGetChildren, opGetEphemerals:
		return sorted(d.Strings())
	case opGetChildren2:
		return sorted(d.Strings()) + " " + s.stat(d)
	case opAllChildren, opAddWatch:
		return fmt.Sprint(d.Int())
	case opWhoAmI:
		var out []string
		for range d.Count(8) {
			out = append(out, d.String()+":"+d.String())
		}
		return sorted(out)
	case opMulti, opMultiRead:
		out := ""
		for {
			op, done, code := d.Int(), d.Bool(), d.Int()
			out += fmt.Sprintf("[%d %v %d ", op, done, code)
			if done || d.Err() != nil {
				return out
			}
			if op == opError {
				out += fmt.Sprint(d.Int())
			} else {
				out += s.body(op, d)
			}
		}
	}
	return ""
}

var diffPaths = []string{"/a", "/a", "/b", "/a/x", "/a/y", "/a/x/1", "/b/s", "/a/", "/", "nope", "/zookeeper", "/c//d", "/zookeeper/config", "/zookeeper/quota", "/.."}

func randomACL(r *rand.Rand) []byte {
	acls := [][3]any{
		{int32(31), "world", "anyone"}, {int32(31), "world", "anyone"}, {int32(31), "world", "anyone"}, {int32(31), "auth", ""},
		{int32(1), "world", "anyone"}, {int32(31), "digest", "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="}, {int32(9), "ip", "127.0.0.1"},
		{int32(31), "ip", "10.0.0.0/8"}, {int32(31), "foo", "x"}, {int32(31), "digest", "x"},
	}
	n := []int{0, 1, 1, 1, 1, 1, 1, 2}[r.Intn(8)]
	b := jute.AppendInt(nil, int32(n))
	for range n {
		a := acls[r.Intn(len(acls))]
		if r.Intn(3) > 0 {
			a = acls[0]
		}
		b = jute.AppendInt(b, a[0].(int32))
		b = jute.AppendString(jute.AppendString(b, a[1].(string)), a[2].(string))
	}
	return b
}

func randomData(r *rand.Rand) []byte {
	return [][]byte{nil, {}, []byte("d"), []byte("longer data")}[r.Intn(4)]
}

func randomOp(r *rand.Rand, op int32) []byte {
	path := diffPaths[r.Intn(len(diffPaths))]
	if r.Intn(3) > 0 {
		path = diffPaths[r.Intn(7)]
	}
	b := jute.AppendString(nil, path)
	version := int32(r.Intn(4) - 1)
	if r.Intn(2) == 0 {
		version = -1
	}
	switch op {
	case opCreate, opCreate2:
		b = append(jute.AppendBuffer(b, randomData(r)), randomACL(r)...)
		return jute.AppendInt(b, int32([]int{0, 0, 0, 1, 2, 3}[r.Intn(6)]))
	case opCreateContainer:
		return jute.AppendInt(append(jute.AppendBuffer(b, randomData(r)), randomACL(r)...), 4)
	case opDelete, opCheck:
		return jute.AppendInt(b, version)
	case opSetData:
		return jute.AppendInt(jute.AppendBuffer(b, randomData(r)), version)
	case opSetACL: // not of the root: nobody might get in again
		b = jute.AppendString(nil, diffPaths[r.Intn(7)])
		return jute.AppendInt(append(b, randomACL(r)...), version)
	case opExists, opGetData, opGetChildren, opGetChildren2:
		return jute.AppendBool(b, r.Intn(2) == 0)
	case opAddWatch:
		return jute.AppendInt(b, int32(r.Intn(2)))
	case opRemoveWatches: // any: 3.8 and 3.9 differ in the other kinds, and in checkWatches
		return jute.AppendInt(b, 3)
	case opGetACL, opSync, opAllChildren, opGetEphemerals:
		return b
	}
	return nil
}

func randomStep(r *rand.Rand, n int) step {
	st := step{conn: r.Intn(3)}
	ops := []int32{
		opCreate, opCreate, opCreate, opCreate2, opCreateContainer, opDelete, opDelete, opSetData, opSetData, opSetACL, opExists, opExists,
		opGetData, opGetData, opGetChildren, opGetChildren2, opGetACL, opMulti, opMulti, opMultiRead, opSync, opAllChildren, opGetEphemerals,
		opRemoveWatches, opSetWatches, opSetWatches2, opWhoAmI, opAuth, opCloseSession, 0,
	}
	st.op = ops[r.Intn(len(ops))]
	switch st.op {
	case 0:
		st.reattch = true
	case opCloseSession:
		st.reopen = true
	case opAuth:
		who := []string{"bob:secret", "eve:x"}[r.Intn(2)]
		st.body = jute.AppendString(jute.AppendString(jute.AppendInt(nil, 0), "digest"), who)
	case opSetWatches, opSetWatches2:
		if n == 0 {
			return randomStep(r, n)
		}
		st.seen = r.Intn(n)
		lists := 3
		if st.op == opSetWatches2 {
			lists = 5
		}
		for i := range lists {
			var paths []string
			for i < 3 && r.Intn(3) > 0 { // 3.8 confuses persistent with one-shot watches of the same path
				paths = append(paths, diffPaths[r.Intn(7)])
			}
			st.body = jute.AppendStrings(st.body, paths)
		}
	case opMulti, opMultiRead:
		kinds := []int32{opCreate, opCreate, opCreate2, opDelete, opSetData, opCheck}
		if st.op == opMultiRead {
			kinds = []int32{opGetData, opGetChildren}
		}
		for range r.Intn(4) + 1 {
			op := kinds[r.Intn(len(kinds))]
			body := randomOp(r, op)
			if st.op == opMultiRead {
				body[len(body)-1] = 0
			}
			st.body = append(multiHeader(st.body, op, false, -1), body...)
		}
		st.body = multiHeader(st.body, -1, true, -1)
	default:
		st.body = randomOp(r, st.op)
	}
	return st
}

func startReal(t *testing.T) string {
	t.Helper()
	jars, err := realzk.JarsFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := realzk.Start(ctx, realzk.Options{Jars: jars, Dir: t.TempDir(), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.Addr(0)
}

// TestSameAsApacheZooKeeper runs random scripts on this server and on Apache ZooKeeper: error codes, results,
// stats and watch events must be the same after every request.
func TestSameAsApacheZooKeeper(t *testing.T) {
	for seed := range int64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := startServer(t, Config{DataDir: t.TempDir()})
			ours, theirs := newSide(t, s.Addr(), 3), newSide(t, startReal(t), 3)
			r := rand.New(rand.NewSource(seed))
			var trace []string
			fine, fired := 0, 0
			for n := range 1500 {
				st := randomStep(r, n)
				got, want := ours.run(n, st), theirs.run(n, st)
				trace = append(trace, fmt.Sprintf("%d: conn %d op %d reattach %v body %q -> %s", n, st.conn, st.op, st.reattch, st.body, want))
				if got != want {
					t.Fatalf("step %d\n ours   %s\n theirs %s\n%s", n, got, want, strings.Join(trace[max(0, len(trace)-12):], "\n"))
				}
				if strings.HasPrefix(want, "code 0 ") {
					fine++
				}
				if !strings.HasSuffix(want, "events ") {
					fired++
				}
			}
			t.Logf("%d requests succeeded, %d fired watches", fine, fired)
			if fine < 300 || fired < 30 {
				t.Error("the script shows too little")
			}
		})
	}
}

// TestJavaClient drives the server with Apache ZooKeeper's own command line client.
func TestJavaClient(t *testing.T) {
	jars, err := realzk.JarsFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, Config{DataDir: t.TempDir()})
	script := []string{
		"ls /", "create /a hello", "create -e -s /a/e- x", "create -s /a/p- y", "get -s /a", "set -v 0 /a new", "set -v 0 /a again", "stat /a",
		"getAcl /a", "addauth digest bob:secret", "create /priv data auth::rwcda", "getAcl /priv", "get /priv", "ls -R /a", "create -c /cont",
		"create -t 100000 /ttl x", "getEphemerals", "getAllChildrenNumber /a", "whoami", "sync /", "addWatch -m PERSISTENT_RECURSIVE /a", "create /a/w",
		"delete -v 0 /a/w", "removewatches /a", "deleteall /a", "delete /nope", "setAcl /priv world:anyone:r", "set /priv zzz", "ls -w /", "create /last",
		"quit",
	}
	cmd := exec.CommandContext(t.Context(), "java", "-cp", filepath.Join(jars, "*"), "org.apache.zookeeper.ZooKeeperMain", "-server", s.Addr())
	cmd.Stdin = strings.NewReader(strings.Join(script, "\n") + "\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && !strings.Contains(out.String(), "Created /last") {
		t.Fatal(err, out.String())
	}
	for _, want := range []string{
		"[zookeeper]", "Created /a", "Created /a/e-0000000000", "Created /a/p-0000000001", "cversion = 2", "numChildren = 2", "dataVersion = 1",
		"version No is not valid : /a", "'world,'anyone", "'digest,'bob:fyVmFCwVbTJYrznoSu1koqYEYF0=", "\ndata\n", "/a/p-0000000001", "Created /cont",
		"Created /ttl", "[/a/e-0000000000]", "digest: bob", "Sync is OK", "type:NodeCreated path:/a/w", "type:NodeDeleted path:/a/w",
		"Node does not exist: /nope", "Insufficient permission : /priv", "type:NodeChildrenChanged path:/", "Created /last",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the client did not print %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
