package admin

import "strings"

// javaSettings are settings of Java clients (producer, consumer, admin) that change nothing for kctl.
var javaSettings = map[string]bool{
	"acks": true, "allow.auto.create.topics": true, "auto.commit.interval.ms": true, "auto.include.jmx.reporter": true, "auto.offset.reset": true,
	"batch.size": true, "bootstrap.controllers": true, "buffer.memory": true, "check.crcs": true, "client.dns.lookup": true, "client.rack": true,
	"compression.type": true, "connections.max.idle.ms": true, "default.api.timeout.ms": true, "delivery.timeout.ms": true,
	"enable.auto.commit": true, "enable.idempotence": true, "enable.metrics.push": true, "exclude.internal.topics": true,
	"fetch.max.bytes": true, "fetch.max.wait.ms": true, "fetch.min.bytes": true, "group.id": true, "group.instance.id": true, "group.protocol": true,
	"group.remote.assignor": true, "heartbeat.interval.ms": true, "interceptor.classes": true, "isolation.level": true, "key.deserializer": true,
	"key.serializer": true, "linger.ms": true, "max.block.ms": true, "max.in.flight.requests.per.connection": true,
	"max.partition.fetch.bytes": true, "max.poll.interval.ms": true, "max.poll.records": true, "max.request.size": true,
	"metadata.max.age.ms": true, "metadata.max.idle.ms": true, "metadata.recovery.strategy": true, "metric.reporters": true,
	"metrics.num.samples": true, "metrics.recording.level": true, "metrics.sample.window.ms": true, "partition.assignment.strategy": true,
	"partitioner.class": true, "partitioner.ignore.keys": true, "partitioner.adaptive.partitioning.enable": true, "receive.buffer.bytes": true,
	"reconnect.backoff.max.ms": true, "reconnect.backoff.ms": true, "retries": true, "retry.backoff.max.ms": true, "retry.backoff.ms": true,
	"security.providers": true, "send.buffer.bytes": true, "session.timeout.ms": true, "socket.connection.setup.timeout.ms": true,
	"socket.connection.setup.timeout.max.ms": true, "transaction.timeout.ms": true, "transactional.id": true, "value.deserializer": true,
	"value.serializer": true, "ssl.cipher.suites": true, "ssl.enabled.protocols": true, "ssl.keymanager.algorithm": true, "ssl.protocol": true,
	"ssl.provider": true, "ssl.secure.random.implementation": true, "ssl.trustmanager.algorithm": true, "ssl.engine.factory.class": true,
}

// javaPrefixes are those of Kerberos, OAuth and the login threads.
var javaPrefixes = []string{"sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.", "sasl.client.callback.handler.class"}

// ofJavaClients reports whether a Java client knows a setting that kctl has no use for.
func ofJavaClients(name string) bool {
	if javaSettings[name] {
		return true
	}
	for _, p := range javaPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
