package output

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// toYAML writes a JSON document as YAML, keeping the order of its fields: JSON is read as the YAML that it
// is, and written again in block style. It builds a tree of the document: a hundred times its size, and slow.
func toYAML(w io.Writer, data []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	blockStyle(&doc)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return err
	}
	return enc.Close()
}

func blockStyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		// Short lists of numbers read better on one line.
		flow := n.Kind == yaml.SequenceNode && n.Content[0].Kind == yaml.ScalarNode
		n.Style = 0
		if flow {
			n.Style = yaml.FlowStyle
		}
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// errUnusual says that yamlWriter leaves a document to toYAML.
var errUnusual = errors.New("a document of unusual form")

// yamlWriter writes what toYAML writes, in one pass over the JSON and without a tree, for documents of the form that
// rows have: objects of scalars, objects, lists of scalars and lists of objects. How a scalar is quoted is decided
// here for plain words and numbers, and by toYAML for the rest.
type yamlWriter struct {
	out  []byte
	memo map[memoKey]string
	in   []byte // what is left of the compact JSON document
}

// memoMax bounds how many quoted scalars are remembered: fixes and reasons repeat, names do not.
const memoMax = 4096

type place byte

// Where a scalar stands: what may be written without quotes depends on it.
const (
	asValue place = iota
	asKey
	inFlow
)

type memoKey struct {
	json string
	at   place
}

// object appends the object at the front of compact JSON to out, each line indented. inline leaves the first line to
// the caller, who has begun it with "- ".
func (y *yamlWriter) object(indent int, inline bool) error {
	if !y.skip('{') {
		return errUnusual
	}
	for !y.skip('}') {
		y.skip(',')
		if !inline {
			y.blanks(indent)
		}
		inline = false
		if err := y.scalar(asKey); err != nil {
			return err
		}
		if !y.skip(':') {
			return errUnusual
		}
		y.out = append(y.out, ':')
		if err := y.value(indent); err != nil {
			return err
		}
	}
	return nil
}

// value appends what stands behind "key:".
func (y *yamlWriter) value(indent int) error {
	switch {
	case y.empty("{}"), y.empty("[]"):
	case bytes.HasPrefix(y.in, []byte("{")):
		y.out = append(y.out, '\n')
		return y.object(indent+2, false)
	case bytes.HasPrefix(y.in, []byte("[{")):
		y.out = append(y.out, '\n')
		return y.objects(indent + 2)
	case bytes.HasPrefix(y.in, []byte("[[")):
		return errUnusual
	case y.skip('['):
		return y.flow()
	default:
		y.out = append(y.out, ' ')
		if err := y.scalar(asValue); err != nil {
			return err
		}
		y.out = append(y.out, '\n')
	}
	return nil
}

func (y *yamlWriter) empty(form string) bool {
	if !bytes.HasPrefix(y.in, []byte(form)) {
		return false
	}
	y.in = y.in[len(form):]
	y.out = append(append(append(y.out, ' '), form...), '\n')
	return true
}

// objects appends a list of objects.
func (y *yamlWriter) objects(indent int) error {
	if !y.skip('[') {
		return errUnusual
	}
	for !y.skip(']') {
		y.skip(',')
		y.blanks(indent)
		y.out = append(y.out, '-')
		if y.empty("{}") {
			continue
		}
		y.out = append(y.out, ' ')
		if err := y.object(indent+2, true); err != nil {
			return err
		}
	}
	return nil
}

// flow appends a list of scalars on one line; its bracket has been read.
func (y *yamlWriter) flow() error {
	y.out = append(y.out, " ["...)
	for first := true; !y.skip(']'); first = false {
		y.skip(',')
		if !first {
			y.out = append(y.out, ", "...)
		}
		if err := y.scalar(inFlow); err != nil {
			return err
		}
	}
	y.out = append(y.out, "]\n"...)
	return nil
}

// scalar appends a string, number, boolean or null.
func (y *yamlWriter) scalar(at place) error {
	if len(y.in) == 0 || y.in[0] == '{' || y.in[0] == '[' {
		return errUnusual
	}
	if y.in[0] != '"' {
		end := bytes.IndexAny(y.in, ",]}")
		if end < 0 {
			return errUnusual
		}
		y.out = append(y.out, y.in[:end]...)
		y.in = y.in[end:]
		return nil
	}
	end := 1
	for end < len(y.in) && y.in[end] != '"' {
		if y.in[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(y.in) {
		return errUnusual
	}
	quoted := y.in[:end+1]
	y.in = y.in[end+1:]
	if plainWord(quoted[1:end], at) {
		y.out = append(y.out, quoted[1:end]...)
		return nil
	}
	text, err := y.quote(quoted, at)
	y.out = append(y.out, text...)
	return err
}

// keyMax is below the length from which a key is written in YAML's long form.
const keyMax = 100

// plainWord reports whether the inside of a JSON string certainly needs no quotes: letters, digits and a few signs,
// and neither a number nor a date nor one of YAML's own words. A false "no" costs time only.
func plainWord(s []byte, at place) bool {
	if len(s) == 0 || at == asKey && len(s) > keyMax || s[len(s)-1] == ' ' || ownWord(s) {
		return false
	}
	first := s[0]
	number := '0' <= first && first <= '9'
	if !number && !letter(first) && first != '_' {
		return false
	}
	for i, c := range s {
		switch {
		case letter(c):
			// No number, date or word of YAML's has one of these letters behind a digit.
			number = number && !bytes.ContainsRune([]byte("ghijklmnpqrsuvwyGHIJKLMNPQRSUVWY"), rune(c))
		case '0' <= c && c <= '9', c == '.', c == '_', c == '/', c == '-':
		case c == ' ', c == ',', c == '(', c == ')', c == ';', c == '=':
			if at != asValue {
				return false
			}
		case c == ':':
			if at != asValue || i+1 == len(s) || s[i+1] == ' ' {
				return false
			}
		default:
			return false
		}
	}
	return !number
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func ownWord(s []byte) bool {
	switch string(s) {
	case "true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL":
		return true
	}
	return false
}

// quote has toYAML write a JSON string.
func (y *yamlWriter) quote(quoted []byte, at place) (string, error) {
	if text, ok := y.memo[memoKey{string(quoted), at}]; ok {
		return text, nil
	}
	frame := [...][4]string{
		asValue: {`{"k":`, `}`, "k: ", "\n"}, asKey: {`{`, `:1}`, "", ": 1\n"}, inFlow: {`["a",`, `]`, "[a, ", "]\n"},
	}[at]
	var b strings.Builder
	if err := toYAML(&b, []byte(frame[0]+string(quoted)+frame[1])); err != nil {
		return "", err
	}
	text, begins := strings.CutPrefix(b.String(), frame[2])
	text, ends := strings.CutSuffix(text, frame[3])
	if !begins || !ends || strings.Contains(text, "\n") || at == asKey && strings.HasPrefix(text, "? ") {
		return "", errUnusual // the form of several lines depends on the indentation
	}
	if y.memo == nil {
		y.memo = map[memoKey]string{}
	}
	if len(y.memo) < memoMax {
		y.memo[memoKey{string(quoted), at}] = text
	}
	return text, nil
}

func (y *yamlWriter) skip(c byte) bool {
	if len(y.in) == 0 || y.in[0] != c {
		return false
	}
	y.in = y.in[1:]
	return true
}

func (y *yamlWriter) blanks(n int) {
	for range n {
		y.out = append(y.out, ' ')
	}
}

// document writes one compact JSON object as a YAML document.
func (y *yamlWriter) document(w io.Writer, data []byte) error {
	y.in, y.out = data, y.out[:0]
	err := y.object(0, false)
	if errors.Is(err, errUnusual) || len(y.out) == 0 {
		return toYAML(w, data)
	}
	if err == nil {
		_, err = w.Write(y.out)
	}
	return err
}

// item writes one compact JSON object as an item of a list whose items are indented by two.
func (y *yamlWriter) item(w io.Writer, data []byte) error {
	y.out = y.out[:0]
	y.in = append(append([]byte{'['}, data...), ']')
	err := y.objects(2)
	if errors.Is(err, errUnusual) {
		var b bytes.Buffer
		// In a list under a key, so that it is indented as it will stand.
		if err := toYAML(&b, append(append([]byte(`{"k":[`), data...), "]}"...)); err != nil {
			return err
		}
		_, err := w.Write(bytes.TrimPrefix(b.Bytes(), []byte("k:\n")))
		return err
	}
	if err == nil {
		_, err = w.Write(y.out)
	}
	return err
}
