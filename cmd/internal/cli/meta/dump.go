package meta

import "kctl/cmd/internal/cli/dump"

// addDump adds the rows of kctl dump, which come one a line and never as a list.
func addDump(add func(name string, row any, list bool)) {
	for name, row := range dump.Rows() {
		add(name, row, false)
	}
}
