package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kctl/admin/rows"
)

// sameYAML fails when the quick writer and the one over yaml.v3's tree differ, as a document and as an item of a list.
func sameYAML(t interface {
	Helper()
	Fatalf(string, ...any)
}, v any,
) {
	t.Helper()
	data, err := marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	compare := func(quick func(y *yamlWriter, b *bytes.Buffer) error, doc string) {
		t.Helper()
		var got, want bytes.Buffer
		if err := toYAML(&want, []byte(doc)); err != nil {
			return // yaml.v3 cannot read all JSON: an empty key, for one
		}
		if err := quick(new(yamlWriter), &got); err != nil || got.String() != want.String() {
			t.Fatalf("%s\nquick: %v\n%s\nyaml.v3:\n%s", doc, err, got.String(), want.String())
		}
	}
	compare(func(y *yamlWriter, b *bytes.Buffer) error { return y.document(b, data) }, string(data))
	compare(func(y *yamlWriter, b *bytes.Buffer) error {
		b.WriteString("items:\n")
		return y.item(b, data)
	}, `{"items":[`+string(data)+`]}`)
}

func TestYAMLOfOddScalars(t *testing.T) {
	for _, s := range []string{
		"", " ", "a ", " a", "true", "True", "yes", "No", "null", "~", "y", "0", "007", "1e5", "1E5", "0x1f", "0b11", "0o17", "1_000", "12:30", "12:30:45",
		"2026-01-02", "2026-01-02T03:04:05Z", "2001-12-14t21:59:43.10-05:00", "1.5", ".5", ".inf", ".nan", "+1", "-", "-a", "- a", "-1", "<<", "=", "a: b", "a:b", "a:",
		":a", "#a", "a #b", "a#b", "[a]", "{a}", "a, b", "a,b", "a]b", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a", "'a", "\"a\"", "a\"b", "it's", "a\\b",
		"a\nb", "\n", "a\n", "\ta", "a\tb", "a\x1b[2J", "é", "日本", "\u2028", "\ufeff", "\u0085", "5f", "5e", "12d4", "1g", "pLTPGmiVRWOAPz6jhmh8Tw", "7LTPGmiVRWOAPz6jhmh8Tw", "_x",
		"kctl brokers list   # start broker 1", "isr 1,2 of replicas 1,2,3", "leader 1; isr none", "(a)", "a (b)", "a=b", "a = b", "a;b", "---", "...", "a/b", "/a", "a?", "?", "? a",
		strings.Repeat("x", 99), strings.Repeat("x", 127), strings.Repeat("x", 129), strings.Repeat("x y ", 60),
	} {
		sameYAML(t, map[string]any{"v": s})
		sameYAML(t, map[string]any{s: 1})
		sameYAML(t, map[string]any{"v": []string{s}, "w": []string{s, "a"}})
		sameYAML(t, map[string]any{"v": map[string]string{"in": s}})
		sameYAML(t, map[string]any{"v": []any{map[string]string{"in": s, "more": s}, map[string]string{}}})
	}
}

func TestYAMLOfOddShapes(t *testing.T) {
	for _, v := range []any{
		map[string]any{}, map[string]any{"a": nil, "b": true, "c": []any{}, "d": map[string]any{}},
		map[string]any{"a": []any{[]any{1}, []any{}}}, map[string]any{"a": []any{1, map[string]any{"b": 1}}}, map[string]any{"a": []any{map[string]any{"b": 1}, 1}},
		map[string]any{"a": []any{map[string]any{"b": []any{map[string]any{"c": []int{1}}}}}}, map[string]any{"n": []any{nil, true, 1.5, int64(math.MinInt64), 1e21, 1e-7}},
	} {
		sameYAML(t, v)
	}
}

// TestYAMLIsTheSame: any document is written as yaml.v3 writes it.
func TestYAMLIsTheSame(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9 .,:;#_/=()'"-]{0,12}`), rapid.StringMatching(`[0-9eExXoTZ:._+-]{1,8}`))
	scalar := rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e30, 1e30), func(n float64) any { return n }), rapid.SampledFrom([]any{true, false, nil}))
	var value func(deep int) *rapid.Generator[any]
	value = func(deep int) *rapid.Generator[any] {
		if deep == 0 {
			return scalar
		}
		return rapid.OneOf(scalar, rapid.Map(rapid.SliceOfN(scalar, 0, 3), func(v []any) any { return v }),
			rapid.Map(rapid.SliceOfN(value(deep-1), 0, 3), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(text, value(deep-1), 0, 3), func(v map[string]any) any { return v }))
	}
	rapid.Check(t, func(rt *rapid.T) {
		doc := rapid.MapOfN(text, value(3), 0, 4).Draw(rt, "doc")
		sameYAML(rt, doc)
	})
}

// TestListsAreTheSameAsWhole: a list written item by item is the document that it was as a whole.
func TestListsAreTheSameAsWhole(t *testing.T) {
	type item struct {
		Name string   `json:"name"`
		IDs  []int    `json:"ids"`
		More []any    `json:"more"`
		In   struct{} `json:"in"`
	}
	items := []item{{Name: "a<b>&", IDs: []int{1, 2}}, {Name: "x\ny", More: []any{map[string]int{"k": 1}}}}
	errs := []rows.ErrorRow{{Object: "broker 1", Message: "a: b"}}
	k := rows.Kind[item]{Name: "Item"}
	for n := range 3 {
		whole, err := marshal(struct {
			APIVersion string          `json:"apiVersion"`
			Kind       string          `json:"kind"`
			Items      []item          `json:"items"`
			Errors     []rows.ErrorRow `json:"errors"`
		}{rows.APIVersion, k.ListName(), items[:n], errs[:min(n, 1)]})
		if err != nil {
			t.Fatal(err)
		}
		var asJSON, asYAML, got bytes.Buffer
		if err := json.Indent(&asJSON, whole, "", "  "); err != nil {
			t.Fatal(err)
		}
		asJSON.WriteByte('\n')
		if err := toYAML(&asYAML, whole); err != nil {
			t.Fatal(err)
		}
		for format, want := range map[Format]string{JSON: asJSON.String(), YAML: asYAML.String()} {
			got.Reset()
			if err := List(&Printer{Out: &got, Format: format}, k, items[:n], errs[:min(n, 1)]); err != nil || got.String() != want {
				t.Errorf("%s of %d: %v\n%s\nwant\n%s", format, n, err, got.String(), want)
			}
		}
	}
}

type countingWriter struct{ n int }

func (c *countingWriter) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}

// TestLongListsCostLittleMemory: what a list of many rows allocates does not grow faster than the list, and stays below
// a few times the text in all formats. A document built as a whole costs a hundred times the text in YAML.
func TestLongListsCostLittleMemory(t *testing.T) {
	items := make([]rows.Partition, 10_000)
	for i := range items {
		items[i] = rows.Partition{Topic: fmt.Sprint("topic-", i/10), Partition: int32(i % 10), Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}, Source: "protocol"}
	}
	for format, most := range map[Format]float64{JSON: 1, YAML: 1, Name: 1, Table: 30, Wide: 40} {
		var out countingWriter
		p := &Printer{Out: &out, Format: format}
		per := testing.AllocsPerRun(1, func() {
			out.n = 0
			if err := List(p, rows.PartitionKind, items, nil); err != nil {
				t.Fatal(err)
			}
		}) / float64(len(items))
		t.Logf("%s: %.2f allocations for each row, %d bytes of text", format, per, out.n)
		if per > most+4 {
			t.Errorf("%s: %.1f allocations for each row, want at most %.0f", format, per, most+4)
		}
	}
}

func BenchmarkList(b *testing.B) {
	items := make([]rows.Partition, 40_000)
	for i := range items {
		items[i] = rows.Partition{Topic: fmt.Sprint("topic-", i/10), Partition: int32(i % 10), Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}, Source: "protocol"}
	}
	for _, f := range []Format{JSON, YAML, Table, Wide, Name} {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := List(&Printer{Out: new(countingWriter), Format: f}, rows.PartitionKind, items, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
