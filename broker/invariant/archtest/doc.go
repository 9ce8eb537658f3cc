// Package archtest holds the laws of the house as tests over the source of the whole module: import arrows,
// the purity of the cores, the size of functions and files, and what tests must not do. Every check is a
// function from parsed files to findings and has a negative test, which feeds it a file that breaks the
// law.
//
// The tests read the tree at run time, which the test cache does not see: run them with -count=1.
package archtest
