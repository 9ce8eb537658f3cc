package verb_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type item struct {
	Name string `json:"name"`
	Done bool   `json:"done"`
}

var items = rows.Kind[item]{
	Name: "Item", Title: "items", ID: func(i item) string { return i.Name },
	Columns: []rows.Column[item]{
		{Name: "NAME", Cell: func(i item) string { return i.Name }},
		{Name: "DONE", Cell: func(i item) string { return fmt.Sprint(i.Done) }},
	},
}

// TestChange: the plan is printed before the change and the outcome after it, a dry run prints the plan as its answer and makes no change,
// nothing is asked when nothing is needed, what was refused or failed decides the exit code, and the journal has every entry.
func TestChange(t *testing.T) {
	refused := []model.Problem{{Object: "c", Message: "it is dead"}}
	for _, tt := range []struct {
		name           string
		change         verb.Change[item]
		problems       []model.Problem
		errs           []error
		code           exit.Code
		out, err, fail string // parts of stdout, stderr and the error
		made           bool
	}{
		{name: "done", change: verb.Change[item]{Needed: 1, Flags: factory.ChangeFlags{Yes: true}}, out: "a     true", err: "will change:", made: true},
		{name: "without consent", change: verb.Change[item]{Needed: 1}, code: exit.Usage, err: "a     false", fail: "needs --yes"},
		{name: "harmless", change: verb.Change[item]{Needed: 1, Harmless: true}, out: "a     true", err: "will change:", made: true},
		{name: "dry run", change: verb.Change[item]{Needed: 1, Flags: factory.ChangeFlags{DryRun: true}}, out: "a     false", err: "dry run: would change"},
		{name: "nothing needed", change: verb.Change[item]{Fine: 1}, out: "a     false", err: "nothing to change"},
		{name: "only refused", change: verb.Change[item]{Refused: refused}, out: "a     false", code: exit.Failed, fail: "nothing was changed: c: it is dead"},
		{name: "refused, others fine", change: verb.Change[item]{Fine: 1, Refused: refused}, out: "a     false", code: exit.Partial, fail: "1 of 2 cannot be changed: c: it is dead"},
		{name: "dry run, one refused", change: verb.Change[item]{Needed: 1, Refused: refused, Flags: factory.ChangeFlags{DryRun: true}},
			out: "a     false", err: "dry run", code: exit.Partial, fail: "1 of 2 cannot be changed: c: it is dead"},
		{name: "refused again", change: verb.Change[item]{Needed: 1, Refused: refused, Flags: factory.ChangeFlags{Yes: true}}, problems: refused,
			out: "a     true", err: "will change:", code: exit.Partial, fail: "partly done, 1 of 2 failed: c: it is dead", made: true},
		{name: "all failed", change: verb.Change[item]{Needed: 1, Flags: factory.ChangeFlags{Yes: true}}, problems: []model.Problem{{Object: "a", Message: "no"}},
			out: "a     true", err: "will change:", code: exit.Failed, fail: "nothing was changed: a: no", made: true},
		{name: "not authorised", change: verb.Change[item]{Needed: 1, Flags: factory.ChangeFlags{Yes: true}}, errs: []error{&exit.Error{Code: exit.Unauthorized, Msg: "no"}},
			out: "a     true", err: "will change:", code: exit.Unauthorized, fail: "no", made: true},
		{name: "one of two", change: verb.Change[item]{Needed: 2, Flags: factory.ChangeFlags{Yes: true}}, errs: []error{errors.New("no")},
			out: "a     true", err: "will change:", code: exit.Partial, fail: "partly done, 1 of 2 failed: no", made: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			streams, out, errb := iostreams.Test("")
			home := t.TempDir()
			f := factory.New(streams, func(name string) string { return map[string]string{"HOME": home}[name] })
			f.Flags = pflag.NewFlagSet("kctl", pflag.ContinueOnError)
			factory.AddGlobalFlags(f.Flags)
			c := tt.change
			c.Kind, c.Plan, c.What, c.Question = items, []item{{"a", false}}, "change", "change it?"
			c.Do = func() (verb.Outcome[item], error) {
				return verb.Outcome[item]{Rows: []item{{"a", true}}, Entries: []factory.Change{{Command: "change", Object: "a"}}, Problems: tt.problems, Errs: tt.errs}, nil
			}
			err := c.Run(f)
			if exit.CodeOf(err) != tt.code || tt.fail != "" && !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("exit %d, %v; want %d, %s", exit.CodeOf(err), err, tt.code, tt.fail)
			}
			if !strings.Contains(out.String(), tt.out) || tt.out == "" && out.Len() > 0 || !strings.Contains(errb.String(), tt.err) {
				t.Errorf("stdout\n%sstderr\n%s", out, errb)
			}
			entries := journalLines(t, f)
			if (entries == 1) != tt.made {
				t.Errorf("%d entries in the journal", entries)
			}
		})
	}
}

func journalLines(t *testing.T, f *factory.Factory) int {
	t.Helper()
	data, err := os.ReadFile(f.JournalPath())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// TestChangeInOtherForms: one object is printed as such, a plan and an answer in the form that the verb gives them, rows also of a
// change that ended before its end, and what failed as a whole is in the journal.
func TestChangeInOtherForms(t *testing.T) {
	cut, failed := errors.New("cut short"), errors.New("failed")
	for _, tt := range []struct {
		name     string
		change   verb.Change[item]
		ended    error
		do       error
		out, err string // the whole of stdout, a part of stderr
		want     error
		entries  int
	}{
		{name: "single", change: verb.Change[item]{Single: true, Flags: factory.ChangeFlags{Yes: true}}, out: "NAME:  a\nDONE:  true\n", err: "will change:\nNAME:  a\nDONE:  false\n", entries: 1},
		{name: "own plan", change: verb.Change[item]{Flags: factory.ChangeFlags{Yes: true}}, out: "NAME  DONE\na     true\n", err: "1. do it", entries: 1},
		{name: "own plan, dry run", change: verb.Change[item]{Flags: factory.ChangeFlags{DryRun: true}}, out: "NAME  DONE\na     false\n", err: "1. do it"},
		{name: "own answer", change: verb.Change[item]{Flags: factory.ChangeFlags{Yes: true}}, out: "a,true", err: "will change:", entries: 1},
		{name: "own answer, dry run", change: verb.Change[item]{Flags: factory.ChangeFlags{DryRun: true}}, out: "a,false", err: "would change"},
		{name: "ended", change: verb.Change[item]{Flags: factory.ChangeFlags{Yes: true}}, ended: cut, out: "NAME  DONE\na     true\n", want: cut, entries: 1},
		{name: "failed", change: verb.Change[item]{Flags: factory.ChangeFlags{Yes: true}}, do: failed, want: failed, entries: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			streams, out, errb := iostreams.Test("")
			home := t.TempDir()
			f := factory.New(streams, func(name string) string { return map[string]string{"HOME": home}[name] })
			f.Flags = pflag.NewFlagSet("kctl", pflag.ContinueOnError)
			factory.AddGlobalFlags(f.Flags)
			c := tt.change
			c.Kind, c.Plan, c.What, c.Needed = items, []item{{"a", false}}, "change", 1
			if strings.HasPrefix(tt.name, "own plan") {
				c.ShowPlan = func() error { f.Say("1. do it"); return nil }
			}
			if strings.HasPrefix(tt.name, "own answer") {
				c.Answer = func(p *output.Printer, items []item, _ []rows.ErrorRow) error {
					_, err := fmt.Fprintf(p.Out, "%s,%v", items[0].Name, items[0].Done)
					return err
				}
			}
			c.Do = func() (verb.Outcome[item], error) {
				return verb.Outcome[item]{Rows: []item{{"a", true}}, Entries: []factory.Change{{Command: "change", Object: "a"}}, Ended: tt.ended}, tt.do
			}
			if err := c.Run(f); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if out.String() != tt.out || !strings.Contains(errb.String(), tt.err) {
				t.Errorf("stdout\n%q\nstderr\n%q", out, errb)
			}
			if n := journalLines(t, f); n != tt.entries {
				t.Errorf("%d entries in the journal, want %d", n, tt.entries)
			}
		})
	}
}
