package rows

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// APIVersion is the version of every JSON document of kctl.
const APIVersion = "kctl/v1"

// Column is one column of a table: its heading and how a row fills it.
type Column[T any] struct {
	Name  string
	Wide  bool // shown with -o wide only
	Right bool // numbers are aligned right
	Cell  func(T) string
}

// Kind is a sort of row. Name is the JSON kind of a single row; a list of them is Name + "List", unless
// List says otherwise. ID is what -o name prints.
type Kind[T any] struct {
	Name    string
	Title   string // what an empty list lacks, such as "topics"
	Columns []Column[T]
	ID      func(T) string
}

// ListName returns the JSON kind of a list.
func (k Kind[T]) ListName() string { return k.Name + "List" }

// Header returns the headings of the shown columns.
func (k Kind[T]) Header(wide bool) []string {
	var out []string
	for _, c := range k.Columns {
		if wide || !c.Wide {
			out = append(out, c.Name)
		}
	}
	return out
}

// Rights tells which of the shown columns are aligned right.
func (k Kind[T]) Rights(wide bool) []bool {
	var out []bool
	for _, c := range k.Columns {
		if wide || !c.Wide {
			out = append(out, c.Right)
		}
	}
	return out
}

// Cells returns the shown cells of one row.
func (k Kind[T]) Cells(row T, wide bool) []string {
	out := make([]string, 0, len(k.Columns))
	for _, c := range k.Columns {
		if wide || !c.Wide {
			out = append(out, c.Cell(row))
		}
	}
	return out
}

// SchemaOf returns the JSON schema (draft 2020-12) of a row type, made from its json and doc tags. With
// list set it is the schema of a list document of such rows.
func SchemaOf(name string, row any, list bool) map[string]any {
	item := objectSchema(reflect.TypeOf(row))
	head := map[string]any{
		"apiVersion": map[string]any{"const": APIVersion},
		"kind":       map[string]any{"const": name},
	}
	doc := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "type": "object"}
	if list {
		head["items"] = map[string]any{"type": "array", "items": item}
		head["errors"] = map[string]any{"type": "array", "items": objectSchema(reflect.TypeOf(ErrorRow{}))}
		doc["properties"] = head
		doc["required"] = []string{"apiVersion", "kind", "items", "errors"}
		return doc
	}
	for k, v := range item["properties"].(map[string]any) {
		if head[k] == nil {
			head[k] = v
		}
	}
	doc["properties"] = head
	required := []string{"apiVersion", "kind"}
	for _, r := range item["required"].([]string) {
		if !slices.Contains(required, r) {
			required = append(required, r)
		}
	}
	doc["required"] = required
	return doc
}

func objectSchema(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := objectSchema(f.Type)
			maps.Copy(props, inner["properties"].(map[string]any))
			required = append(required, inner["required"].([]string)...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		s := typeSchema(f.Type)
		if d := f.Tag.Get("doc"); d != "" {
			s["description"] = d
		}
		props[name] = s
		if !strings.Contains(opts, "omitempty") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required}
}

func typeSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		s := typeSchema(t.Elem())
		s["type"] = []any{s["type"], "null"}
		return s
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(t.Elem())}
	case reflect.Struct:
		return objectSchema(t)
	case reflect.Interface: // whatever JSON has
		return map[string]any{}
	default:
		return map[string]any{"type": "integer"}
	}
}

// ErrorRow is one entry of a list's errors: what could not be answered.
type ErrorRow struct {
	Object  string `json:"object" doc:"what the error concerns, such as broker 3"`
	Message string `json:"message" doc:"the cause"`
}

// TimeText writes a time as RFC 3339 in UTC with milliseconds; nil for the zero time.
func TimeText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

// orDash returns the text of a nullable value.
func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
