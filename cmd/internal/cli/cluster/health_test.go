package cluster

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// TestHealthyIsSaidOfTheWhole: what could not be asked is not called healthy, and every part that is missing is named.
func TestHealthyIsSaidOfTheWhole(t *testing.T) {
	missing := []rows.ErrorRow{{Object: "zookeeper", Message: "connection refused"}, {Object: "topic configs", Message: "REQUEST_TIMED_OUT"}}
	info := []rows.Finding{{ID: "not-preferred", Severity: "info", Object: "t-0"}}
	for _, tt := range []struct {
		args     []string
		findings []rows.Finding
		errs     []rows.ErrorRow
		out      string // of stdout
		code     exit.Code
		err      string
	}{
		{nil, nil, nil, "healthy\n", exit.OK, ""},
		{nil, nil, missing, "no findings, but not everything could be asked\n", exit.Partial, "partly answered: zookeeper: connection refused; topic configs: REQUEST_TIMED_OUT"},
		{[]string{"-o", "name"}, nil, nil, "", exit.OK, ""},
		{[]string{"-o", "name"}, info, missing, "not-preferred\n", exit.Partial, "zookeeper"},
	} {
		streams, out, _ := iostreams.Test("")
		f := factory.New(streams, func(string) string { return "" })
		f.Flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
		factory.AddGlobalFlags(f.Flags)
		if err := f.Flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		err := (&healthOptions{f: f}).print(rows.Health{Healthy: true, Findings: tt.findings, Errors: tt.errs})
		if out.String() != tt.out || exit.CodeOf(err) != tt.code {
			t.Errorf("%v %v: %q, %v", tt.args, tt.errs, out, err)
		}
		if tt.err != "" && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v", err)
		}
	}
}
