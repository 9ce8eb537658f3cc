// Package version holds what the build stamps into both binaries (see the Makefile's -ldflags).
package version

import "runtime/debug"

// Set by the linker; the defaults are those of a plain `go build`.
var (
	Version = "dev"
	Commit  = ""
	Date    = ""
)

// Info is what `version -o json` prints.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
}

// Get returns the stamped values, with the module's build information where nothing was stamped.
func Get() Info {
	info := Info{Version: Version, Commit: Commit, Date: Date}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.Go = build.GoVersion
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && info.Commit == "":
			info.Commit = s.Value
		case s.Key == "vcs.time" && info.Date == "":
			info.Date = s.Value
		}
	}
	return info
}
