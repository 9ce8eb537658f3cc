package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pointIDs are the points of the design: sections with their number of points, then the discussion.
func pointIDs() []string {
	var ids []string
	for _, s := range []struct {
		section string
		points  int
	}{{"0", 12}, {"1", 12}, {"2", 9}, {"A", 11}, {"B", 7}, {"C", 12}, {"D", 9}, {"E", 5}, {"F", 8}, {"G", 11}, {"H", 2}} {
		for i := range s.points {
			ids = append(ids, s.section+"."+strconv.Itoa(i+1))
		}
	}
	for _, d := range []string{"1", "2", "3", "4", "5", "6a", "6b", "6c", "6d", "6e", "6f", "6g", "6h", "7a", "7b", "8"} {
		ids = append(ids, "Discussion "+d)
	}
	return ids
}

// conformanceRow is one point of docs/design-conformance.md.
type conformanceRow struct {
	id, status string
	tests      []string
}

// parseConformance reads the table; what looks like a row and is none is an error.
func parseConformance(text string) ([]conformanceRow, error) {
	var rows []conformanceRow
	for n, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| id ") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			return nil, fmt.Errorf("line %d has %d cells, not 4", n+1, len(cells))
		}
		row := conformanceRow{id: strings.TrimSpace(cells[0]), status: strings.TrimSpace(cells[2])}
		if strings.TrimSpace(cells[1]) == "" {
			return nil, fmt.Errorf("line %d does not say what the point is", n+1)
		}
		for _, word := range strings.Fields(cells[3]) {
			if len(word) < 3 || word[0] != '`' || word[len(word)-1] != '`' {
				return nil, fmt.Errorf("line %d: %s is not a test in backquotes", n+1, word)
			}
			row.tests = append(row.tests, strings.Trim(word, "`"))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// evidence knows which tests and scripts exist.
type evidence struct {
	functions map[string]bool   // package.TestName
	texts     map[string]string // package -> its string literals in tests, for names of subtests
	script    func(path string) bool
}

func gatherEvidence(files []*source, script func(string) bool) evidence {
	e := evidence{functions: map[string]bool{}, texts: map[string]string{}, script: script}
	for _, s := range files {
		if s.test {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					e.functions[s.pkg()+"."+f.Name.Name] = true
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				e.texts[s.pkg()] += lit.Value + "\n"
			}
			return true
		})
	}
	return e
}

// exists reports whether a named test is there: a script, whose package must have a test that could run it,
// or a test function, whose subtest must be named by a string of the package.
func (e evidence) exists(name string) bool {
	if folder, _, ok := strings.Cut(name, "/testdata/"); ok {
		return e.functions[folder+".TestScripts"] && e.script(name)
	}
	i := strings.LastIndex(name, ".Test")
	if i < 0 {
		return false
	}
	function, sub, hasSub := strings.Cut(name[i+1:], "/")
	return e.functions[name[:i]+"."+function] && (!hasSub || strings.Contains(e.texts[name[:i]], sub))
}

// checkConformance compares the table with the points and the tests of the tree.
func checkConformance(text string, ids []string, e evidence) []string {
	rows, err := parseConformance(text)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	var got []string
	for _, r := range rows {
		got = append(got, r.id)
		switch {
		case r.status == "works" && len(r.tests) == 0:
			wrong = append(wrong, r.id+" works, and no test shows it")
		case r.status == "not yet" && len(r.tests) > 0:
			wrong = append(wrong, r.id+" does not work yet, but names a test")
		case r.status != "works" && r.status != "not yet":
			wrong = append(wrong, r.id+" has status "+strconv.Quote(r.status))
		}
		for _, name := range r.tests {
			if !e.exists(name) {
				wrong = append(wrong, r.id+" names "+name+", which does not exist")
			}
		}
	}
	if !slices.Equal(got, ids) {
		wrong = append(wrong, fmt.Sprintf("the points are not those of the design, in its order, each once: %s", firstDifference(got, ids)))
	}
	return wrong
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, w := "the end", "the end"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("row %d is %s, not %s", i+1, g, w)
		}
	}
	return "none"
}

func TestDesignConformance(t *testing.T) {
	files := mustTree(t)
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "design-conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	ids := pointIDs()
	if len(ids) != 114 {
		t.Fatalf("%d points, the design has 114", len(ids))
	}
	e := gatherEvidence(files, func(path string) bool {
		st, err := os.Stat(filepath.Join(dir, filepath.FromSlash(path)))
		return err == nil && st.Mode().IsRegular() && st.Size() > 0
	})
	for _, w := range checkConformance(string(text), ids, e) {
		t.Error(w)
	}
}

func TestConformanceCheckFinds(t *testing.T) {
	s, err := parse("broker/x/x_test.go", "package x\nimport \"testing\"\nfunc TestScripts(t *testing.T) { t.Run(\"one case\", nil) }\n")
	if err != nil {
		t.Fatal(err)
	}
	e := gatherEvidence([]*source{s}, func(p string) bool { return p == "broker/x/testdata/a.txt" })
	ids := []string{"A.1", "A.2"}
	row := func(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	good := row("A.1", "p", "works", "`broker/x/testdata/a.txt` `broker/x.TestScripts/case`") + row("A.2", "p", "not yet", "")
	for text, want := range map[string]string{
		good: "",
		row("A.1", "p", "works", "`broker/x.TestScripts`"):                                       "the points are not",
		good + row("A.2", "p", "not yet", ""):                                                    "the points are not",
		row("A.1", "p", "works", "") + row("A.2", "p", "not yet", ""):                            "no test shows it",
		row("A.1", "p", "works", "`broker/x/testdata/b.txt`") + row("A.2", "p", "not yet", ""):   "does not exist",
		row("A.1", "p", "works", "`broker/y/testdata/a.txt`") + row("A.2", "p", "not yet", ""):   "does not exist",
		row("A.1", "p", "works", "`broker/x.TestOther`") + row("A.2", "p", "not yet", ""):        "does not exist",
		row("A.1", "p", "works", "`broker/x.TestScripts/nope`") + row("A.2", "p", "not yet", ""): "does not exist",
		row("A.1", "p", "works", "broker/x.TestScripts") + row("A.2", "p", "not yet", ""):        "not a test in backquotes",
		row("A.1", "p", "nearly", "`broker/x.TestScripts`") + row("A.2", "p", "not yet", ""):     "has status",
		row("A.1", "p", "not yet", "`broker/x.TestScripts`") + row("A.2", "p", "not yet", ""):    "but names a test",
		row("A.1", "", "works", "`broker/x.TestScripts`") + row("A.2", "p", "not yet", ""):       "does not say",
		row("A.1", "p", "works") + row("A.2", "p", "not yet", ""):                                "cells",
	} {
		got := strings.Join(checkConformance(text, ids, e), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\n got %q\nwant %q", text, got, want)
		}
	}
}
