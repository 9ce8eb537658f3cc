package contexts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kctl/admin"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
)

// absent is the expectation that a context is not there.
const absent = "none"

const expectUsage = "the mark of the context as it must be, or none, else nothing is changed; the undo of a change names it"

var markForm = regexp.MustCompile("^[0-9a-f]{12}$")

// markOf tells states of a context apart. The values of secrets are not in it: it stands in the journal.
func markOf(c factory.Context) string {
	parts := []string{c.BootstrapServer, c.ZooKeeper, c.CommandConfig, strconv.FormatBool(c.ReadOnly), c.ClusterID}
	for _, p := range c.Properties {
		if k, _, _ := strings.Cut(p, "="); admin.SecretKey(k) {
			p = k
		}
		parts = append(parts, p)
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", parts)))
	return hex.EncodeToString(sum[:6])
}

// checkExpected refuses a context that is not as --expect says; an empty expectation holds always. That the context has
// remembered its cluster meanwhile is no change: kctl does so by itself.
func checkExpected(file *factory.File, name, expect string) error {
	if expect == "" {
		return nil
	}
	if expect != absent && !markForm.MatchString(expect) {
		return exit.Usagef("--expect %q is neither none nor a mark of 12 hexadecimal digits", expect)
	}
	i := slices.IndexFunc(file.Contexts, func(c factory.Context) bool { return c.Name == name })
	is := "does not exist"
	if i >= 0 {
		c := file.Contexts[i]
		if is = "is " + summary(&c); markOf(c) == expect {
			return nil
		}
		if c.ClusterID = ""; markOf(c) == expect {
			return nil
		}
	} else if expect == absent {
		return nil
	}
	return &exit.Error{
		Code: exit.Failed, Msg: fmt.Sprintf("context %s is not as expected: it %s; nothing was changed", name, is),
		Hint: "leave --expect out to change it all the same",
	}
}
