package factory

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kctl/cmd/internal/cli/iostreams"
)

// FuzzConfigFile: kctl's configuration, whatever is in it, is read or refused; what is read can be written and
// read again.
func FuzzConfigFile(f *testing.F) {
	for _, s := range []string{
		"", "current: a\ncontexts:\n- name: a\n  bootstrapServer: h:1\n  readOnly: true\n  properties: [a=b]\n",
		"contexts:\n- name: a\n- name: a\n", "contexts: {a: 1}", "unknown: 1", "current: [", "a: &a [*a]", "contexts:\n- name: \"a b\"\n", "\x00",
	} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	env := func(name string) string {
		if name == "KCTL_CONFIG" {
			return path
		}
		return ""
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		factory := New(&iostreams.IOStreams{In: new(bytes.Buffer), Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, env)
		file, err := factory.ReadFile()
		if err != nil {
			return
		}
		for i := range file.Contexts {
			_ = file.Contexts[i].Check()
		}
		if err := factory.WriteFile(file); err != nil {
			t.Fatal(err)
		}
		again, err := factory.ReadFile()
		if err != nil || len(again.Contexts) != len(file.Contexts) {
			t.Fatalf("%q: %+v, then %+v, %v", data, file, again, err)
		}
	})
}
