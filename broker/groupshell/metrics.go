package groupshell

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/broker/group"
)

// metrics of the coordinator. Names are listed in newMetrics and nowhere else.
type metrics struct {
	notes         *prometheus.CounterVec
	commits       prometheus.Counter
	loadSeconds   prometheus.Histogram
	loadSkipped   prometheus.Counter
	loadFailures  prometheus.Counter
	appendRecords prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, m *Manager) *metrics {
	mt := &metrics{
		notes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kafka_coordinator_group_events_total",
			Help: "Happenings in consumer groups by kind: rebalancing, generation, stable, empty, member-removed, offsets-expired, group-removed, append-failed.",
		}, []string{"event"}),
		commits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_coordinator_group_offset_commits_total", Help: "Offsets committed by clients.",
		}),
		loadSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kafka_coordinator_group_partition_load_seconds", Help: "Time to load one partition of __consumer_offsets.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		loadSkipped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_coordinator_group_load_skipped_records_total", Help: "Records of __consumer_offsets that could not be read and were skipped.",
		}),
		loadFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_coordinator_group_load_failures_total", Help: "Loads of a partition that failed and are tried again.",
		}),
		appendRecords: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kafka_coordinator_group_append_records", Help: "Requests whose records were written in one batch.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
	}
	if reg == nil {
		return mt
	}
	reg.MustRegister(mt.notes, mt.commits, mt.loadSeconds, mt.loadSkipped, mt.loadFailures, mt.appendRecords,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kafka_coordinator_group_groups", Help: "Consumer groups that this broker coordinates.",
		}, func() float64 { g, _ := m.counts(); return float64(g) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kafka_coordinator_group_offsets", Help: "Committed offsets held in memory.",
		}, func() float64 { _, o := m.counts(); return float64(o) }),
	)
	return mt
}

func (mt *metrics) note(n group.Note) {
	times := 1
	if n.Kind == group.NoteOffsetsExpired {
		times = n.Count
	}
	mt.notes.WithLabelValues(n.Kind.String()).Add(float64(times))
}
