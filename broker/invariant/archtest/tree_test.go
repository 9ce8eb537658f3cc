package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the import path of this module.
const module = "kctl"

// source is one parsed Go file. Name is its slash path from the module's root.
type source struct {
	name  string
	test  bool
	lines int
	fset  *token.FileSet
	file  *ast.File
}

// pkg is the folder of the file, "." for the root.
func (s *source) pkg() string { return path.Dir(s.name) }

// imports are the import paths, those of this module without the module's name.
func (s *source) imports() []string {
	var out []string
	for _, im := range s.file.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			continue
		}
		out = append(out, strings.TrimPrefix(p, module+"/"))
	}
	return out
}

func (s *source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.name, s.fset.Position(pos).Line)
}

// finding is one breach of a law. Key is stable and used by allow lists.
type finding struct{ key, text string }

func parse(name, src string) (*source, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{
		name: name, test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(src, "\n"), fset: fset, file: f,
	}, nil
}

// root is the module's folder: the nearest one above with a go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the test")
		}
		dir = up
	}
	return "", err
}

// tree parses the whole module once.
var tree = sync.OnceValues(func() ([]*source, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	var out []*source
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != dir && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), string(raw))
		if err == nil {
			out = append(out, s)
		}
		return err
	})
	return out, err
})

func mustTree(t *testing.T) []*source {
	t.Helper()
	files, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("only %d files found: the walk is broken", len(files))
	}
	return files
}

// mustFind runs a check on one made-up file and expects exactly these findings.
func mustFind(t *testing.T, check func([]*source) []finding, name, src string, want ...string) {
	t.Helper()
	s, err := parse(name, src)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range check([]*source{s}) {
		got = append(got, f.key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: found %q, want %q", name, got, want)
	}
}

// report fails for each finding that is not allowed, and for each allowance that is no longer needed.
func report(t *testing.T, findings []finding, allowed map[string]string) {
	t.Helper()
	for _, f := range findings {
		if _, ok := allowed[f.key]; !ok {
			t.Errorf("%s (key %q)", f.text, f.key)
		}
	}
	for _, key := range staleAllowances(findings, allowed) {
		t.Errorf("the allowance for %q is not needed any more: remove it", key)
	}
}

func staleAllowances(findings []finding, allowed map[string]string) []string {
	var stale []string
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		if !slices.ContainsFunc(findings, func(f finding) bool { return f.key == key }) {
			stale = append(stale, key)
		}
	}
	return stale
}

// under reports whether the package is the folder or below it.
func under(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func underAny(pkg string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return under(pkg, f) })
}
