package zkserver

import (
	"bytes"
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"kctl/zkutil/zkserver/ztree"
)

// version is what the server says it is in srvr and mntr: the ZooKeeper release whose behaviour it follows.
const version = "3.9.3-kctl, built with " + runtime.Compiler

// stats are the counters of the four-letter commands.
type stats struct {
	received, sent, expired, rejected atomic.Int64
	count, sumUs, maxUs, minUs        atomic.Int64 // of request latency; minUs is offset by one, 0 is unset
}

func (s *stats) answered(took time.Duration) {
	us := took.Microseconds()
	s.count.Add(1)
	s.sumUs.Add(us)
	for m := s.maxUs.Load(); us > m && !s.maxUs.CompareAndSwap(m, us); m = s.maxUs.Load() {
	}
	for m := s.minUs.Load(); (m == 0 || us+1 < m) && !s.minUs.CompareAndSwap(m, us+1); m = s.minUs.Load() {
	}
}

// latency returns minimum, average and maximum in milliseconds.
func (s *stats) latency() (low, avg, high float64) {
	if n := s.count.Load(); n > 0 {
		avg = float64(s.sumUs.Load()) / float64(n) / 1000
	}
	return float64(max(s.minUs.Load()-1, 0)) / 1000, avg, float64(s.maxUs.Load()) / 1000
}

var fourLetterCommands = map[string]func(s *Server) []byte{
	"ruok": func(*Server) []byte { return []byte("imok") },
	"isro": func(*Server) []byte { return []byte("rw") },
	"srvr": func(s *Server) []byte { return s.srvr(false) },
	"stat": func(s *Server) []byte { return s.srvr(true) },
	"mntr": (*Server).mntr,
	"cons": (*Server).cons,
	"conf": (*Server).conf,
	"dump": (*Server).dump,
	"wchs": (*Server).wchs,
}

// fourLetter recognises an operator's command in the first bytes of a connection. Read as a frame length they
// would be over a gigabyte, so no request can look like one.
func fourLetter(first []byte) (func(s *Server) []byte, bool) {
	cmd, ok := fourLetterCommands[string(first)]
	return cmd, ok
}

func (s *Server) connections() []*conn {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].remote < out[j].remote })
	return out
}

func (s *Server) srvr(clients bool) []byte {
	var b bytes.Buffer
	conns := s.connections()
	fmt.Fprintf(&b, "Zookeeper version: %s\n", version)
	if clients {
		b.WriteString("Clients:\n")
		for _, c := range conns {
			fmt.Fprintf(&b, " /%s[1](queued=%d,recved=%d,sent=%d)\n", c.remote, c.pending.Load(), c.received.Load(), c.sent.Load())
		}
		b.WriteString("\n")
	}
	s.mu.RLock()
	nodes, zxid := s.tree.NodeCount(), s.tree.Zxid()
	s.mu.RUnlock()
	low, avg, high := s.stats.latency()
	fmt.Fprintf(&b, "Latency min/avg/max: %.3f/%.4f/%.3f\n", low, avg, high)
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n",
		s.stats.received.Load(), s.stats.sent.Load(), len(conns), s.queue.depth())
	fmt.Fprintf(&b, "Zxid: 0x%x\nMode: standalone\nNode count: %d\n", zxid, nodes)
	return b.Bytes()
}

func (s *Server) mntr() []byte {
	var b bytes.Buffer
	conns := len(s.connections())
	s.mu.RLock()
	watches, _, _ := s.tree.WatchCounts()
	nodes, ephemerals, sessions, size := s.tree.NodeCount(), s.tree.EphemeralCount(), len(s.tree.Sessions()), s.tree.DataSize()
	s.mu.RUnlock()
	low, avg, high := s.stats.latency()
	for _, v := range []struct {
		name  string
		value any
	}{
		{"version", version},
		{"server_state", "standalone"},
		{"avg_latency", fmt.Sprintf("%.4f", avg)},
		{"max_latency", fmt.Sprintf("%.3f", high)},
		{"min_latency", fmt.Sprintf("%.3f", low)},
		{"packets_received", s.stats.received.Load()},
		{"packets_sent", s.stats.sent.Load()},
		{"num_alive_connections", conns},
		{"outstanding_requests", s.queue.depth()},
		{"znode_count", nodes},
		{"watch_count", watches},
		{"ephemerals_count", ephemerals},
		{"approximate_data_size", size},
		{"global_sessions", sessions},
		{"local_sessions", 0},
		{"uptime", time.Since(s.start).Milliseconds()},
		{"connection_rejected", s.stats.rejected.Load()},
		{"stale_sessions_expired", s.stats.expired.Load()},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", v.name, v.value)
	}
	return b.Bytes()
}

func (s *Server) cons() []byte {
	var b bytes.Buffer
	for _, c := range s.connections() {
		fmt.Fprintf(&b, " /%s[1](queued=%d,recved=%d,sent=%d", c.remote, c.pending.Load(), c.received.Load(), c.sent.Load())
		if id := c.session.Load(); id != 0 {
			fmt.Fprintf(&b, ",sid=0x%x,lop=%s,est=%d,lcxid=0x%x,llat=%.3f,maxlat=%.3f", id, opName(c.lastOp.Load()), c.since.UnixMilli(),
				uint32(c.lastXid.Load()), float64(c.lastLatency.Load())/1000, float64(c.maxLatency.Load())/1000)
		}
		b.WriteString(")\n")
	}
	b.WriteString("\n")
	return b.Bytes()
}

func (s *Server) conf() []byte {
	var b bytes.Buffer
	_, port, _ := strings.Cut(s.Addr(), "]:")
	if port == "" {
		port = s.Addr()[strings.LastIndexByte(s.Addr(), ':')+1:]
	}
	fmt.Fprintf(&b, "clientPort=%s\ndataDir=%s\ndataLogDir=%s\n", port, s.cfg.DataDir, s.cfg.DataDir)
	fmt.Fprintf(&b, "tickTime=%d\nmaxClientCnxns=%d\n", s.cfg.TickTime.Milliseconds(), s.cfg.MaxConnections)
	fmt.Fprintf(&b, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n", s.cfg.MinSessionTimeout.Milliseconds(), s.cfg.MaxSessionTimeout.Milliseconds())
	fmt.Fprintf(&b, "jute.maxbuffer=%d\nsnapCount=%d\nfsync=%t\nserverId=0\n", s.cfg.JuteMaxBuffer, s.cfg.SnapshotEvery, s.cfg.Fsync)
	return b.Bytes()
}

func (s *Server) dump() []byte {
	var b bytes.Buffer
	now := s.clock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	sessions := s.tree.Sessions()
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(sessions), len(sessions))
	for _, info := range sessions {
		fmt.Fprintf(&b, "1 expire in %dms:\n\t0x%x\n", info.Deadline.Sub(now).Milliseconds(), info.ID)
	}
	owning := 0
	var e bytes.Buffer
	for _, info := range sessions {
		if info.Ephemerals == 0 {
			continue
		}
		owning++
		fmt.Fprintf(&e, "0x%x:\n", info.ID)
		for _, path := range s.tree.Ephemerals(info.ID) {
			fmt.Fprintf(&e, "\t%s\n", path)
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n%s", owning, e.Bytes())
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (1)/(%d):\n", len(s.owners))
	return b.Bytes()
}

func (s *Server) wchs() []byte {
	s.mu.RLock()
	watches, paths, sessions := s.tree.WatchCounts()
	s.mu.RUnlock()
	return fmt.Appendf(nil, "%d connections watching %d paths\nTotal watches:%d\n\n", sessions, paths, watches)
}

var opNames = map[int32]string{
	opCreate: "CREA", opCreate2: "CREA", opCreateContainer: "CREA", opCreateTTL: "CREA", opDelete: "DELE", opExists: "EXIS",
	opGetData: "GETD", opSetData: "SETD", opGetACL: "GETA", opSetACL: "SETA", opGetChildren: "GETC", opGetChildren2: "GETC",
	opSync: "SYNC", opPing: "PING", opCheck: "CHEC", opMulti: "MULT", opMultiRead: "MLTR", opAuth: "AUTH", opSetWatches: "SETW",
	opSetWatches2: "STW2", opAddWatch: "ADDW", opRemoveWatches: "REMW", opCheckWatches: "CHKW", opGetEphemerals: "GETE",
	opAllChildren: "GETACN", opWhoAmI: "HOMI", opCloseSession: "CLOS",
}

func opName(op int32) string {
	if n, ok := opNames[op]; ok {
		return n
	}
	return "NA"
}

// publicID is an identity as whoami shows it: without the password digest.
func publicID(id ztree.Identity) string {
	user, _, _ := strings.Cut(id.ID, ":")
	if id.Scheme != "digest" {
		return id.ID
	}
	return user
}
