// Package scripts runs the script tests of the pure cores: files of commands, each with the effects that it must have.
// What a command is and how its effects are written is each core's own business.
//
// Only tests import it. It reads and, with -rewrite, writes files; it starts no goroutine.
package scripts
