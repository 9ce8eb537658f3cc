package records

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

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
		`%v\n`:              "v%v\n",
		`%t/%p@%o %k=%v %s`: "t/3@42 k=v%v 3",
		`%T\t%D`:            "1700000000123\t2023-11-14T22:13:20.123Z",
		`%h %% \\ \0`:       "a=1,b= % \\ \x00",
		``:                  "",
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
	for _, bad := range []string{`%`, `\`, `%x`, `\q`} {
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
	o := &produceOptions{separator: "::"}
	for in, want := range map[string]string{"a::b::c": "a|b::c", "abc": "|abc", "::b": "|b", "a::": "a|"} {
		k, v := o.split([]byte(in))
		if string(k)+"|"+string(v) != want {
			t.Errorf("%q: %q %q", in, k, v)
		}
	}
}
