package model

import "strings"

// ShellWord writes a word for a POSIX shell, in quotes where it needs them. Every name that a printed command takes from the cluster
// goes through it: groups, settings and znodes can have any name, and people paste commands.
func ShellWord(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return ShellQuote(s)
}

// ShellQuote writes a word in single quotes.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
