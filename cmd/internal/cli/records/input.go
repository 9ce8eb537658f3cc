package records

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kctl/admin"
)

// record makes the record of one line.
func (o *produceOptions) record(line []byte) (*admin.Record, error) {
	if o.input == "json" {
		r, err := recordOfJSON(line)
		if err == nil {
			r.Headers = append(r.Headers, o.headers...)
		}
		return r, err
	}
	r := &admin.Record{}
	if o.headersFirst {
		list, rest, ok := bytes.Cut(line, []byte("\t"))
		if !ok {
			return nil, errors.New("it has no tab: with --headers a line begins with headers and a tab")
		}
		line = rest
		for _, h := range strings.Split(string(list), ",") {
			if k, v, _ := strings.Cut(h, "="); k != "" {
				r.Headers = append(r.Headers, admin.Header{Key: k, Value: []byte(v)})
			}
		}
	}
	r.Headers = append(r.Headers, slices.Clone(o.headers)...)
	r.Key, r.Value = o.split(line)
	if o.fixed["key"] {
		r.Key = []byte(o.key)
	}
	if o.fixed["null"] {
		if string(r.Key) == o.null {
			r.Key = nil
		}
		if string(r.Value) == o.null {
			r.Value = nil
		}
	}
	return r, nil
}

// recordOfJSON reads the object of one record; an unknown field is an error, so that a mistyped one is not lost.
func recordOfJSON(line []byte) (*admin.Record, error) {
	var d *Document
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, err
	}
	if d == nil {
		return nil, errors.New("it is no object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the object")
	}
	var bad error
	text := func(s *string) []byte {
		switch {
		case s == nil:
			return nil
		case d.Encoding == "base64":
			b, err := base64.StdEncoding.DecodeString(*s)
			bad = errors.Join(bad, err)
			return b
		}
		return []byte(*s)
	}
	if d.Encoding != "" && d.Encoding != "utf-8" && d.Encoding != "base64" {
		return nil, fmt.Errorf("encoding %q is not utf-8 or base64", d.Encoding)
	}
	r := &admin.Record{Key: text(d.Key), Value: text(d.Value)}
	if d.Timestamp > 0 {
		r.Timestamp = time.UnixMilli(d.Timestamp)
	}
	for _, h := range d.Headers {
		r.Headers = append(r.Headers, admin.Header{Key: h.Key, Value: text(h.Value)})
	}
	return r, bad
}
