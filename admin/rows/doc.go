// Package rows turns the model into rows: the structs whose JSON field names are the stable output of the
// command line, and the columns in which people read them. It is pure. The command line and the terminal
// interface print the same rows, so they can never disagree.
//
// A Kind describes one sort of row: its list name, its columns and its JSON schema. Kinds lists them all.
package rows
