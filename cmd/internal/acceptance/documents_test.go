package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/schematest"
)

// observed is what the scripts have shown of kctl beside what they demand: which commands wrote into the journal.
type observed struct {
	mu        sync.Mutex
	schemas   map[string]*schematest.Schema
	journaled map[string]bool
}

var seen = &observed{schemas: map[string]*schematest.Schema{}, journaled: map[string]bool{}}

// schema is that which kctl schema prints of a kind.
func (o *observed) schema(t *testing.T, kind string) (*schematest.Schema, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.schemas[kind]; s != nil {
		return s, nil
	}
	streams, out, errb := iostreams.Test("")
	if code := cli.Run(t.Context(), []string{"schema", kind}, streams, func(string) string { return "" }); code != 0 {
		return nil, fmt.Errorf("kctl schema %s: exit %d: %s", kind, code, errb)
	}
	s, err := schematest.Compile(kind, out.Bytes())
	if err == nil {
		o.schemas[kind] = s
	}
	return s, err
}

// document holds every JSON document of kctl in a stream to the schema of its kind. Other text and other JSON, such as
// Kafka's files, are left alone.
func (o *observed) document(t *testing.T, stream []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(stream), []byte("{")) {
		return nil
	}
	for dec := json.NewDecoder(bytes.NewReader(stream)); dec.More(); {
		var doc json.RawMessage
		if err := dec.Decode(&doc); err != nil {
			return nil // text that only begins like JSON
		}
		var head struct{ APIVersion, Kind string }
		if err := json.Unmarshal(doc, &head); err != nil || head.APIVersion != rows.APIVersion {
			continue
		}
		s, err := o.schema(t, head.Kind)
		if err != nil {
			return err
		}
		if err := s.Check(doc); err != nil {
			return fmt.Errorf("%s: %w\n%s", head.Kind, err, doc)
		}
	}
	return nil
}

// read notes which commands stand in a journal. What was done has a way back, or says why it has none.
func (o *observed) read(home string) error {
	data, err := os.ReadFile(filepath.Join(home, ".local", "state", "kctl", "history.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var e journal.Entry
		if err := dec.Decode(&e); err != nil {
			return fmt.Errorf("the journal: %w", err)
		}
		o.journaled[e.Command] = true
		if e.Result == journal.Done && e.Undo == "" {
			return fmt.Errorf("the journal has no way back for %s %s (%s to %s)", e.Command, e.Object, e.Before, e.After)
		}
	}
	return nil
}

// TestMain looks, after all tests were run, whether each command that changes something has written into a journal.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && wholeRun() {
		for _, c := range changing() {
			if name := strings.TrimPrefix(c.CommandPath(), "kctl "); !seen.journaled[name] && elsewhereJournaled[name] == "" {
				fmt.Fprintf(os.Stderr, "no script has made kctl %s write into the journal\n", name)
				code = 1
			}
		}
	}
	os.Exit(code)
}
