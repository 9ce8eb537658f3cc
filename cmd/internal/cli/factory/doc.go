// Package factory gives commands what they need, when they need it: settings, streams, the cluster, the
// journal. Everything is lazy, so that help and completion read no file and open no connection.
package factory
