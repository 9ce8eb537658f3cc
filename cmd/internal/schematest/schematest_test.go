package schematest_test

import (
	"encoding/json"
	"testing"

	"kctl/admin/rows"
	"kctl/cmd/internal/schematest"
)

// TestCheckCanFail: a document that lacks a field, has one too many, or a null where none may be is refused.
func TestCheckCanFail(t *testing.T) {
	schema, err := json.Marshal(rows.SchemaOf("User", rows.User{}, false))
	if err != nil {
		t.Fatal(err)
	}
	s, err := schematest.Compile("User", schema)
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"apiVersion":"kctl/v1","kind":"User",`
	for doc, ok := range map[string]bool{
		head + `"name":"a","mechanism":"m","iterations":1}`:        true,
		head + `"name":"a","mechanism":"m"}`:                       false,
		head + `"name":"a","mechanism":"m","iterations":1,"x":1}`:  false,
		head + `"name":"a","mechanism":"m","iterations":null}`:     false,
		head + `"name":"a","mechanism":"m","iterations":"1"}`:      false,
		`{"name":"a","mechanism":"m","iterations":1,"kind":"ACL"}`: false,
		`{`: false,
	} {
		if err := s.Check([]byte(doc)); (err == nil) != ok {
			t.Errorf("%s: %v", doc, err)
		}
	}
}
