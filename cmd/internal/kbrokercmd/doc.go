// Package kbrokercmd is the command line of kbroker: start, zookeeper, dev, version.
//
// stdout carries one line, ready, when what was asked for serves; logs and errors go to stderr. Exit codes: 0
// stopped in order, 1 failed, 2 usage or bad configuration (nothing was touched), 5 ZooKeeper not reachable.
// SIGINT and SIGTERM begin an orderly stop; a second one ends the process at once.
package kbrokercmd
