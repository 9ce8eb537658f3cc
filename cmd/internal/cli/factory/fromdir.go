package factory

import (
	"strings"

	"kctl/admin"
	"kctl/cmd/internal/cli/exit"
)

// fromDir reads --from-dir or its variable. It stands alone: an address beside it would be ignored silently. A flag that
// names a cluster comes before the variable.
func (f *Factory) fromDir(s *Settings) error {
	s.note = f.Note
	cluster := ""
	for _, other := range []string{FlagBootstrap, FlagZooKeeper, FlagContext} {
		if o := f.Flags.Lookup(other); o != nil && o.Changed && o.Value.String() != "" {
			cluster = other
		}
	}
	flag := f.Flags.Lookup(FlagFromDir)
	if flag == nil || !flag.Changed {
		if cluster == "" {
			s.FromDir = f.env(FlagFromDir)
		}
		return nil
	}
	if cluster != "" {
		return exit.Usagef("--from-dir reads files; it cannot be used with --%s", cluster)
	}
	if flag.Value.String() == "" {
		return exit.Usagef("--from-dir needs a folder")
	}
	s.FromDir = flag.Value.String()
	return nil
}

// readFromDir replaces the cluster by a data directory.
func (s *Settings) readFromDir(cfg *admin.Config) error {
	dir, chroot, _ := strings.Cut(s.FromDir, "@/")
	chroot = strings.Trim(chroot, "/")
	if chroot != "" {
		chroot = "/" + chroot
	}
	return cfg.ReadFromDir(dir, chroot, s.note)
}
