package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// The sizes above which a function or a file is too long to hold in the head. A test may hold a longer table.
const (
	functionLinesMax = 60
	testLinesMax     = 100
	fileLinesMax     = 800
)

// longFunctions and longFiles are allowed to be longer, each with the reason. The lists only shrink.
var (
	longFunctions = map[string]string{
		"broker/controller.script.run": "one switch over the verbs of a script",
	}
	longFiles = map[string]string{}
)

// checkFunctionLength measures from the signature to the closing brace.
func checkFunctionLength(files []*source) []finding {
	var out []finding
	for _, s := range files {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			limit := functionLinesMax
			if s.test {
				limit = testLinesMax
			}
			if n > limit {
				key := s.pkg() + "." + functionName(f)
				out = append(out, finding{key, fmt.Sprintf("%s: %s has %d lines, more than %d", s.at(f.Pos()), functionName(f), n, limit)})
			}
		}
	}
	return out
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if gen, ok := t.(*ast.IndexExpr); ok {
		t = gen.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func TestFunctionLength(t *testing.T) {
	report(t, checkFunctionLength(mustTree(t)), longFunctions)
}

func checkFileLength(files []*source) []finding {
	var out []finding
	for _, s := range files {
		if s.lines > fileLinesMax {
			out = append(out, finding{s.name, fmt.Sprintf("%s has %d lines, more than %d", s.name, s.lines, fileLinesMax)})
		}
	}
	return out
}

func TestFileLength(t *testing.T) {
	report(t, checkFileLength(mustTree(t)), longFiles)
}

// checkTestsWaitForConditions: a test that sleeps is slow or flaky, mostly both. In a synctest bubble, where
// time is not real, time.After does.
func checkTestsWaitForConditions(files []*source) []finding {
	var out []finding
	for _, s := range files {
		if !s.test {
			continue
		}
		for range usesOf(s, "time", []string{"Sleep"}) {
			out = append(out, finding{s.name + " time.Sleep", s.name + " sleeps: wait for a condition with a deadline, or use testing/synctest"})
		}
	}
	return out
}

func TestTestsWaitForConditions(t *testing.T) {
	report(t, checkTestsWaitForConditions(mustTree(t)), nil)
}

// checkNoSkips: a test that is skipped proves nothing and looks green. What needs more than Go has a build
// tag, and fails when it does not find what it needs.
// A property's Skip (rapid.T) only drops one drawn action and is fine.
func checkNoSkips(files []*source) []finding {
	var out []finding
	for _, s := range files {
		ast.Walk(skipFinder{s: s, out: &out}, s.file)
	}
	return out
}

// skipFinder knows the parameters in scope that are handles of a running test.
type skipFinder struct {
	s       *source
	out     *[]finding
	handles []string
}

func (v skipFinder) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.FuncDecl:
		v.handles = withHandles(v.handles, n.Type)
	case *ast.FuncLit:
		v.handles = withHandles(v.handles, n.Type)
	case *ast.IfStmt:
		if isShort(n.Cond) {
			return nil // only go test -short skips these, and make test does not
		}
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
			break
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(v.handles, x.Name) {
			*v.out = append(*v.out, finding{v.s.name + " " + sel.Sel.Name, v.s.at(n.Pos()) + ": a test skips itself"})
		}
	}
	return v
}

// isShort reports whether a condition is testing.Short().
func isShort(cond ast.Expr) bool {
	call, ok := cond.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Short" {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "testing"
}

// withHandles returns the handles in scope inside a function: those around it that it does not hide, and
// its own parameters of a type of package testing.
func withHandles(around []string, f *ast.FuncType) []string {
	out := slices.Clone(around)
	for _, field := range f.Params.List {
		t := field.Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		sel, ok := t.(*ast.SelectorExpr)
		x, named := (*ast.Ident)(nil), false
		if ok {
			x, named = sel.X.(*ast.Ident)
		}
		for _, name := range field.Names {
			out = slices.DeleteFunc(out, func(h string) bool { return h == name.Name })
			if named && x.Name == "testing" {
				out = append(out, name.Name)
			}
		}
	}
	return out
}

func TestNoSkips(t *testing.T) {
	report(t, checkNoSkips(mustTree(t)), map[string]string{
		"zkutil/zktest/sessions.go Skip":    "a capability of the server under test: an ensemble of others is not restarted",
		"zkutil/zkserver/fuzz_test.go Skip": "no socket to be had is not an input that breaks the server",
	})
}

var leftover = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// checkNoLeftovers: what is not done is not in the code.
func checkNoLeftovers(files []*source) []finding {
	var out []finding
	for _, s := range files {
		if under(s.pkg(), "broker/invariant/archtest") {
			continue // names the words
		}
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if word := leftover.FindString(c.Text); word != "" {
					out = append(out, finding{s.name + " " + word, s.at(c.Pos()) + ": " + c.Text})
				}
			}
		}
	}
	return out
}

func TestNoLeftovers(t *testing.T) {
	report(t, checkNoLeftovers(mustTree(t)), nil)
}

// checkPackageDoc: every package says what it is for.
func checkPackageDoc(files []*source) []finding {
	documented := make(map[string]bool)
	var pkgs []string
	for _, s := range files {
		if s.test {
			continue
		}
		if _, seen := documented[s.pkg()]; !seen {
			pkgs = append(pkgs, s.pkg())
		}
		documented[s.pkg()] = documented[s.pkg()] || s.file.Doc != nil
	}
	var out []finding
	for _, p := range pkgs {
		if !documented[p] {
			out = append(out, finding{p, "package " + p + " has no package comment"})
		}
	}
	return out
}

func TestPackageDoc(t *testing.T) {
	report(t, checkPackageDoc(mustTree(t)), nil)
}

// checkExits: only mains end the process, so that everything else can be tested and shut down in order.
func checkExits(files []*source) []finding {
	var out []finding
	for _, s := range files {
		if s.file.Name.Name == "main" || s.test {
			continue
		}
		for range usesOf(s, "os", []string{"Exit"}) {
			out = append(out, finding{s.name + " os.Exit", s.name + " ends the process"})
		}
		for _, use := range usesOf(s, "log", []string{"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Printf", "Println", "Print"}) {
			out = append(out, finding{s.name + " " + use, s.name + " uses " + use + ": slog is handed in"})
		}
	}
	return out
}

func TestExits(t *testing.T) {
	report(t, checkExits(mustTree(t)), map[string]string{
		"cmd/internal/kbrokercmd/root.go os.Exit": "the second Ctrl-C ends the process at once",
	})
}

func TestHabitChecksFind(t *testing.T) {
	long := "package x\ntype T[P any] struct{}\nfunc (t *T[P]) f() {\n"
	for range functionLinesMax {
		long += "\t_ = 1\n"
	}
	long += "}\nfunc short() {}\n"
	mustFind(t, checkFunctionLength, "admin/x.go", long, "admin.T.f")
	mustFind(t, checkFunctionLength, "admin/x_test.go", long)
	mustFind(t, checkFileLength, "admin/x.go", "package x\n"+string(slices.Repeat([]byte("\n"), fileLinesMax)), "admin/x.go")
	mustFind(t, checkFileLength, "admin/x.go", "package x\n")
	sleeps := "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"
	mustFind(t, checkTestsWaitForConditions, "admin/x_test.go", sleeps, "admin/x_test.go time.Sleep")
	mustFind(t, checkTestsWaitForConditions, "admin/x.go", sleeps)
	mustFind(t, checkNoSkips, "admin/x_test.go", "package x\nimport \"testing\"\nfunc TestX(t *testing.T) { t.Skipf(\"no\") }\n", "admin/x_test.go Skipf")
	mustFind(t, checkNoSkips, "admin/x_test.go", "package x\nfunc f(r reader) { r.Skip(1) }\n")
	mustFind(t, checkNoSkips, "admin/x_test.go", "package x\nfunc TestX(t *testing.T) { rapid.Check(t, func(t *rapid.T) { t.Skip() }) }\n")
	mustFind(t, checkNoSkips, "admin/x_test.go", "package x\nfunc TestX(t *testing.T) { if testing.Short() { t.Skip() } }\n")
	mustFind(t, checkNoSkips, "admin/x.go", "package x\nfunc f(s testing.TB) { g(func() { s.SkipNow() }) }\n", "admin/x.go SkipNow")
	mustFind(t, checkNoLeftovers, "admin/x.go", "package x\n\n// TODO: think\nvar a int // FIXME\n", "admin/x.go TODO", "admin/x.go FIXME")
	mustFind(t, checkNoLeftovers, "admin/x.go", "package x\n\nvar todo = \"TODO\"\n")
	mustFind(t, checkPackageDoc, "admin/x.go", "package x\n", "admin")
	mustFind(t, checkPackageDoc, "admin/x.go", "// Package x is one.\npackage x\n")
	mustFind(t, checkExits, "admin/x.go", "package x\nimport \"os\"\nfunc f() { os.Exit(1) }\n", "admin/x.go os.Exit")
	mustFind(t, checkExits, "cmd/kctl/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }\n")
}

// TestReportKnowsStaleAllowances: an allowance that nothing needs must go.
func TestReportKnowsStaleAllowances(t *testing.T) {
	if got := staleAllowances([]finding{{key: "a"}}, map[string]string{"a": "", "b": ""}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("stale: %q", got)
	}
}
