package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"kctl/admin/check"
	"kctl/cmd/internal/cli/exit"
)

// TestDocumented: the page on the surface names every finding and every exit code.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/kctl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range check.IDs() {
		if !strings.Contains(string(page), "| `"+id[0]+"` |") || !strings.Contains(string(page), id[1]) {
			t.Errorf("finding %s (%s) is not documented", id[0], id[1])
		}
	}
	for _, e := range exit.Table() {
		if !strings.Contains(string(page), fmt.Sprintf("| %d | ", e.Code)) {
			t.Errorf("exit code %d is not documented", e.Code)
		}
	}
}
