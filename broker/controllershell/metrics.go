package controllershell

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/broker/controller"
)

// metrics are Kafka's controller metrics under Prometheus names, and those of tracked transitions.
type metrics struct {
	queueTime       prometheus.Histogram
	requestTime     prometheus.Histogram
	requestFailures prometheus.Counter
	elections       prometheus.Counter
	unclean         prometheus.Counter
	alertsRaised    prometheus.Counter
	events          *prometheus.CounterVec
}

func newMetrics(s *Shell) *metrics {
	m := &metrics{
		queueTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kafka_controller_event_queue_time_seconds", Help: "How long events waited for the controller (EventQueueTimeMs).",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}),
		requestTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kafka_controller_request_seconds", Help: "Round trip of control requests to brokers.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}),
		requestFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_controller_request_failures_total", Help: "Control requests whose outcome is unknown; each is sent again.",
		}),
		elections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_controller_leader_elections_total", Help: "Leader and ISR decisions written (LeaderElectionRateAndTimeMs).",
		}),
		unclean: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_controller_unclean_leader_elections_total", Help: "Leaders elected outside the ISR (UncleanLeaderElectionsPerSec).",
		}),
		alertsRaised: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kafka_controller_leadership_alerts_raised_total", Help: "Transitions that were not confirmed within leader.transition.timeout.ms.",
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kafka_controller_events_total", Help: "Happenings by kind.",
		}, []string{"event"}),
	}
	if s.opts.Registerer != nil {
		s.opts.Registerer.MustRegister(m.queueTime, m.requestTime, m.requestFailures, m.elections, m.unclean, m.alertsRaised, m.events)
		registerGauges(s)
	}
	return m
}

func registerGauges(s *Shell) {
	gauge := func(name, help string, value func(controller.Stats) int) {
		s.opts.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kafka_controller_" + name, Help: help},
			func() float64 { return float64(value(s.Stats())) }))
	}
	gauge("active_controller_count", "1 on the controller, 0 elsewhere (ActiveControllerCount).", func(controller.Stats) int {
		if s.IsActive() {
			return 1
		}
		return 0
	})
	gauge("event_queue_size", "Events and jobs waiting for the controller (EventQueueSize).",
		func(st controller.Stats) int { return len(s.inbox) + st.QueuedJobs })
	gauge("active_broker_count", "Registered brokers (ActiveBrokerCount).", func(st controller.Stats) int { return st.ActiveBrokers })
	gauge("offline_partitions_count", "Partitions without a live leader (OfflinePartitionsCount).", func(st controller.Stats) int { return st.Offline })
	gauge("preferred_replica_imbalance_count", "Partitions not led by their preferred replica (PreferredReplicaImbalanceCount).",
		func(st controller.Stats) int { return st.PreferredImbalance })
	gauge("global_topic_count", "Topics (GlobalTopicCount).", func(st controller.Stats) int { return st.Topics })
	gauge("global_partition_count", "Partitions (GlobalPartitionCount).", func(st controller.Stats) int { return st.Partitions })
	gauge("topics_to_delete_count", "Topics being deleted (TopicsToDeleteCount).", func(st controller.Stats) int { return st.TopicsToDelete })
	gauge("topics_ineligible_to_delete_count", "Topic deletions that wait (TopicsIneligibleToDeleteCount).", func(st controller.Stats) int { return st.TopicsIneligible })
	gauge("replicas_to_delete_count", "Replicas being deleted (ReplicasToDeleteCount).", func(st controller.Stats) int { return st.ReplicasToDelete })
	gauge("replicas_ineligible_to_delete_count", "Replica deletions that wait (ReplicasIneligibleToDeleteCount).", func(st controller.Stats) int { return st.ReplicasIneligible })
	gauge("total_queue_size", "Control requests waiting for brokers or in flight (TotalQueueSize).", func(st controller.Stats) int { return st.QueuedRequests })
	gauge("reassigning_partitions", "Partitions that are being reassigned.", func(st controller.Stats) int { return st.Reassigning })
	gauge("leadership_transitions_pending", "Decisions that not every replica has confirmed yet.", func(st controller.Stats) int { return st.Transitions })
	gauge("leadership_alerts", "Decisions that are overdue.", func(st controller.Stats) int { return st.Alerts })
}

func (m *metrics) note(n controller.Note) {
	m.events.WithLabelValues(string(n.Kind)).Inc()
	switch n.Kind {
	case controller.NoteElections, controller.NoteRebalance:
		m.elections.Add(float64(n.Count))
	case controller.NoteUncleanElection:
		m.unclean.Inc()
	}
}
