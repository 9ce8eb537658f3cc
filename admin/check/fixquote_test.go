package check_test

import (
	"strings"
	"testing"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
)

// TestFixesQuoteNames: names of groups, settings and fields come from outside; pasted into a shell they stay names.
func TestFixesQuoteNames(t *testing.T) {
	const evil = "x; touch /tmp/evil '`"
	f := facts()
	f.Groups = []check.Group{{Name: evil, Topics: []string{"gone"}}}
	f.Tree.TopicConfigs = []check.Node{node("/config/topics/t", `{"version":1,"config":{"retention.ms":"x"}}`, time.Hour)}
	f.Tree.States[0].Raw = []byte(`{"controller_epoch":99,"leader":1,"version":1,"leader_epoch":4,"isr":[1],"x":"it's; touch /tmp/evil"}`)
	f.Tree.States[0].ControllerEpoch = 99
	want := map[string]string{
		"group-offsets-of-missing-topic": "kctl groups delete-offsets 'x; touch /tmp/evil '\\''`' --topic gone --yes",
		"controller-epoch-ahead":         `"x":"it'\''s; touch /tmp/evil"`,
	}
	for _, x := range check.Diagnose(f, nil).Findings {
		if part, ok := want[x.ID]; ok && strings.Contains(x.Fix, part) {
			delete(want, x.ID)
		} else if ok {
			t.Errorf("%s: %s", x.ID, x.Fix)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"orders:0": "orders:0", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "a\nb": "'a\nb'", "é": "'é'"} {
		if got := model.ShellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
