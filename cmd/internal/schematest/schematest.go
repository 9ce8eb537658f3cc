// Package schematest holds JSON documents to the schemas that kctl schema prints. It is for tests only.
package schematest

import (
	"bytes"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is that of one kind. It is read-only and may be shared.
type Schema struct{ compiled *jsonschema.Schema }

// Compile reads a schema (draft 2020-12). Fields that it does not name are forbidden: kctl's schemas allow them, so that
// a script goes on working with a later kctl, but a document of this kctl has none.
func Compile(kind string, schema []byte) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	forbidUnknown(doc)
	c := jsonschema.NewCompiler()
	if err := c.AddResource(kind+".json", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(kind + ".json")
	if err != nil {
		return nil, err
	}
	return &Schema{s}, nil
}

// Check returns why a document is not one of the schema's.
func (s *Schema) Check(doc []byte) error {
	inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return err
	}
	return s.compiled.Validate(inst)
}

func forbidUnknown(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["properties"] != nil && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			forbidUnknown(v)
		}
	case []any:
		for _, v := range s {
			forbidUnknown(v)
		}
	}
}
