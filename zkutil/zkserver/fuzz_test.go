package zkserver

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"kctl/zkutil/zkserver/jute"
	"kctl/zkutil/zkserver/ztree"
)

// scripted is a peer that sends fixed bytes, reads everything and then hangs up.
type scripted struct {
	io.Reader
	written int
}

func (s *scripted) Write(b []byte) (int, error)      { s.written += len(b); return len(b), nil }
func (*scripted) Close() error                       { return nil }
func (*scripted) LocalAddr() net.Addr                { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (*scripted) RemoteAddr() net.Addr               { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (*scripted) SetDeadline(time.Time) error        { return nil }
func (*scripted) SetReadDeadline(time.Time) error    { return nil }
func (*scripted) SetWriteDeadline(t time.Time) error { return nil }

func framed(bodies ...[]byte) []byte {
	var b []byte
	for _, body := range bodies {
		b = append(jute.AppendInt(b, int32(len(body))), body...)
	}
	return b
}

func requestFrame(op int32, body []byte) []byte {
	return framed(append(jute.AppendInt(jute.AppendInt(nil, 1), op), body...))
}

// FuzzConnection gives a connection arbitrary bytes, before and after a handshake: nothing may panic, hang or
// break the tree.
func FuzzConnection(f *testing.F) {
	connect := framed(connectFrame(0, time.Second, 0, make([]byte, passwordSize)))
	f.Add([]byte("ruok"), false)
	f.Add(connect, false)
	for _, b := range [][]byte{
		requestFrame(opCreate, bodyCreate("/a", []byte("x"), 3)), requestFrame(opCreateTTL, append(bodyCreate("/t", nil, 5), 0, 0, 0, 0, 0, 0, 0, 9)),
		requestFrame(opGetData, bodyPath("/", true)), requestFrame(opGetChildren2, bodyPath("/", true)), requestFrame(opExists, bodyPath("/q", true)),
		requestFrame(opSetData, bodySet("/zookeeper", nil, 0)), requestFrame(opDelete, bodyDelete("/a")),
		requestFrame(opMulti, multiHeader(append(multiHeader(nil, opCreate, false, -1), bodyCreate("/m", nil, 0)...), -1, true, -1)),
		requestFrame(opMultiRead, multiHeader(append(multiHeader(nil, opGetData, false, -1), bodyPath("/", true)...), -1, true, -1)),
		requestFrame(opSetWatches2, jute.AppendStrings(jute.AppendStrings(jute.AppendStrings(jute.AppendStrings(jute.AppendStrings(jute.AppendLong(nil, 0), []string{"/"}), []string{"/n"}), []string{"/"}), []string{"/"}), []string{"/"})),
		requestFrame(opAddWatch, jute.AppendInt(jute.AppendString(nil, "/"), 1)), requestFrame(opRemoveWatches, jute.AppendInt(jute.AppendString(nil, "/"), 3)),
		requestFrame(opAuth, jute.AppendBuffer(jute.AppendString(jute.AppendInt(nil, 0), "digest"), []byte("a:b"))),
		requestFrame(opGetACL, jute.AppendString(nil, "/")), requestFrame(opGetEphemerals, jute.AppendString(nil, "/")),
		requestFrame(opAllChildren, jute.AppendString(nil, "/")), requestFrame(opWhoAmI, nil), requestFrame(opPing, nil), requestFrame(opCloseSession, nil),
		requestFrame(opSync, jute.AppendString(nil, "/")), requestFrame(opSetACL, jute.AppendInt(jute.AppendInt(jute.AppendString(nil, "/"), 0), -1)),
	} {
		f.Add(b, true)
	}
	cfg := Config{JuteMaxBuffer: 1 << 17, MaxWatches: 1000}
	if err := cfg.setDefaults(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, session bool) {
		if session {
			b = append(bytes.Clone(connect), b...)
		}
		s := &Server{
			cfg: cfg, log: cfg.Logger, queue: newQueue(), owners: make(map[int64]*conn), conns: make(map[*conn]struct{}),
			start: time.Now(), tree: ztree.New(ztree.Options{}), secret: make([]byte, secretSize),
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		defer ln.Close()
		s.ln = ln // its address shows in conf
		s.wg.Go(func() {
			if err := s.commitLoop(); err != nil {
				t.Error(err)
			}
		})
		peer := &scripted{Reader: bytes.NewReader(b)}
		s.serve(newConn(s, peer))
		s.queue.close()
		s.wg.Wait()
		if len(s.owners) != 0 || s.bigFrames.Load() != 0 {
			t.Fatalf("%d owners, %d bytes of large frames left", len(s.owners), s.bigFrames.Load())
		}
		if w, _, _ := s.tree.WatchCounts(); w != 0 {
			t.Fatalf("%d watches left", w)
		}
		var image bytes.Buffer
		if _, err := s.tree.Freeze().WriteTo(&image); err != nil {
			t.Fatal(err)
		}
		restored, err := ztree.Restore(image.Bytes(), time.Now(), ztree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := ztree.Equal(s.tree, restored); err != nil {
			t.Fatal(err)
		}
	})
}
