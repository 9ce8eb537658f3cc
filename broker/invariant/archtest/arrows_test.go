package archtest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
)

// arrow says what packages below one folder may not import. Imports of this module are named from its root,
// others in full. All arrows that bind a package apply.
type arrow struct {
	from   string   // a folder
	except []string // folders below it that the arrow does not bind
	not    []string // folders or import paths that must not be imported
	but    []string // packages within not that may be imported all the same
	only   []string // when set: of this module only these (and the folder itself)
	tests  bool     // binds test files as well
	why    string
}

const (
	kgo       = "github.com/twmb/franz-go/pkg/kgo"
	kadm      = "github.com/twmb/franz-go/pkg/kadm"
	zkLibrary = "github.com/go-zookeeper/zk"
	cobra     = "github.com/spf13/cobra"
	viper     = "github.com/spf13/viper"
	tables    = "github.com/olekukonko/tablewriter"
	bubbletea = "github.com/charmbracelet/bubbletea"
)

var arrows = []arrow{
	{from: "zkutil/cluster", only: []string{}, why: "value types lie at the bottom"},
	{from: "zkutil/zkop", only: []string{"zkutil/cluster"}, why: "requests as data lie at the bottom"},
	{from: "zkutil/znode", only: []string{"zkutil/cluster", "zkutil/zkop"}, why: "codecs know values only"},
	{from: "zkutil/zkserver/ztree", only: []string{"zkutil/cluster", "zkutil/zkop", "broker/invariant"}, why: "the tree is a pure core"},
	{from: "zkutil", not: []string{"admin", "tui", "cmd", "broker"}, except: []string{"zkutil/zkserver"}, tests: true, why: "zkutil is below broker and admin"},
	{from: "zkutil/zkserver", not: []string{"admin", "tui", "cmd"}, tests: true, why: "zkutil is below broker and admin"},
	{from: "broker", not: []string{"admin", "tui", "cmd"}, why: "the engine knows neither the operator's model nor the commands"},
	{from: "broker/invariant", only: []string{}, why: "assertions lie at the bottom"},
	{from: "broker/obs", only: []string{}, why: "log keys lie at the bottom"},
	{from: "broker/vfs", only: []string{}, why: "the file system seam lies at the bottom"},
	{from: "broker/record", only: []string{"zkutil/cluster", "broker/invariant"}, why: "record batches lie at the bottom"},
	{from: "broker/storage", only: []string{"zkutil/cluster", "broker/invariant", "broker/obs", "broker/record", "broker/vfs"}, why: "storage knows no shell"},
	{from: "broker/replica", except: []string{"broker/replica/logexec"}, only: pureBelow, why: "a core knows values only"},
	{from: "broker/controller", only: pureBelow, why: "a core knows values only"},
	{from: "broker/group", only: pureBelow, why: "a core knows values only"},
	{from: "broker/replicashell", not: handlers, why: "shells are below the request handlers"},
	{from: "broker/controllershell", not: handlers, why: "shells are below the request handlers"},
	{from: "broker/groupshell", not: append([]string{"broker/replicashell", "broker/controllershell"}, handlers...), why: "a shell asks for what it needs by its own interfaces"},
	{from: "broker/api", not: []string{"broker/storage"}, except: nil, why: "handlers reach the log through the replica manager"},
	{from: "admin", not: []string{"broker", "tui", "cmd"}, why: "the operator's model knows the protocols only"},
	{from: "tui", not: []string{"broker", "cmd", "zkutil", kgo, kadm, zkLibrary}, but: []string{"zkutil/cluster"}, why: "the TUI reaches the cluster through admin alone"},
	{from: "cmd/internal/cli", not: []string{"zkutil", kgo, kadm, zkLibrary}, but: []string{"zkutil/cluster"}, why: "commands reach the cluster through admin alone"},
	{from: "cmd/kctl", not: []string{"broker"}, why: "kctl carries no engine"},
}

// pureBelow is what a core may import of this module.
var pureBelow = []string{"zkutil/cluster", "zkutil/zkop", "zkutil/znode", "broker/invariant"}

// handlers are the packages above the shells.
var handlers = []string{"broker/server", "broker/api", "broker/brokertest", "broker/sim"}

// libraries says where an outside library may be used in product code.
var libraries = map[string][]string{
	zkLibrary: {"zkutil"},
	kgo:       {"admin", "cmd/demo", "cmd/internal", "broker/brokertest"},
	kadm:      {"admin", "cmd/demo", "cmd/internal", "broker/brokertest"},
	cobra:     {"cmd"},
	viper:     {"cmd"},
	tables:    {"cmd"},
	bubbletea: {"tui", "cmd"},
}

// checkArrows compares every import with the arrows and the libraries' places.
func checkArrows(files []*source) []finding {
	var out []finding
	for _, s := range files {
		for _, im := range s.imports() {
			for _, a := range arrows {
				if bound(a, s) && forbidden(a, s.pkg(), im) {
					out = append(out, finding{s.name + " " + im, fmt.Sprintf("%s imports %s: %s", s.name, im, a.why)})
				}
			}
			places, ok := libraries[im]
			if ok && !s.test && !underAny(s.pkg(), places) {
				out = append(out, finding{s.name + " " + im, fmt.Sprintf("%s imports %s, which belongs in %v", s.name, im, places)})
			}
		}
	}
	return out
}

func bound(a arrow, s *source) bool {
	return under(s.pkg(), a.from) && !underAny(s.pkg(), a.except) && (a.tests || !s.test)
}

func forbidden(a arrow, pkg, im string) bool {
	if underAny(im, a.not) && !slices.Contains(a.but, im) {
		return true
	}
	return a.only != nil && ours(im) && !under(im, a.from) && !underAny(im, a.only)
}

// ours reports whether an import (as source.imports names it) is of this module.
func ours(im string) bool {
	top, _, _ := strings.Cut(im, "/")
	return slices.Contains([]string{"cmd", "broker", "admin", "tui", "zkutil"}, top)
}

func TestImportArrows(t *testing.T) {
	report(t, checkArrows(mustTree(t)), nil)
}

// closure lists for a package everything of this module that it reaches through product code, each with
// the package that brings it in.
func closure(files []*source, from string) map[string]string {
	direct := make(map[string]map[string]bool)
	for _, s := range files {
		if s.test {
			continue
		}
		for _, im := range s.imports() {
			if ours(im) {
				if direct[s.pkg()] == nil {
					direct[s.pkg()] = make(map[string]bool)
				}
				direct[s.pkg()][im] = true
			}
		}
	}
	reached := map[string]string{from: ""}
	todo := []string{from}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		for im := range direct[p] {
			if _, seen := reached[im]; !seen {
				reached[im] = p
				todo = append(todo, im)
			}
		}
	}
	delete(reached, from)
	return reached
}

// checkKctlCarriesNoEngine: no path of imports leads from kctl, the TUI or admin to the engine.
func checkKctlCarriesNoEngine(files []*source) []finding {
	var out []finding
	roots := map[string]bool{}
	for _, s := range files {
		if p := s.pkg(); !s.test && (under(p, "cmd/kctl") || under(p, "tui") || under(p, "admin")) {
			roots[p] = true
		}
	}
	for r := range roots {
		for p, by := range closure(files, r) {
			if under(p, "broker") {
				out = append(out, finding{r + " " + p, fmt.Sprintf("%s reaches %s by way of %s", r, p, by)})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].key < out[j].key })
	return out
}

func TestKctlCarriesNoEngine(t *testing.T) {
	report(t, checkKctlCarriesNoEngine(mustTree(t)), nil)
}

// checkPackageNames refuses names that say nothing.
func checkPackageNames(files []*source) []finding {
	empty := []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base"}
	var out []finding
	for _, s := range files {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if slices.Contains(empty, name) {
			out = append(out, finding{s.pkg(), fmt.Sprintf("%s: package %s says nothing of what is in it", s.name, name)})
		}
	}
	return out
}

func TestPackageNames(t *testing.T) {
	report(t, checkPackageNames(mustTree(t)), nil)
}

// checkTopLevel keeps the top level as the design fixes it.
func checkTopLevel(files []*source) []finding {
	var out []finding
	for _, s := range files {
		top, _, _ := strings.Cut(s.name, "/")
		if !slices.Contains([]string{"cmd", "broker", "admin", "tui", "zkutil"}, top) {
			out = append(out, finding{s.name, s.name + " lies outside cmd, broker, admin, tui and zkutil"})
		}
	}
	return out
}

func TestTopLevel(t *testing.T) {
	report(t, checkTopLevel(mustTree(t)), nil)
}

func TestArrowChecksFind(t *testing.T) {
	imp := func(p string) string { return "package x\nimport _ \"" + p + "\"\n" }
	mustFind(t, checkArrows, "zkutil/cluster/x.go", imp("kctl/zkutil/zkop"), "zkutil/cluster/x.go zkutil/zkop")
	mustFind(t, checkArrows, "zkutil/x.go", imp("kctl/broker/obs"), "zkutil/x.go broker/obs")
	mustFind(t, checkArrows, "zkutil/x_test.go", imp("kctl/admin"), "zkutil/x_test.go admin")
	mustFind(t, checkArrows, "broker/replica/x.go", imp("kctl/broker/storage"), "broker/replica/x.go broker/storage")
	mustFind(t, checkArrows, "broker/replica/logexec/x.go", imp("kctl/broker/storage"))
	mustFind(t, checkArrows, "broker/replicashell/x.go", imp("kctl/broker/api"), "broker/replicashell/x.go broker/api")
	mustFind(t, checkArrows, "broker/x.go", imp("kctl/admin/plan"), "broker/x.go admin/plan")
	mustFind(t, checkArrows, "broker/x_test.go", imp("kctl/admin/plan"))
	mustFind(t, checkArrows, "admin/plan/x.go", imp("kctl/broker"), "admin/plan/x.go broker")
	mustFind(t, checkArrows, "tui/page/x.go", imp("kctl/zkutil"), "tui/page/x.go zkutil")
	mustFind(t, checkArrows, "tui/page/x.go", imp("kctl/zkutil/cluster"))
	mustFind(t, checkArrows, "cmd/internal/cli/topics/x.go", imp(kadm), "cmd/internal/cli/topics/x.go "+kadm)
	mustFind(t, checkArrows, "broker/server/x.go", imp(zkLibrary), "broker/server/x.go "+zkLibrary)
	mustFind(t, checkArrows, "zkutil/x.go", imp(zkLibrary))
	mustFind(t, checkPackageNames, "admin/util/x.go", "package util\n", "admin/util")
	mustFind(t, checkPackageNames, "admin/types/x_test.go", "package types_test\n", "admin/types")
	mustFind(t, checkTopLevel, "internal/x.go", "package x\n", "internal/x.go")
	mustFind(t, checkTopLevel, "tui/x.go", "package x\n")
}

func TestClosureFinds(t *testing.T) {
	var files []*source
	for name, im := range map[string]string{"cmd/kctl/a.go": "kctl/admin", "admin/b.go": "kctl/zkutil", "zkutil/c.go": "kctl/broker/record"} {
		s, err := parse(name, "package x\nimport _ \""+im+"\"\n")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, s)
	}
	var got []string
	for _, f := range checkKctlCarriesNoEngine(files) {
		got = append(got, f.key)
	}
	if want := []string{"admin broker/record", "cmd/kctl broker/record"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
