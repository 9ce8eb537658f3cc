package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metricsServer serves /metrics, /healthz, /readyz and, when allowed, profiles. Without an address it serves
// nothing.
type metricsServer struct {
	ln  net.Listener
	srv *http.Server
}

func newMetricsServer(b *Broker) (*metricsServer, error) {
	addr := b.static.Values().String("metrics.listener")
	if addr == "" {
		return &metricsServer{}, nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics.listener cannot bind %s: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(b.reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-b.ready:
			fmt.Fprintln(w, "ready")
		default:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	if b.static.Values().Bool("debug.pprof") {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return &metricsServer{ln: ln, srv: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}}, nil
}

// MetricsAddr returns the address of metrics.listener, or "".
func (b *Broker) MetricsAddr() string {
	<-b.bound
	if b.metrics == nil || b.metrics.ln == nil {
		return ""
	}
	return b.metrics.ln.Addr().String()
}

func (m *metricsServer) run(ctx context.Context) error {
	if m.srv == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, m.close)
	defer stop()
	if err := m.srv.Serve(m.ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (m *metricsServer) close() {
	if m.srv != nil {
		m.srv.Close()
		m.ln.Close()
	}
}

// registerMetrics adds the figures that are read when they are asked for, under Kafka's names.
func (b *Broker) registerMetrics() {
	gauge := func(name, help string, value func() float64) {
		b.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	b.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge("kafka_server_broker_state", "3 while the broker is running.", func() float64 { return 3 })
	gauge("kafka_server_metadata_brokers", "Live brokers in the metadata cache.", func() float64 { return float64(len(b.cache.AliveBrokers())) })
	gauge("kafka_server_metadata_partitions", "Partitions in the metadata cache.", func() float64 { return float64(b.cache.Snapshot().PartitionCount()) })
}
