package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// cores are the packages without clock, socket, disk, goroutine or log; those below them too, except
// coreShells.
var cores = []string{
	"broker/replica", "broker/controller", "broker/group", "broker/txn", "zkutil/cluster", "zkutil/zkop", "zkutil/znode",
	"zkutil/zkserver/ztree", "admin/model", "admin/plan", "admin/check", "admin/rows",
}

var coreShells = []string{"broker/replica/logexec"}

// impure are the imports that a core must not have.
var impure = []string{"os", "net", "sync", "context", "log", "math/rand", "os/exec", "io/ioutil", "syscall", "runtime", "testing"}

// values are packages below impure ones that only compute.
var values = []string{"net/netip", "net/url"}

// clockCalls are the functions of package time that look at the clock or wait.
var clockCalls = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"}

// checkPure applies to the product code of the cores.
func checkPure(files []*source) []finding {
	var out []finding
	for _, s := range files {
		if s.test || !underAny(s.pkg(), cores) || underAny(s.pkg(), coreShells) {
			continue
		}
		for _, im := range s.imports() {
			if underAny(im, impure) && !slices.Contains(values, im) {
				out = append(out, finding{s.name + " " + im, fmt.Sprintf("%s is a core and imports %s", s.name, im)})
			}
		}
		for _, name := range clockUses(s) {
			out = append(out, finding{s.name + " " + name, fmt.Sprintf("%s is a core and uses %s", s.name, name)})
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				out = append(out, finding{s.name + " go", s.at(g.Pos()) + ": a core starts a goroutine"})
			}
			return true
		})
	}
	return out
}

// clockUses lists the uses of clockCalls, under whatever name package time was imported.
func clockUses(s *source) []string { return usesOf(s, "time", clockCalls) }

// usesOf lists which of the named identifiers of an imported package the file uses.
func usesOf(s *source, importPath string, names []string) []string {
	local := ""
	for _, im := range s.file.Imports {
		if im.Path.Value == `"`+importPath+`"` {
			local = importPath[strings.LastIndexByte(importPath, '/')+1:]
			if im.Name != nil {
				local = im.Name.Name
			}
		}
	}
	if local == "" {
		return nil
	}
	var out []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			out = append(out, importPath+"."+sel.Sel.Name)
		}
		return true
	})
	return out
}

func TestCoresArePure(t *testing.T) {
	files := mustTree(t)
	report(t, checkPure(files), map[string]string{
		"zkutil/znode/registration.go net": "net.JoinHostPort, which only puts text together",
	})
	for _, core := range []string{"broker/replica", "broker/controller", "broker/group", "zkutil/cluster", "zkutil/znode"} {
		if !slices.ContainsFunc(files, func(s *source) bool { return s.pkg() == core && !s.test }) {
			t.Errorf("no file of core %s was looked at", core)
		}
	}
}

func TestPureChecksFind(t *testing.T) {
	for _, im := range []string{"os", "net/http", "sync", "sync/atomic", "context", "log/slog", "math/rand/v2"} {
		mustFind(t, checkPure, "broker/group/x.go", "package x\nimport _ \""+im+"\"\n", "broker/group/x.go "+im)
	}
	mustFind(t, checkPure, "broker/group/x.go", "package x\nimport (\n_ \"time\"\n_ \"slices\"\n_ \"encoding/json\"\n)\n")
	clock := "package x\nimport clk \"time\"\nvar d clk.Duration\nvar f = clk.Now\nfunc g() { clk.Sleep(d) }\n"
	mustFind(t, checkPure, "admin/plan/x.go", clock, "admin/plan/x.go time.Now", "admin/plan/x.go time.Sleep")
	mustFind(t, checkPure, "admin/x.go", clock)
	mustFind(t, checkPure, "broker/replica/x.go", "package x\nfunc g() { go g() }\n", "broker/replica/x.go go")
	mustFind(t, checkPure, "broker/replica/x_test.go", "package x\nimport _ \"os\"\n")
	mustFind(t, checkPure, "broker/replica/logexec/x.go", "package x\nimport _ \"os\"\n")
}
