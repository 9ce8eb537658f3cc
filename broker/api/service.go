package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/broker/server"
)

// definition states what one file serves. handle returns the answer, or nil when it has answered or will answer
// by itself.
type definition struct {
	key      int16
	min, max int16
	handle   func(s *Service, ctx context.Context, c *call) kmsg.Response
}

// definitions is the table of all that is served; ApiVersions announces it.
func definitions() []definition {
	return []definition{
		produceAPI, fetchAPI, listOffsetsAPI, metadataAPI,
		leaderAndISRAPI, stopReplicaAPI, updateMetadataAPI, controlledShutdownAPI,
		offsetCommitAPI, offsetFetchAPI, findCoordinatorAPI, joinGroupAPI, heartbeatAPI, leaveGroupAPI, syncGroupAPI,
		describeGroupsAPI, listGroupsAPI, apiVersionsAPI, createTopicsAPI, deleteTopicsAPI, deleteRecordsAPI,
		initProducerIDAPI, offsetForLeaderEpochAPI, describeConfigsAPI, alterConfigsAPI, alterReplicaLogDirsAPI, describeLogDirsAPI,
		describeACLsAPI, createACLsAPI, deleteACLsAPI,
		createPartitionsAPI, deleteGroupsAPI, electLeadersAPI, incrementalAlterConfigsAPI,
		alterPartitionReassignmentsAPI, listPartitionReassignmentsAPI, offsetDeleteAPI,
		alterPartitionAPI, describeClusterAPI, allocateProducerIDsAPI,
	}
}

// keyMax bounds the keys of the table.
const keyMax = 128

// Service answers requests; it is a server.Handler. Safe for concurrent use.
type Service struct {
	Deps
	log     *slog.Logger
	table   [keyMax]*definition
	version []kmsg.ApiVersionsResponseApiKey
	large   sync.Mutex  // one large request is decoded at a time; guards nothing, innermost
	lines   obs.Limiter // of refused requests
	refused prometheus.Counter
	requests
}

// linesPerSecond bounds the log lines about refused requests.
const linesPerSecond = 5

// requests are the metrics by API, indexed by key.
type requests struct {
	count [keyMax]prometheus.Counter
	time  [keyMax]prometheus.Counter
}

// call is one request being served.
type call struct {
	*server.Request
	clientID string
	body     kmsg.Request
}

var errRefused = errors.New("request refused")

// New returns a Service over deps.
func New(deps Deps) *Service {
	s := &Service{Deps: deps, log: deps.Logger, lines: obs.Limiter{PerSecond: linesPerSecond}}
	s.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "kafka_network_requests_refused_total", Help: "Requests that closed their connection: unknown key or version, or bytes that do not decode."})
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kafka_network_requests_total", Help: "Requests by API."}, []string{"request"})
	spent := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kafka_network_request_seconds_total", Help: "Time spent in the handler by API, waiting included."}, []string{"request"})
	if deps.Registerer != nil {
		deps.Registerer.MustRegister(count, spent, s.refused)
	}
	defs := definitions()
	for i := range defs {
		d := &defs[i]
		if _, ok := s.Data.(RecordDeleter); !ok && d.key == deleteRecordsAPI.key {
			continue
		}
		if _, ok := s.Replication.(DirMover); !ok && d.key == alterReplicaLogDirsAPI.key {
			continue
		}
		s.table[d.key] = d
		name := kmsg.NameForKey(d.key)
		s.count[d.key], s.time[d.key] = count.WithLabelValues(name), spent.WithLabelValues(name)
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = d.key, d.min, d.max
		s.version = append(s.version, k)
	}
	return s
}

// Serve answers one request; see server.Handler.
func (s *Service) Serve(ctx context.Context, req *server.Request) {
	d, err := s.lookup(req)
	if err != nil {
		s.refuse(req, err)
		return
	}
	if d == nil { // ApiVersions in a version that we do not know
		s.reply(&call{Request: req}, s.apiVersionsFallback())
		return
	}
	c, err := s.decode(req)
	if err != nil {
		s.refuse(req, err)
		return
	}
	start := time.Now()
	if resp := d.handle(s, ctx, c); resp != nil {
		s.reply(c, resp)
	}
	s.count[d.key].Inc()
	s.time[d.key].Add(time.Since(start).Seconds())
}

// lookup finds the definition; nil without error asks for the fallback of KIP-511.
func (s *Service) lookup(req *server.Request) (*definition, error) {
	if req.Key < 0 || req.Key >= keyMax || s.table[req.Key] == nil {
		return nil, fmt.Errorf("%w: unknown API key %d", errRefused, req.Key)
	}
	d := s.table[req.Key]
	if req.Version < d.min || req.Version > d.max {
		if req.Key == apiVersionsAPI.key && req.Version >= 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: version %d of %s is not served", errRefused, req.Version, kmsg.NameForKey(req.Key))
	}
	return d, nil
}

// refuse closes the connection.
func (s *Service) refuse(req *server.Request, err error) {
	s.refused.Inc()
	if ok, dropped := s.lines.Allow(time.Now()); ok {
		s.log.Info("connection closed on a bad request", obs.KeyAddr, req.Conn.Remote, "listener", req.Conn.Listener, obs.Err(err), obs.KeyUnlogged, dropped)
	}
	req.Abort()
}

// decode reads the rest of the header and the body. The version has been checked.
func (s *Service) decode(req *server.Request) (*call, error) {
	r := kbin.Reader{Src: req.Rest}
	var clientID string
	if id := r.NullableString(); id != nil {
		clientID = *id
	}
	body := kmsg.RequestForKey(req.Key)
	body.SetVersion(req.Version)
	if body.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	if !r.Ok() {
		return nil, fmt.Errorf("%w: broken header of %s version %d", errRefused, kmsg.NameForKey(req.Key), req.Version)
	}
	if err := s.decodeBody(req, body, r.Src); err != nil {
		return nil, err
	}
	return &call{Request: req, clientID: clientID, body: body}, nil
}

// answerBytes is the room that an answer gets before it is encoded.
const answerBytes = 2 << 10

// reply encodes and sends resp, in the version of the request unless it has its own.
func (s *Service) reply(c *call, resp kmsg.Response) {
	out := server.NewBytes(c.CorrelationID, answerBytes)
	if resp.IsFlexible() && resp.Key() != apiVersionsAPI.key {
		out.Buf.B = append(out.Buf.B, 0)
	}
	out.Buf.B = resp.AppendTo(out.Buf.B)
	out.Seal()
	c.Reply(out)
}

// codeOf returns the protocol error that err wraps, and its sentence; UNKNOWN_SERVER_ERROR for anything else.
func (s *Service) codeOf(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	text := err.Error()
	var ke *kerr.Error
	switch {
	case errors.As(err, &ke):
		return ke.Code, &text
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return kerr.RequestTimedOut.Code, &text
	}
	s.log.Error("request failed", obs.Err(err))
	return kerr.UnknownServerError.Code, &text
}

// ptr returns a pointer to a copy of v, for the nullable fields of answers.
func ptr[T any](v T) *T { return &v }

// isInternal reports whether a topic is one of the broker's own.
func isInternal(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state"
}
