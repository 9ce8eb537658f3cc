//go:build !linux

package zkserver

import "os"

func datasync(f *os.File) error { return f.Sync() }
