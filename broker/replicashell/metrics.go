package replicashell

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/broker/replica"
)

// metrics are named after Kafka's MBeans of kafka.server:type=ReplicaManager and its neighbours. Figures that
// can be counted from the partitions are counted when they are asked for.
type metrics struct {
	shrinks, expands, blocked, failedAppends       prometheus.Counter
	bytesIn, messagesIn, replicationIn, streamErrs prometheus.Counter
}

func newMetrics(m *Manager, reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	mt := &metrics{
		shrinks:       counter("kafka_server_replicamanager_isrshrinks_total", "ISR changes that removed a replica."),
		expands:       counter("kafka_server_replicamanager_isrexpands_total", "ISR changes that added a replica."),
		blocked:       counter("kafka_server_replicamanager_failedisrupdates_total", "ISR changes given up until the controller speaks."),
		failedAppends: counter("kafka_server_brokertopicmetrics_failedproducerequests_total", "Partitions of produce requests whose append failed."),
		bytesIn:       counter("kafka_server_brokertopicmetrics_bytesin_total", "Bytes appended as leader."),
		messagesIn:    counter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended as leader."),
		replicationIn: counter("kafka_server_brokertopicmetrics_replicationbytesin_total", "Bytes appended as follower."),
		streamErrs:    counter("kafka_server_fetcherstats_requestfailures_total", "Exchanges with a leader that failed."),
	}
	if reg == nil {
		return mt
	}
	for _, c := range []prometheus.Collector{mt.shrinks, mt.expands, mt.blocked, mt.failedAppends, mt.bytesIn, mt.messagesIn,
		mt.replicationIn, mt.streamErrs} {
		reg.MustRegister(c)
	}
	gauge := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("kafka_server_replicamanager_partitioncount", "Replicas hosted.", func() float64 { return float64(len(m.snapshot())) })
	gauge("kafka_server_replicamanager_leadercount", "Replicas that lead.", m.counting(func(p *replica.Partition) bool { return p.Role() == replica.Leader }))
	gauge("kafka_server_replicamanager_offlinereplicacount", "Replicas in a log directory that failed.", m.counting(func(p *replica.Partition) bool { return p.Role() == replica.Offline }))
	gauge("kafka_server_replicamanager_underreplicatedpartitions", "Led partitions with a replica out of the ISR.", m.counting((*replica.Partition).UnderReplicated))
	gauge("kafka_server_replicamanager_underminisrpartitioncount", "Led partitions below min.insync.replicas.", m.counting((*replica.Partition).UnderMinISR))
	gauge("kafka_server_replicamanager_isrchangespending", "Led partitions with an ISR change in flight or blocked.", m.counting(func(p *replica.Partition) bool { pending, _ := p.ISRChangePending(); return pending }))
	gauge("kafka_server_replicafetchermanager_maxlag", "Largest number of records a followed partition lacks.", func() float64 { return float64(m.streams.maxLag()) })
	gauge("kafka_server_replicafetchermanager_streams", "Fetch streams to leaders.", func() float64 { return float64(m.streams.count()) })
	gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions held.", func() float64 { return float64(m.sessions.Len()) })
	return mt
}

func (m *Manager) counting(is func(*replica.Partition) bool) func() float64 {
	return func() float64 {
		n := 0
		for _, p := range m.snapshot() {
			p.mu.Lock()
			if is(p.core) {
				n++
			}
			p.mu.Unlock()
		}
		return float64(n)
	}
}

func (mt *metrics) isrChanged(grown bool) {
	if grown {
		mt.expands.Inc()
	} else {
		mt.shrinks.Inc()
	}
}

func (mt *metrics) isrBlocked()   { mt.blocked.Inc() }
func (mt *metrics) appendFailed() { mt.failedAppends.Inc() }
func (mt *metrics) streamFailed() { mt.streamErrs.Inc() }
func (mt *metrics) replicated(n int) {
	if n > 0 {
		mt.replicationIn.Add(float64(n))
	}
}

func (mt *metrics) appended(bytes int, records int64) {
	mt.bytesIn.Add(float64(bytes))
	mt.messagesIn.Add(float64(records))
}
