// Package vfs is the seam between the storage engine and the disk. FS says what the engine needs of a file
// system and what it may rely on; OS is the real one; Mem is one in memory whose CrashClone shows what a
// disk may hold after a power cut and whose fault rules make errors, full disks and torn writes test inputs.
//
// One contract suite (contract_test.go) runs against both. The package imports nothing of the product. Every type is
// safe for concurrent use unless it says otherwise.
package vfs
