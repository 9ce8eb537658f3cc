package output_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"kctl/admin/cputime"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/output"
)

type row struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	IDs   []int32 `json:"ids"`
}

var kind = rows.Kind[row]{
	Name: "Row", Title: "rows", ID: func(r row) string { return r.Name },
	Columns: []rows.Column[row]{
		{Name: "NAME", Cell: func(r row) string { return r.Name }},
		{Name: "COUNT", Right: true, Cell: func(r row) string { return fmt.Sprint(r.Count) }},
		{Name: "IDS", Wide: true, Cell: func(r row) string { return rows.IntList(r.IDs) }},
	},
}

var items = []row{{"a", 1, []int32{3, 1, 2}}, {"leader_epoch", 100, nil}}

func print(t *testing.T, p output.Printer, list []row) string {
	t.Helper()
	var b bytes.Buffer
	p.Out = &b
	if err := output.List(&p, kind, list, []rows.ErrorRow{{Object: "broker 3", Message: "down"}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestListFormats(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    output.Printer
		list []row
		want string
	}{
		{"table", output.Printer{Format: output.Table}, items, "NAME          COUNT\na                 1\nleader_epoch    100\n"},
		{"no headers", output.Printer{Format: output.Table, NoHeaders: true}, items, "a               1\nleader_epoch  100\n"},
		{"wide", output.Printer{Format: output.Wide}, items, "NAME          COUNT  IDS\na                 1  3,1,2\nleader_epoch    100  none\n"},
		{"name", output.Printer{Format: output.Name}, items, "a\nleader_epoch\n"},
		{"empty table", output.Printer{Format: output.Table}, nil, "NAME  COUNT\n"},
		{"terminal", output.Printer{Format: output.Table, TTY: true}, items[:1], "╭──────┬───────╮\n│ NAME │ COUNT │\n├──────┼───────┤\n│ a    │     1 │\n╰──────┴───────╯\n"},
		{"empty on a terminal", output.Printer{Format: output.Table, TTY: true}, nil, ""},
		{"yaml", output.Printer{Format: output.YAML}, items[:1], `apiVersion: kctl/v1
kind: RowList
items:
  - name: a
    count: 1
    ids: [3, 1, 2]
errors:
  - object: broker 3
    message: down
`},
		{"json, empty", output.Printer{Format: output.JSON}, nil, `{
  "apiVersion": "kctl/v1",
  "kind": "RowList",
  "items": [],
  "errors": [
    {
      "object": "broker 3",
      "message": "down"
    }
  ]
}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := print(t, tt.p, tt.list); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestNothingIsCut: a long cell stays whole, on a terminal and elsewhere.
func TestNothingIsCut(t *testing.T) {
	long := strings.Repeat("x", 249)
	for _, tty := range []bool{false, true} {
		if got := print(t, output.Printer{Format: output.Table, TTY: tty}, []row{{Name: long}}); !strings.Contains(got, long) {
			t.Errorf("tty %v: the name is cut:\n%s", tty, got)
		}
	}
}

// TestControlCharactersAreHarmless: what a broker or a znode is called cannot steer the terminal.
func TestControlCharactersAreHarmless(t *testing.T) {
	got := print(t, output.Printer{Format: output.Table, NoHeaders: true}, []row{{Name: "a\x1b[2J\nb"}})
	if strings.ContainsAny(got, "\x1b") || strings.Count(got, "\n") != 1 || !strings.Contains(got, "a\uFFFD[2J\uFFFDb") {
		t.Errorf("%q", got)
	}
}

func TestOne(t *testing.T) {
	var b bytes.Buffer
	p := output.Printer{Out: &b, Format: output.Table}
	if err := output.One(&p, kind, items[0]); err != nil || b.String() != "NAME:   a\nCOUNT:  1\n" {
		t.Errorf("%v %q", err, b.String())
	}
	b.Reset()
	p.Format = output.JSON
	want := "{\n  \"apiVersion\": \"kctl/v1\",\n  \"kind\": \"Row\",\n  \"name\": \"a\",\n  \"count\": 1,\n  \"ids\": [\n    3,\n    1,\n    2\n  ]\n}\n"
	if err := output.One(&p, kind, items[0]); err != nil || b.String() != want {
		t.Errorf("%v %s", err, b.String())
	}
}

// TestManyRowsAreQuick: a hundred thousand rows cost about as much processor time as an eighth of them eight times, not eight times
// as much, and are plain also on a terminal. Disturbances only add: the least of a few runs counts.
func TestManyRowsAreQuick(t *testing.T) {
	many := make([]row, 100_000)
	for i := range many {
		many[i] = row{Name: fmt.Sprint("topic-", i), Count: i}
	}
	printed := func(times int, list []row) time.Duration {
		var got string
		began := cputime.Now(t)
		for range times {
			got = print(t, output.Printer{Format: output.Table, TTY: true}, list)
		}
		took := cputime.Now(t) - began
		if n := strings.Count(got, "\n"); n != len(list)+1 {
			t.Fatalf("%d lines", n)
		}
		return took
	}
	few := many[:len(many)/8]
	leastFew, leastMany := printed(8, few), printed(1, many)
	for n := 0; n < 5 && leastMany > 4*leastFew; n++ {
		leastFew, leastMany = min(leastFew, printed(8, few)), min(leastMany, printed(1, many))
	}
	if t.Logf("%d rows eight times: %s, %d rows: %s", len(few), leastFew, len(many), leastMany); leastMany > 4*leastFew {
		t.Errorf("%d rows cost %.1f times as much as %d eight times", len(many), float64(leastMany)/float64(leastFew), len(few))
	}
}
