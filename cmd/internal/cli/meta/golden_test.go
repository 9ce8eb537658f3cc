package meta_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/meta"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: every kind that kctl schema lists has a golden file, byte for byte what the printer makes of a row with
// every field filled, and a list of such a row and one in which everything that can be missing is. Each file holds to the
// schema that kctl schema KIND prints, and nothing else lies in the folder.
func TestGolden(t *testing.T) {
	golden := goldenFiles(t)
	folder := filepath.Join("testdata", "golden")
	if *update {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, data := range golden {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	kinds := strings.Fields(kctl(t, "schema"))
	for _, kind := range kinds {
		if golden[kind+".json"] == nil {
			t.Errorf("%s has no golden file", kind)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
		if kind, _, _ := strings.Cut(e.Name(), "."); !slices.Contains(kinds, kind) {
			t.Errorf("%s is of no kind that kctl schema lists", e.Name())
		}
	}
	if want := slices.Sorted(maps.Keys(golden)); !slices.Equal(have, want) {
		t.Errorf("the files are\n%q, want\n%q\nrun go test ./cmd/internal/cli/meta -update", have, want)
	}
	for name, data := range golden {
		old, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil && !bytes.Equal(old, data) {
			t.Errorf("%s differs; run go test ./cmd/internal/cli/meta -update and look at the change\ngot\n%s\nwant\n%s", name, data, old)
		}
		if kind, ok := strings.CutSuffix(name, ".json"); ok {
			validate(t, kind, old)
		}
	}
}

// goldenFiles prints every kind; two of them in YAML too.
func goldenFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	kinds := strings.Fields(kctl(t, "schema"))
	meta.EachKind(func(name string, row any, list bool) {
		full := reflect.New(reflect.TypeOf(row)).Elem()
		fill(t, full, name, "")
		if slices.Contains(kinds, name) {
			files[name+".json"] = one(t, output.JSON, name, full.Interface())
		}
		if name == "Health" {
			files[name+".yaml"] = one(t, output.YAML, name, full.Interface())
		}
		if !list {
			return
		}
		bare := reflect.New(reflect.TypeOf(row)).Elem()
		empty(bare)
		items := []any{full.Interface(), bare.Interface()}
		files[name+"List.json"] = many(t, output.JSON, name, items)
		if name == "Partition" {
			files[name+"List.yaml"] = many(t, output.YAML, name, items)
		}
	})
	return files
}

// one prints a document. Those that carry apiVersion and kind themselves stand one on a line.
func one(t *testing.T, format output.Format, kind string, row any) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, ok := reflect.TypeOf(row).FieldByName("APIVersion"); ok {
		if err := json.NewEncoder(&b).Encode(row); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if err := output.Object(&output.Printer{Out: &b, Format: format}, kind, row); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func many(t *testing.T, format output.Format, kind string, items []any) []byte {
	t.Helper()
	var b bytes.Buffer
	errs := []rows.ErrorRow{{Object: "broker 3", Message: "connection refused"}}
	if err := output.List(&output.Printer{Out: &b, Format: format}, rows.Kind[any]{Name: kind}, items, errs); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// words and numbers are what fields of these JSON names hold; others hold their name, or 42.
var (
	words = map[string]string{
		"apiVersion": rows.APIVersion, "topic": "orders", "group": "audit", "host": "127.0.0.1", "source": "zookeeper", "role": "follower",
		"state": "stuck", "id": "under-replicated", "severity": "warning", "object": "orders-0", "mtime": "2026-01-02T03:04:05.678Z",
		"time": "2026-01-02T03:04:05.678Z", "decidedAt": "2026-01-02T03:04:05.678Z", "encoding": "utf-8", "topicId": "3vXzD0lBQbW1yR8mT5kq7A",
	}
	numbers = map[string]int64{
		"partition": 4, "leader": 3, "leaderEpoch": 17, "controllerEpoch": 5, "zkVersion": 29, "broker": 2, "preferredLeader": 3, "code": 3,
		"logStartOffset": 100, "highWatermark": 1000, "logEndOffset": 1010, "lagRecords": 10, "lagMs": 1500, "ageMs": 61000,
	}
)

// fill gives every field a value, also those that may be missing. Replica lists are out of order, as nothing may sort them.
func fill(t *testing.T, v reflect.Value, kind, name string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if field == "" && v.Type().Field(i).Anonymous {
				field = name
			}
			if field != "-" && v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), kind, field)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), kind, name)
	case reflect.Slice:
		fillSlice(t, v, kind, name)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value, kind, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("3").Convert(v.Type().Key()), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(word(kind, name)))
	case reflect.String:
		v.SetString(word(kind, name))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1048576.5)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := numbers[name]
		if !ok {
			n = 42
		}
		v.SetInt(n)
	default:
		t.Fatalf("%s: field %s is a %s, for which there is no value", kind, name, v.Type())
	}
}

func fillSlice(t *testing.T, v reflect.Value, kind, name string) {
	t.Helper()
	n := 1
	if v.Type().Elem().Kind() == reflect.Int32 {
		n = 3
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if n == 3 {
			v.Index(i).SetInt([]int64{3, 1, 2}[i])
			continue
		}
		fill(t, v.Index(i), kind, name)
	}
}

func word(kind, name string) string {
	switch w, ok := words[name]; {
	case name == "kind" && (kind == "Record" || kind == "Error"):
		return kind
	case ok:
		return w
	}
	return name
}

// empty makes the lists of a row empty instead of null, as kctl does.
func empty(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		case reflect.Struct:
			empty(f)
		default:
		}
	}
}

func kctl(t *testing.T, args ...string) string {
	t.Helper()
	streams, out, errb := iostreams.Test("")
	if code := cli.Run(t.Context(), args, streams, func(string) string { return "" }); code != 0 {
		t.Fatalf("kctl %q: exit %d: %s", args, code, errb)
	}
	return out.String()
}

// validate holds a document to its schema.
func validate(t *testing.T, kind string, doc []byte) {
	t.Helper()
	s, err := schematest.Compile(kind, []byte(kctl(t, "schema", kind)))
	if err != nil {
		t.Fatalf("the schema of %s: %v", kind, err)
	}
	if err := s.Check(doc); err != nil {
		t.Errorf("%s: %v", kind, err)
	}
}
