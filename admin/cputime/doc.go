// Package cputime is the clock of tests that bound work: processor time, which what else the machine does hardly changes. Only
// tests import it.
package cputime
