package broker

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzContinuity: a broken note counts as none, and what is read is a data epoch.
func FuzzContinuity(f *testing.F) {
	for _, s := range []string{`{"boot_id":"b","data_epoch":7}`, `{"boot_id":"","data_epoch":-1}`, `{}`, `null`, ``, `[`, `{"boot_id":"b","data_epoch":9223372036854775808}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, continuityFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		clean, crashed := readContinuity([]string{dir}, "b", true), readContinuity([]string{dir}, "b", false)
		if clean < 0 || crashed != 0 && crashed != clean {
			t.Fatalf("%q: data epoch %d after a stop in order, %d after a crash", data, clean, crashed)
		}
		if epoch := readContinuity([]string{dir}, "", false); epoch != 0 {
			t.Fatalf("%q: data epoch %d although the boot is unknown", data, epoch)
		}
	})
}

// FuzzMetaProperties: the mark of a log directory is read or refused.
func FuzzMetaProperties(f *testing.F) {
	for _, s := range []string{"version=0\nbroker.id=1\ncluster.id=x\n", "", "broker.id=\\u12", "=\n:"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, metaFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if meta, err := readMeta(dir); err == nil && meta == nil {
			t.Fatalf("%q is taken for no file", data)
		}
	})
}
