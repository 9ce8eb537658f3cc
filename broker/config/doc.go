// Package config reads server.properties, knows Kafka's configuration keys, and holds what the cluster has
// changed at run time.
//
// Three layers, from the outside in: a parser of Java .properties files (Parse); one table of keys with type,
// default, allowed values, documentation and dynamic scope (Keys, TopicKeys); and the typed results
// (Broker, storage.Config). Dynamic holds the overrides of /config/topics and /config/brokers and keeps them
// current through the notifications of /config/changes, as Apache Kafka 3.9 does in ZooKeeper mode.
//
// Keys are case-sensitive and dotted, as in Kafka. An unknown key is a warning, a bad value an error that
// names key, value and what is allowed. The package imports broker/storage for its Config and zkutil for the
// znodes; broker/api, broker/topicadmin and broker call it. Broker values are immutable after Load; Dynamic is
// safe for concurrent use.
package config
