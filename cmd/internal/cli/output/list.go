package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"kctl/admin/rows"
)

// buffered is how much of a list is gathered before it is written.
const buffered = 64 << 10

// Lists are written item by item: the document of a hundred thousand rows is never in memory as a whole.

// itemEncoder makes the compact JSON of one item after the other in the same buffer.
type itemEncoder struct {
	b   bytes.Buffer
	enc *json.Encoder
}

func newItemEncoder() *itemEncoder {
	e := &itemEncoder{}
	e.enc = json.NewEncoder(&e.b)
	e.enc.SetEscapeHTML(false)
	return e
}

// encode returns the compact JSON of v, good until the next call.
func (e *itemEncoder) encode(v any) ([]byte, error) {
	e.b.Reset()
	if err := e.enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(e.b.Bytes(), []byte("\n")), nil
}

func jsonList[T any](out io.Writer, kind string, items []T, errs []rows.ErrorRow) error {
	w := bufio.NewWriterSize(out, buffered)
	fmt.Fprintf(w, "{\n  \"apiVersion\": %q,\n  \"kind\": %q,\n  \"items\": ", rows.APIVersion, kind)
	if err := jsonItems(w, items); err != nil {
		return err
	}
	w.WriteString(",\n  \"errors\": ")
	if err := jsonItems(w, errs); err != nil {
		return err
	}
	w.WriteString("\n}\n")
	return w.Flush()
}

// jsonItems writes the array of a field of the document. An error of the writer ends it at once: whoever reads may
// have seen enough.
func jsonItems[T any](w *bufio.Writer, items []T) error {
	if len(items) == 0 {
		_, err := w.WriteString("[]")
		return err
	}
	enc := newItemEncoder()
	var pretty bytes.Buffer
	before := "[\n    "
	for i := range items {
		data, err := enc.encode(&items[i])
		if err != nil {
			return err
		}
		pretty.Reset()
		pretty.WriteString(before)
		before = ",\n    "
		if err := json.Indent(&pretty, data, "    ", "  "); err != nil {
			return err
		}
		if _, err := w.Write(pretty.Bytes()); err != nil {
			return err
		}
	}
	_, err := w.WriteString("\n  ]")
	return err
}

func yamlList[T any](out io.Writer, kind string, items []T, errs []rows.ErrorRow) error {
	w := bufio.NewWriterSize(out, buffered)
	var y yamlWriter
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q}`, rows.APIVersion, kind)
	if err := y.document(w, []byte(head)); err != nil {
		return err
	}
	if err := yamlItems(w, &y, "items", items); err != nil {
		return err
	}
	if err := yamlItems(w, &y, "errors", errs); err != nil {
		return err
	}
	return w.Flush()
}

func yamlItems[T any](w *bufio.Writer, y *yamlWriter, name string, items []T) error {
	if len(items) == 0 {
		_, err := w.WriteString(name + ": []\n")
		return err
	}
	w.WriteString(name + ":\n")
	enc := newItemEncoder()
	for i := range items {
		data, err := enc.encode(&items[i])
		if err != nil {
			return err
		}
		if err := y.item(w, data); err != nil {
			return err
		}
	}
	return nil
}
