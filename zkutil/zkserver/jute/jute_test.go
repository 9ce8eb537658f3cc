package jute

import (
	"errors"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	b := AppendBool(nil, true)
	b = AppendInt(b, -7)
	b = AppendLong(b, 1<<40)
	b = AppendBuffer(b, nil)
	b = AppendBuffer(b, []byte{})
	b = AppendBuffer(b, []byte("xyz"))
	b = AppendStrings(b, []string{"a", "", "ccc"})
	d := NewDecoder(b)
	if !d.Bool() || d.Int() != -7 || d.Long() != 1<<40 {
		t.Fatal("numbers")
	}
	if v := d.Buffer(); v != nil {
		t.Fatalf("null buffer: %v", v)
	}
	if v := d.Buffer(); v == nil || len(v) != 0 {
		t.Fatalf("empty buffer: %v", v)
	}
	if v := d.String(); v != "xyz" {
		t.Fatal(v)
	}
	if v := d.Strings(); len(v) != 3 || v[2] != "ccc" {
		t.Fatal(v)
	}
	if d.Err() != nil || len(d.Rest()) != 0 {
		t.Fatal(d.Err(), d.Rest())
	}
}

func TestMalformed(t *testing.T) {
	for name, tc := range map[string]struct {
		b    []byte
		read func(d *Decoder)
	}{
		"short int":      {[]byte{0, 0, 1}, func(d *Decoder) { d.Int() }},
		"short buffer":   {AppendInt(nil, 5), func(d *Decoder) { d.Buffer() }},
		"negative":       {AppendInt(nil, -2), func(d *Decoder) { d.Buffer() }},
		"huge vector":    {AppendInt(nil, 1<<30), func(d *Decoder) { d.Strings() }},
		"negative count": {AppendInt(nil, -5), func(d *Decoder) { d.Count(1) }},
		"nothing":        {nil, func(d *Decoder) { d.Bool() }},
	} {
		d := NewDecoder(tc.b)
		tc.read(&d)
		if !errors.Is(d.Err(), ErrMalformed) {
			t.Errorf("%s: err = %v", name, d.Err())
		}
		if d.Long() != 0 || d.String() != "" || d.Strings() != nil || d.Bool() {
			t.Errorf("%s: values after an error", name)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'}, []byte{4, 5, 3})
	f.Add(AppendStrings(nil, []string{"x", "y"}), []byte{5})
	f.Fuzz(func(t *testing.T, b, script []byte) {
		d := NewDecoder(b)
		for _, s := range script {
			before := len(d.Rest())
			switch s % 6 {
			case 0:
				d.Bool()
			case 1:
				d.Int()
			case 2:
				d.Long()
			case 3:
				if v := d.Buffer(); len(v) > before {
					t.Fatal("buffer longer than the input")
				}
			case 4:
				if n := d.Count(4); n*4 > before {
					t.Fatal("count beyond the input")
				}
			case 5:
				d.Strings()
			}
			if len(d.Rest()) > before {
				t.Fatal("rest grew")
			}
		}
	})
}
