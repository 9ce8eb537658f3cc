package meta

import "kctl/admin/rows"

// addLogDirs adds what the verbs on log directories print.
func addLogDirs(add func(name string, row any, list bool)) {
	add("LogDir", rows.LogDir{}, true)
	add("DirReplica", rows.DirReplica{}, true)
	add("DirMove", rows.DirMove{}, true)
}
