package server

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	connections prometheus.Gauge
	accepted    prometheus.Counter
	rejected    prometheus.Counter
	bytesOut    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kafka_server_socket_server_connections", Help: "Open client connections."}),
		accepted:    prometheus.NewCounter(prometheus.CounterOpts{Name: "kafka_server_socket_server_connections_accepted_total", Help: "Connections accepted."}),
		rejected:    prometheus.NewCounter(prometheus.CounterOpts{Name: "kafka_server_socket_server_connections_rejected_total", Help: "Connections refused by a limit."}),
		bytesOut:    prometheus.NewCounter(prometheus.CounterOpts{Name: "kafka_server_socket_server_bytes_out_total", Help: "Bytes of answers sent."}),
	}
	if reg != nil {
		reg.MustRegister(m.connections, m.accepted, m.rejected, m.bytesOut)
	}
	return m
}
