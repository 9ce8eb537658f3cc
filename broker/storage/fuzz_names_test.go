package storage

import "testing"

// FuzzNames: what is taken for a log's folder or file has exactly that name.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"t-0", "a-b-12", "t-00", "../x-1", "t--1", "-0", "00000000000000000042.log", "99999999999999999999.log",
		"00000000000000000042.log.swap", "00000000000000000007.index.cleaned", ".swap", "t-0.0123456789abcdef0123456789abcdef-delete"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if tp, ok := parseFolder(name); ok && tp.String() != name {
			t.Errorf("folder %q is taken for %s", name, tp)
		}
		for _, ext := range []string{extLog, extSnapshot} {
			if n, ok := parseOffsetName(name, ext); ok && (n < 0 || offsetName(n)+ext != name) {
				t.Errorf("file %q is taken for offset %d", name, n)
			}
		}
		for _, suffix := range []string{".swap", ".cleaned", ".deleted"} {
			if n, ok := parseSuffixed(name, suffix); ok && n < 0 {
				t.Errorf("file %q is taken for offset %d", name, n)
			}
		}
	})
}
