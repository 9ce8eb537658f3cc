// Package controllershell runs the controller core (broker/controller): one goroutine owns the core and
// its queue, one sender goroutine per live broker delivers control requests, ZooKeeper effects run in order
// through zkutil.Client, alerts become log lines and metrics.
//
// The broker wires it: it calls Run, forwards ControlledShutdown, AlterPartition and ElectLeaders requests
// to the handlers from any goroutine, and tells Registered after each registration in ZooKeeper.
package controllershell
