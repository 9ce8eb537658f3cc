package admin

import (
	"bytes"
	"io"
	"testing"
)

// stream is a connection whose other side has already said everything.
type stream struct {
	io.Reader
	io.Writer
}

// FuzzMechanisms: whatever answers to a login's handshake, nothing panics and nothing large is allocated.
func FuzzMechanisms(f *testing.F) {
	f.Add([]byte{0, 0, 0, 17, 0, 0, 0, 1, 0, 33, 0, 0, 0, 1, 0, 5, 'P', 'L', 'A', 'I', 'N'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := askMechanisms(stream{bytes.NewReader(data), io.Discard})
		if err == nil && len(r.SupportedMechanisms) > answerMax {
			t.Fatalf("%d mechanisms of %d bytes", len(r.SupportedMechanisms), len(data))
		}
	})
}

// FuzzTrustStore: a file that is no store is an error of the setting that names it.
func FuzzTrustStore(f *testing.F) {
	f.Add([]byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 0}, "pw")
	f.Add([]byte{0x30, 0x82, 0, 4, 2, 1, 3, 0x30}, "")
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "")
	f.Fuzz(func(t *testing.T, data []byte, password string) {
		format, ok := formatOf(data)
		if !ok {
			return
		}
		s := &store{setting: "ssl.truststore", file: "x", data: data, format: format, password: password}
		if _, err := s.trusted(); err != nil {
			refused(t, err)
		}
		if _, err := s.identity(""); err != nil {
			refused(t, err)
		}
	})
}
