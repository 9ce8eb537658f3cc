package zkutil

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// scripted is a connection whose input is given and whose output is kept.
type scripted struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *scripted) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *scripted) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2181} }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

func newScripted(input []byte) (*wireConn, *scripted) {
	s := &scripted{in: bytes.NewReader(input)}
	w := &wireConn{
		Conn: s, generation: 1, gate: &gate{wake: make(chan struct{}, 1)}, handshake: time.Second, maxReply: 1 << 20,
		watches: &watchTable{}, onSession: func(*wireConn, time.Duration, int64) {}, onContact: func(time.Time) {}, in: bufio.NewReader(s),
	}
	w.gate.generation.Store(1)
	return w, s
}

func frame(body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(all))), all...)
}

func int32s(v ...int32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func sessionReply(id int64) []byte {
	return frame(int32s(0, 6000), binary.BigEndian.AppendUint64(nil, uint64(id)), int32s(16), make([]byte, 16), []byte{0})
}

// replyFrame is header and body: xid, zxid, code.
func replyFrame(xid int32, code int32, body []byte) []byte {
	return frame(int32s(xid), make([]byte, 8), int32s(code), body)
}

func request(xid, op int32) []byte { return frame(int32s(xid, op), []byte("\x00\x00\x00\x01/\x00")) }

func open(t testing.TB, w *wireConn) {
	t.Helper()
	if _, err := w.Write(frame(make([]byte, 40))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(w, make([]byte, 4+37)); err != nil {
		t.Fatal(err)
	}
}

func TestHandshakeRefusesWhatIsNotZooKeeper(t *testing.T) {
	for name, in := range map[string][]byte{
		"http":              []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"two gigabytes":     {0x7f, 0xff, 0xff, 0xff, 0},
		"negative":          {0xff, 0xff, 0xff, 0xff, 0},
		"short":             frame(make([]byte, 8)),
		"password too long": frame(int32s(0, 6000), make([]byte, 8), int32s(1<<30), make([]byte, 20)),
	} {
		w, _ := newScripted(in)
		if _, err := w.Write(frame(make([]byte, 40))); err != nil {
			t.Fatal(err)
		}
		_, err := w.Read(make([]byte, 4))
		if !errors.Is(err, ErrNotZooKeeper) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReplyLengthsAreChecked(t *testing.T) {
	stat := make([]byte, statLen)
	good := map[int32][]byte{
		opGetData:      append(int32s(2), append([]byte("ab"), stat...)...),
		opExists:       stat,
		opGetACL:       slices.Concat(int32s(1, 31, 1), []byte("a"), int32s(2), []byte("bc"), stat),
		opGetChildren2: append(int32s(1, 1), append([]byte("a"), stat...)...),
		opMulti:        append(int32s(opCreate), append([]byte{0}, append(int32s(-1, 1), append([]byte("a"), append(int32s(-1), append([]byte{1}, int32s(-1)...)...)...)...)...)...),
	}
	for op, body := range good {
		if !checkReply(op, body) {
			t.Errorf("operation %d: a good body was refused", op)
		}
		for cut := range body {
			if op == opMulti && cut >= len(body)-9+9 {
				continue
			}
			if checkReply(op, body[:cut]) {
				t.Errorf("operation %d: accepted with %d of %d bytes", op, cut, len(body))
			}
		}
	}
	for _, body := range [][]byte{int32s(0x7fffffff), int32s(-1), int32s(-2)} {
		if checkReply(opGetChildren2, append(body, stat...)) {
			t.Errorf("children count %v was accepted", body)
		}
		if checkReply(opGetACL, append(body, stat...)) {
			t.Errorf("ACL count %v was accepted", body)
		}
	}
	w, _ := newScripted(append(sessionReply(1), replyFrame(7, 0, int32s(0x7fffffff))...))
	open(t, w)
	if _, err := w.Write(request(7, opGetChildren2)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Read(make([]byte, 4)); !errors.Is(err, ErrNotZooKeeper) {
		t.Errorf("error %v", err)
	}
}

func TestTooLargeReplyFailsOnlyItsRequest(t *testing.T) {
	big := replyFrame(7, 0, make([]byte, 2<<20))
	w, _ := newScripted(append(append(sessionReply(1), big...), replyFrame(8, 0, make([]byte, statLen))...))
	open(t, w)
	for xid, op := range map[int32]int32{7: opGetData, 8: opExists} {
		if _, err := w.Write(request(xid, op)); err != nil {
			t.Fatal(err)
		}
	}
	head := make([]byte, 4+replyHeaderLen)
	if _, err := io.ReadFull(w, head); err != nil {
		t.Fatal(err)
	}
	if code := int32(binary.BigEndian.Uint32(head[16:])); code != codeMarshalling {
		t.Errorf("code %d", code)
	}
	if _, err := io.ReadFull(w, make([]byte, 4+replyHeaderLen+statLen)); err != nil {
		t.Errorf("the reply behind it: %v", err)
	}
}

func TestStaleRequestIsNotSent(t *testing.T) {
	w, s := newScripted(append(sessionReply(1), replyFrame(7, 0, make([]byte, statLen))...))
	open(t, w)
	w.gate.generation.Store(2) // the holder of the turn believes in another connection
	s.out.Reset()
	p := request(7, opSetData)
	if n, err := w.Write(p); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
	if op := int32(binary.BigEndian.Uint32(s.out.Bytes()[8:])); op != opExists {
		t.Errorf("operation %d was sent", op)
	}
	if w.gate.issued.Load() != 0 {
		t.Error("counted as issued")
	}
	head := make([]byte, 4+replyHeaderLen)
	if _, err := io.ReadFull(w, head); err != nil {
		t.Fatal(err)
	}
	if size, code := binary.BigEndian.Uint32(head), int32(binary.BigEndian.Uint32(head[16:])); size != replyHeaderLen || code != codeConnectionLoss {
		t.Errorf("size %d, code %d", size, code)
	}
}

func TestContactIsTheSendTime(t *testing.T) {
	var contacts []time.Time
	w, _ := newScripted(append(append(sessionReply(1), replyFrame(1, 0, nil)...), replyFrame(2, 0, nil)...))
	w.onContact = func(at time.Time) { contacts = append(contacts, at) }
	open(t, w)
	before := time.Now()
	for _, xid := range []int32{1, 2} {
		if _, err := w.Write(request(xid, opSetWatches)); err != nil {
			t.Fatal(err)
		}
	}
	sent := []time.Time{w.sent[0].at, w.sent[1].at}
	for range 2 {
		if _, err := io.ReadFull(w, make([]byte, 4+replyHeaderLen)); err != nil {
			t.Fatal(err)
		}
	}
	if len(contacts) != 3 || contacts[0].After(before) || contacts[1] != sent[0] || contacts[2] != sent[1] {
		t.Errorf("contacts %v, sent %v", contacts, sent)
	}
}

// FuzzWireRead feeds arbitrary bytes behind a handshake: no panic, no more memory than came over the wire
// warrants, and what passes is safe for go-zk to decode.
func FuzzWireRead(f *testing.F) {
	stat := make([]byte, statLen)
	f.Add(replyFrame(1, 0, append(int32s(2), append([]byte("ab"), stat...)...)), int32(opGetData))
	f.Add(replyFrame(1, 0, append(int32s(1, 1), append([]byte("a"), stat...)...)), int32(opGetChildren2))
	f.Add(replyFrame(1, -101, nil), int32(opExists))
	f.Add(replyFrame(-1, 0, append(int32s(3, 3, 1), '/')), int32(opExists))
	f.Add(replyFrame(-2, 0, nil), int32(opPing))
	f.Add(append(replyFrame(1, 0, append(int32s(opCreate), 0, 0, 0, 0, 0)), replyFrame(2, 0, nil)...), int32(opMulti))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff}, int32(opMulti))
	f.Fuzz(func(t *testing.T, in []byte, op int32) {
		w, _ := newScripted(append(sessionReply(1), in...))
		open(t, w)
		if _, err := w.Write(request(1, op)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 256)
		read := 0
		for {
			n, err := w.Read(buf)
			read += n
			if err != nil {
				break
			}
		}
		if read > len(in)+4+replyHeaderLen {
			t.Errorf("%d bytes came out of %d", read, len(in))
		}
		if cap(w.frame) > w.maxReply+4096 {
			t.Errorf("a frame of %d bytes was allocated", cap(w.frame))
		}
	})
}

func TestTranslate(t *testing.T) {
	if err := translate(zk.ErrNoServer); !errors.Is(err, errOutcome()) {
		t.Errorf("%v", err)
	}
	if err := translate(errors.New("unknown error: -6")); err == nil || err.Error() != "zookeeper: operation not supported by the server" {
		t.Errorf("%v", err)
	}
	if err := translate(errors.New("unknown error: -4")); !errors.Is(err, ErrNotSent) {
		t.Errorf("%v", err)
	}
	for _, login := range []error{errors.New("unknown error: -124"), zk.ErrAuthFailed} {
		if err := translate(login); !errors.Is(err, ErrAuthFailed) || errors.Is(err, errOutcome()) {
			t.Errorf("%v: %v", login, err)
		}
	}
	if err := translate(errors.New("unknown error: -77")); err == nil || errors.Is(err, errOutcome()) {
		t.Errorf("%v", err)
	}
}
