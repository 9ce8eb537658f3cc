// Package kafkatest is the wire of a broker that a test makes up: connections, frames and headers, with every answer left to the
// test. It is a test helper and is imported by tests only.
package kafkatest
