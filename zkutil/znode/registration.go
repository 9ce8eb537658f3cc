package znode

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"kctl/zkutil/cluster"
)

// Registration is the value of a broker's ephemeral node.
type Registration struct {
	ID        cluster.BrokerID
	Endpoints []cluster.Endpoint
	Rack      string // empty: none
	JMXPort   int32  // -1: none
	// TimestampMs is when the broker registered.
	TimestampMs int64
	// Version is that of the decoded value (1..5 and newer); Encode always writes 5.
	Version int32
	// Features is the JSON object of supported features; nil means {}.
	Features json.RawMessage
	// DataEpoch is the Czxid of the oldest registration since which the broker's logs have lost nothing; 0 when
	// it is this one. It is ours (field data_epoch); Kafka ignores it.
	DataEpoch cluster.BrokerEpoch
	Unknown   Fields
}

// Broker is the registration as the rest of the product sees it; epoch is the node's Czxid.
func (r Registration) Broker(epoch cluster.BrokerEpoch) cluster.Broker {
	b := cluster.Broker{ID: r.ID, Epoch: epoch, DataEpoch: epoch, Endpoints: slices.Clone(r.Endpoints), Rack: r.Rack}
	if r.DataEpoch > 0 {
		b.DataEpoch = r.DataEpoch
	}
	return b
}

// DecodeRegistration reads versions 1 (host and port only) to 5, and newer ones as 5.
func DecodeRegistration(id cluster.BrokerID, data []byte) (Registration, error) {
	d := newDecoder(BrokerPath(id), data)
	r := Registration{ID: id, Version: d.int32("version", 1)}
	host, port := d.text("host", false), d.optionalInt32("port", -1, -1)
	r.JMXPort = d.optionalInt32("jmx_port", -1, -1)
	r.TimestampMs = d.decimal("timestamp", false, math.MinInt64)
	if d.err == nil && r.Version == 1 {
		r.Endpoints = []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: host, Port: port}}
	}
	if r.Version >= 2 {
		r.decodeEndpoints(d)
	}
	// A field that a version should not have is not unknown: left there, it would be written twice.
	d.take("endpoints")
	d.take("listener_security_protocol_map")
	r.Rack = d.text("rack", false)
	if raw, ok := d.take("features"); ok && string(raw) != "null" {
		if splitObject(raw) == nil {
			d.fail("features", "%s is not an object", excerpt(raw))
		} else if string(raw) != "{}" {
			r.Features = slices.Clone(raw)
		}
	}
	if raw, ok := d.take("data_epoch"); ok {
		r.DataEpoch = cluster.BrokerEpoch(d.parseInt("data_epoch", raw, 0, math.MaxInt64))
	}
	r.Unknown = d.unknown()
	return r, d.err
}

func (r *Registration) decodeEndpoints(d *decoder) {
	protocols := map[string]string{}
	for _, f := range d.object("listener_security_protocol_map", r.Version >= 4) {
		p, ok := unquote(f.Raw)
		if !ok {
			d.fail("listener_security_protocol_map", "protocol of %q is not a string", f.Name)
		}
		protocols[f.Name] = p
	}
	for _, raw := range d.array("endpoints") {
		s, ok := unquote(raw)
		if !ok {
			d.fail("endpoints", "%s is not a string", excerpt(raw))
			return
		}
		e, err := ParseEndpoint(s)
		if err != nil {
			d.fail("endpoints", "%s", err)
			return
		}
		e.Protocol = e.Listener
		if p, ok := protocols[e.Listener]; ok {
			e.Protocol = p
		}
		r.Endpoints = append(r.Endpoints, e)
	}
}

// Encode writes version 5. host and port are those of the first endpoint whose protocol is PLAINTEXT, else
// null and -1, as in Kafka.
func (r Registration) Encode() []byte {
	e := newEncoder(256)
	features := r.Features
	if features == nil {
		features = json.RawMessage("{}")
	}
	e.raw("features", features)
	protocols := newEncoder(64)
	seen := map[string]bool{}
	endpoints := []byte{'['}
	for i, ep := range r.Endpoints {
		if i > 0 {
			endpoints = append(endpoints, ',')
		}
		endpoints = appendString(endpoints, FormatEndpoint(ep))
		if !seen[ep.Listener] {
			seen[ep.Listener] = true
			protocols.text(ep.Listener, ep.Protocol)
		}
	}
	e.raw("listener_security_protocol_map", protocols.end(nil))
	e.raw("endpoints", append(endpoints, ']'))
	if r.Rack != "" {
		e.text("rack", r.Rack)
	}
	e.int("jmx_port", int64(r.JMXPort))
	r.encodePlaintext(e)
	e.int("version", 5)
	e.decimal("timestamp", r.TimestampMs)
	if r.DataEpoch > 0 {
		e.int("data_epoch", int64(r.DataEpoch))
	}
	return e.end(r.Unknown)
}

func (r Registration) encodePlaintext(e *encoder) {
	for _, ep := range r.Endpoints {
		if ep.Protocol == "PLAINTEXT" {
			e.int("port", int64(ep.Port))
			e.text("host", ep.Host)
			return
		}
	}
	e.int("port", -1)
	e.raw("host", []byte("null"))
}

// FormatEndpoint writes LISTENER://host:port, with brackets around an IPv6 address.
func FormatEndpoint(e cluster.Endpoint) string {
	return e.Listener + "://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// ParseEndpoint reads LISTENER://host:port; an empty host is allowed. Protocol is left empty: it comes from
// the listener map.
func ParseEndpoint(s string) (cluster.Endpoint, error) {
	listener, addr, ok := strings.Cut(s, "://")
	if !ok || listener == "" {
		return cluster.Endpoint{}, fmt.Errorf("endpoint %q is not LISTENER://host:port", s)
	}
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return cluster.Endpoint{}, fmt.Errorf("endpoint %q has no port", s)
	}
	host := addr[:i]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	port, err := strconv.ParseInt(addr[i+1:], 10, 32)
	if err != nil || port < -1 || port > 65535 || strings.ContainsAny(host, "[]/ ") {
		return cluster.Endpoint{}, fmt.Errorf("endpoint %q is not LISTENER://host:port", s)
	}
	return cluster.Endpoint{Listener: listener, Host: host, Port: int32(port)}, nil
}
