package factory_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// newFactory returns a Factory in an empty home with the given flags parsed.
func newFactory(t *testing.T, env map[string]string, in string, args ...string) (*factory.Factory, *bytes.Buffer) {
	t.Helper()
	if env == nil {
		env = map[string]string{}
	}
	if env["HOME"] == "" {
		env["HOME"] = t.TempDir()
	}
	streams, _, errb := iostreams.Test(in)
	f := factory.New(streams, func(k string) string { return env[k] })
	f.Flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Flags.SetNormalizeFunc(factory.Aliases)
	factory.AddGlobalFlags(f.Flags)
	if err := f.Flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f, errb
}

func TestConfirm(t *testing.T) {
	for _, tt := range []struct {
		name   string
		in     string
		tty    bool
		flags  factory.ChangeFlags
		want   exit.Code
		prompt bool
	}{
		{"yes flag", "", false, factory.ChangeFlags{Yes: true}, exit.OK, false},
		{"no terminal", "y\n", false, factory.ChangeFlags{}, exit.Usage, false},
		{"answered y", "y\n", true, factory.ChangeFlags{}, exit.OK, true},
		{"answered YES", "YES\n", true, factory.ChangeFlags{}, exit.OK, true},
		{"answered n", "n\n", true, factory.ChangeFlags{}, exit.Failed, true},
		{"just enter", "\n", true, factory.ChangeFlags{}, exit.Failed, true},
		{"end of input", "", true, factory.ChangeFlags{}, exit.Failed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, errb := newFactory(t, nil, tt.in)
			f.IO.InTTY, f.IO.ErrTTY = tt.tty, tt.tty
			if got := exit.CodeOf(f.Confirm(tt.flags, "move 3 leaders?")); got != tt.want {
				t.Errorf("exit %d, want %d", got, tt.want)
			}
			if got := strings.Contains(errb.String(), "move 3 leaders? [y/N]"); got != tt.prompt {
				t.Errorf("prompt: %v", got)
			}
		})
	}
}

func TestJournal(t *testing.T) {
	home := t.TempDir()
	f, errb := newFactory(t, map[string]string{"HOME": home}, "")
	f.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	if changes, err := f.History(); err != nil || changes != nil {
		t.Errorf("no journal: %v %v", changes, err)
	}
	f.Record(factory.Change{Command: "topics create", Object: "a"}, factory.Change{Command: "topics delete", Object: "b"})
	path := filepath.Join(home, ".local", "state", "kctl", "history.jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("{half a li\n"); err != nil { // a crash in the middle of a line
		t.Fatal(err)
	}
	_ = file.Close()
	f.Record(factory.Change{Command: "elect preferred", Object: "c:0"})
	changes, err := f.History()
	if err != nil || len(changes) != 3 || changes[0].Time != "2026-01-02T03:04:05.000Z" || changes[2].Object != "c:0" {
		t.Errorf("%+v %v", changes, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	// A journal that cannot be written does not undo what was done, but is said.
	blocked, errb2 := newFactory(t, map[string]string{"XDG_STATE_HOME": path}, "")
	blocked.Record(factory.Change{Command: "x"})
	if !strings.Contains(errb2.String(), "not in the journal") || !strings.Contains(errb.String(), "history.jsonl:3 is skipped") {
		t.Errorf("%q %q", errb2, errb)
	}
}

func TestXDGPaths(t *testing.T) {
	f, _ := newFactory(t, map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "relative"}, "")
	if f.ConfigPath() != "/c/kctl/config.yaml" || f.JournalPath() != "/h/.local/state/kctl/history.jsonl" {
		t.Errorf("%s %s", f.ConfigPath(), f.JournalPath())
	}
	f, _ = newFactory(t, map[string]string{"KCTL_CONFIG": "/x.yaml"}, "")
	if f.ConfigPath() != "/x.yaml" {
		t.Errorf("%s", f.ConfigPath())
	}
}

func TestSettings(t *testing.T) {
	f, _ := newFactory(t, map[string]string{
		"KCTL_OUTPUT": "yaml", "KCTL_TIMEOUT": "3s", "KCTL_NO_HEADERS": "true", "KCTL_BROKERS": "b:1", "KCTL_ZOOKEEPER": "z:2181/kafka",
	}, "")
	s, err := f.Settings()
	if err != nil {
		t.Fatal(err)
	}
	if s.Output != "yaml" || s.Timeout != 3*time.Second || !s.NoHeaders || s.BootstrapServer != "b:1" || s.ZooKeeper != "z:2181/kafka" || !f.Machine() {
		t.Errorf("%+v", s)
	}
	cfg, err := s.Config()
	if err != nil || cfg.Timeout != 3*time.Second || cfg.Bootstrap[0] != "b:1" || cfg.ZooKeeper.Chroot != "/kafka" {
		t.Errorf("%+v %v", cfg, err)
	}
	f, _ = newFactory(t, nil, "")
	s, err = f.Settings()
	if err != nil || s.BootstrapServer != factory.DefaultBootstrap || s.ZooKeeper != "" {
		t.Errorf("defaults: %+v %v", s, err)
	}
	f, _ = newFactory(t, nil, "", "-z", "z:1")
	s, err = f.Settings()
	if err != nil || s.BootstrapServer != "" {
		t.Errorf("with only -z nothing is guessed: %+v %v", s, err)
	}
}

// TestFromDirBesideACluster: a flag that names a cluster comes before the variable that names a data directory; two flags exclude
// each other.
func TestFromDirBesideACluster(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{{nil, "/old"}, {[]string{"-b", "b:1"}, ""}, {[]string{"-z", "z:1"}, ""}, {[]string{"--from-dir", "/new"}, "/new"}} {
		f, _ := newFactory(t, map[string]string{"KCTL_FROM_DIR": "/old", "KCTL_BOOTSTRAP_SERVER": "e:1"}, "", tt.args...)
		if s, err := f.Settings(); err != nil || s.FromDir != tt.want {
			t.Errorf("%v: %+v %v", tt.args, s, err)
		}
	}
	f, _ := newFactory(t, nil, "", "--from-dir", "/new", "-b", "b:1")
	if _, err := f.Settings(); err == nil || !strings.Contains(err.Error(), "cannot be used with --bootstrap-server") {
		t.Error(err)
	}
}

// TestContextAddressesStayTogether: an address that is given replaces both of the context's, so that two
// clusters are never mixed; the context's other settings stay.
func TestContextAddressesStayTogether(t *testing.T) {
	home := t.TempDir()
	f, _ := newFactory(t, map[string]string{"HOME": home}, "")
	file := &factory.File{Current: "c", Contexts: []factory.Context{{
		Name: "c", BootstrapServer: "a:1", ZooKeeper: "z:1", Properties: []string{"client.id=me"},
	}}}
	if err := f.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, bootstrap, zookeeper, client string }{
		{"", "a:1", "z:1", "me"},
		{"-b x:9", "x:9", "", ""},
		{"-z y:9", "", "y:9", ""},
		{"--context c -b x:9", "x:9", "", "me"},
		{"-X client.id=you", "a:1", "z:1", "you"},
	} {
		f, _ := newFactory(t, map[string]string{"HOME": home}, "", strings.Fields(tt.args)...)
		s, err := f.Settings()
		if err != nil || s.BootstrapServer != tt.bootstrap || s.ZooKeeper != tt.zookeeper || s.Properties["client.id"] != tt.client {
			t.Errorf("%q: %+v %v", tt.args, s, err)
		}
	}
}
