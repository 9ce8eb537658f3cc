package factory

import (
	"strings"

	"kctl/admin"
	"kctl/admin/model"
)

// Runnable returns a command that was made for this cluster, such as the fix of a finding, so that it can be run as it is: what the
// command line of this run said about the way to the cluster is said there too. The environment and the configuration file need no
// repetition. Properties that are secrets by their name are left out: commands end up in logs. What is no command of kctl stays.
func (f *Factory) Runnable(command string) string {
	way := f.way()
	if way == "" || !strings.HasPrefix(command, "kctl ") {
		return command
	}
	const next = "# then kctl "
	command = "kctl " + way + strings.TrimPrefix(command, "kctl ")
	return strings.ReplaceAll(command, next, next+way)
}

// way is the part of the command line that says how to reach the cluster, with a blank behind; empty when nothing was said. Without
// flags of a cluster there is none: a picture in a data directory is mended in the cluster that it was taken of.
func (f *Factory) way() string {
	var b strings.Builder
	add := func(flag, value string) { b.WriteString(flag + " " + model.ShellWord(value) + " ") }
	for _, flag := range []struct{ name, short string }{
		{FlagContext, "--context"}, {FlagCommandConfig, "--command-config"}, {FlagBootstrap, "-b"}, {FlagZooKeeper, "-z"},
	} {
		if f.Flags.Changed(flag.name) {
			add(flag.short, f.Flags.Lookup(flag.name).Value.String())
		}
	}
	pairs, err := f.Flags.GetStringArray(FlagProperty)
	if err != nil {
		return b.String() // not declared: a test's own set of flags
	}
	for _, pair := range pairs {
		if key, _, _ := strings.Cut(pair, "="); !admin.SecretKey(key) {
			add("-X", pair)
		}
	}
	return b.String()
}
