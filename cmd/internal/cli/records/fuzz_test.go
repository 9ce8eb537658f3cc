package records

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"testing"

	"kctl/admin"
)

// FuzzFormat: each format is refused or prints a record.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{`%v\n`, `%t-%p@%o %T %D %k=%v %h %s %%\x`, `%`, `\`, `%q`, "\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		write, err := compileFormat(format)
		if err != nil {
			return
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		if err := write(w, &admin.Record{Topic: "t", Value: []byte{0xff}}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzLines: the records of an input are its lines, and nothing of it is lost.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a:1\nb:2\n"), ":")
	f.Add([]byte("a\r\n\r\n\nlast"), "")
	f.Add([]byte{}, "::")
	f.Fuzz(func(t *testing.T, data []byte, separator string) {
		o := &produceOptions{separator: separator}
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		var lines [][]byte
		for {
			line, err := readLine(r)
			if err != nil && err != io.EOF {
				t.Fatal(err)
			}
			if err == nil || len(line) > 0 {
				lines = append(lines, line)
				if key, value := o.split(line); len(key)+len(value) > len(line) {
					t.Fatalf("%q becomes %q and %q", line, key, value)
				}
			}
			if err == io.EOF {
				break
			}
		}
		want := bytes.Split(data, []byte("\n"))
		for i := range want[:len(want)-1] {
			want[i] = bytes.TrimSuffix(want[i], []byte("\r"))
		}
		if last := len(want) - 1; len(want[last]) == 0 {
			want = want[:last]
		}
		if !slices.EqualFunc(lines, want, bytes.Equal) {
			t.Fatalf("%q becomes %q, want %q", data, lines, want)
		}
	})
}

// FuzzRecordJSON: an object is refused, or its record prints as an object that gives the same record.
func FuzzRecordJSON(f *testing.F) {
	for _, s := range []string{`{"key":"a","value":null,"headers":[{"key":"h","value":"x"}]}`, `{"value":"/w==","encoding":"base64"}`, `null`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := recordOfJSON(line)
		if err != nil {
			return
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		if err := writeJSON(w, r); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush()
		again, err := recordOfJSON(bytes.TrimSpace(out.Bytes()))
		if err != nil || !bytes.Equal(again.Key, r.Key) || !bytes.Equal(again.Value, r.Value) || len(again.Headers) != len(r.Headers) {
			t.Fatalf("%q: %+v, then %+v, %v", line, r, again, err)
		}
	})
}
