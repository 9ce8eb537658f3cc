// Package shelltest holds the tests of kctl in real shells on a terminal.
package shelltest
