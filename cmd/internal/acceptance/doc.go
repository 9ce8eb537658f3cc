// Package acceptance runs kctl's verbs as scripts against a whole cluster of our brokers: the embedded
// ZooKeeper and three brokers in this process. Each folder of testdata is one cluster, each script in it one
// story told in commands (see TestScripts for the commands beyond testscript's own).
package acceptance
