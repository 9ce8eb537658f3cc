package records

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kctl/admin"
)

func record() *admin.Record {
	return &admin.Record{
		Topic: "t", Partition: 3, Offset: 42, Timestamp: time.UnixMilli(1_700_000_000_123), Key: []byte("k"), Value: []byte("v%v"),
		Headers: []admin.Header{{Key: "a", Value: []byte("1")}, {Key: "b"}},
	}
}

func TestFormat(t *testing.T) {
	for format, want := range map[string]string{
		`%v\n`:                              "v%v\n",
		`%t/%p@%o %k=%v %s`:                 "t/3@42 k=v%v 3",
		`%T\t%D`:                            "1700000000123\t2023-11-14T22:13:20.123Z",
		`%h %% \\ \0`:                       "a=1,b= % \\ \x00",
		``:                                  "",
		`%K %S %v{hex} %k{base64} %v{json}`: `1 3 762576 aw== "v%v"`,
		`%v%{x}`:                            "v%v{x}",
	} {
		write, err := compileFormat(format)
		if err != nil {
			t.Fatalf("%q: %v", format, err)
		}
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		if err := write(w, record()); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush()
		if b.String() != want {
			t.Errorf("%q: got %q, want %q", format, b.String(), want)
		}
	}
	for _, bad := range []string{`%`, `\`, `%x`, `\q`, `%v{rot13}`} {
		if _, err := compileFormat(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	r := record()
	if err := writeJSON(w, r); err != nil {
		t.Fatal(err)
	}
	r.Value, r.Key = []byte{0xff}, nil
	if err := writeJSON(w, r); err != nil {
		t.Fatal(err)
	}
	_ = w.Flush()
	lines := strings.Split(b.String(), "\n")
	if !strings.Contains(lines[0], `"key":"k","value":"v%v","encoding":"utf-8","headers":[{"key":"a","value":"1"},{"key":"b","value":null}]`) {
		t.Error(lines[0])
	}
	if !strings.Contains(lines[1], `"key":null,"value":"/w==","encoding":"base64","headers":[{"key":"a","value":"MQ=="}`) {
		t.Error(lines[1])
	}
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	r := bufio.NewReaderSize(strings.NewReader("a\r\n\n"+long+"\nlast"), 16)
	for _, want := range []string{"a", "", long, "last"} {
		got, err := readLine(r)
		if string(got) != want || (err != nil) != (want == "last") {
			t.Errorf("got %d bytes %v, want %d", len(got), err, len(want))
		}
	}
	if _, err := readLine(bufio.NewReader(strings.NewReader(strings.Repeat("x", lineMax+1)))); err == nil {
		t.Error("a line without end is taken")
	}
}

func TestSplit(t *testing.T) {
	o := &produceOptions{separator: "::", fixed: map[string]bool{}}
	for in, want := range map[string]string{"a::b::c": "a|b::c", "abc": "|abc", "::b": "|b", "a::": "a|"} {
		k, v := o.split([]byte(in))
		if string(k)+"|"+string(v) != want {
			t.Errorf("%q: %q %q", in, k, v)
		}
	}
}

// TestInput: lines with headers, a fixed key and a null marker, and the JSON of consume, become the records they stand for.
func TestInput(t *testing.T) {
	o := &produceOptions{separator: ":", headersFirst: true, null: "NULL", fixed: map[string]bool{"null": true}, headers: []admin.Header{{Key: "all", Value: []byte("x")}}}
	r, err := o.record([]byte("a=1,b=\tk:v:w"))
	if err != nil || string(r.Key) != "k" || string(r.Value) != "v:w" || len(r.Headers) != 3 || r.Headers[0].Key != "a" || string(r.Headers[2].Value) != "x" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = o.record([]byte("\tNULL:NULL")); err != nil || r.Key != nil || r.Value != nil || len(r.Headers) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err = o.record([]byte("no headers")); err == nil {
		t.Error("a line without headers is taken")
	}
	o = &produceOptions{key: "fixed", fixed: map[string]bool{"key": true}}
	if r, err = o.record([]byte("a:b")); err != nil || string(r.Key) != "fixed" || string(r.Value) != "a:b" {
		t.Errorf("%+v %v", r, err)
	}
	o = &produceOptions{input: "json"}
	for _, want := range []*admin.Record{
		record(), {Key: []byte{0xff}, Value: nil, Timestamp: time.UnixMilli(1), Headers: []admin.Header{{Key: "h", Value: []byte{0}}}}, {Value: []byte(`"`)},
	} {
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		if err := writeJSON(w, want); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush()
		got, err := o.record(bytes.TrimSpace(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		same := *want
		same.Topic, same.Partition, same.Offset = "", 0, 0
		if !got.Timestamp.Equal(same.Timestamp) && same.Timestamp.UnixMilli() > 0 {
			t.Errorf("timestamp %v, want %v", got.Timestamp, same.Timestamp)
		}
		same.Timestamp = got.Timestamp
		if d := cmp.Diff(&same, got); d != "" {
			t.Error(d)
		}
	}
	for _, bad := range []string{"", "null", "[]", `{"value":1}`, `{"value":"x","encoding":"rot13"}`, `{"value":"%%","encoding":"base64"}`, `{"valeu":"x"}`, `{} {}`} {
		if r, err := o.record([]byte(bad)); err == nil {
			t.Errorf("%q is %+v", bad, r)
		}
	}
}
