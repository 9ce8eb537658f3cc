package config

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

var securityProtocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// servedProtocols are those that the server can speak.
var servedProtocols = []string{"PLAINTEXT"}

// deriveListeners reads the listener keys and checks them against each other with Kafka's rules.
func (b *Broker) deriveListeners() error {
	protocols, err := protocolMap(b.values.List("listener.security.protocol.map"))
	if err != nil {
		return err
	}
	if b.Listeners, err = parseListeners("listeners", b.values.String("listeners"), protocols, true); err != nil {
		return err
	}
	if len(b.Listeners) == 0 {
		return fmt.Errorf("invalid value \"\" for configuration listeners: must name at least one listener")
	}
	if err := b.deriveAdvertised(protocols); err != nil {
		return err
	}
	return b.deriveBrokerListeners()
}

func (b *Broker) deriveAdvertised(protocols map[string]string) (err error) {
	text := b.values.String("advertised.listeners")
	if text == "" {
		b.Advertised = slices.Clone(b.Listeners)
		for i := range b.Advertised {
			if h := b.Advertised[i].Host; h == "" || h == "0.0.0.0" || h == "::" {
				if h != "" {
					return fmt.Errorf("invalid value %q for configuration listeners: %s cannot be advertised, set advertised.listeners", b.values.String("listeners"), h)
				}
				b.Advertised[i].Host = hostname()
			}
		}
		return nil
	}
	if b.Advertised, err = parseListeners("advertised.listeners", text, protocols, false); err != nil {
		return err
	}
	for _, a := range b.Advertised {
		if a.Host == "" || a.Host == "0.0.0.0" || a.Host == "::" {
			return fmt.Errorf("invalid value %q for configuration advertised.listeners: must name a host that clients can reach", text)
		}
		if _, ok := find(b.Listeners, a.Name); !ok {
			return fmt.Errorf("invalid value %q for configuration advertised.listeners: %s is not among listeners", text, a.Name)
		}
	}
	return nil
}

func (b *Broker) deriveBrokerListeners() error {
	b.InterBrokerListener = strings.ToUpper(b.values.String("inter.broker.listener.name"))
	key := "inter.broker.listener.name"
	if b.InterBrokerListener == "" {
		b.InterBrokerListener = b.values.String("security.inter.broker.protocol")
		key = "security.inter.broker.protocol"
	}
	if _, ok := find(b.Advertised, b.InterBrokerListener); !ok {
		return fmt.Errorf("invalid value %q for configuration %s: must be the name of an advertised listener", b.InterBrokerListener, key)
	}
	b.ControlListener = strings.ToUpper(b.values.String("control.plane.listener.name"))
	if b.ControlListener == "" {
		b.ControlListener = b.InterBrokerListener
	} else if _, ok := find(b.Listeners, b.ControlListener); !ok {
		return fmt.Errorf("invalid value %q for configuration control.plane.listener.name: must be the name of a listener", b.ControlListener)
	}
	return nil
}

func find(ls []Listener, name string) (Listener, bool) {
	for _, l := range ls {
		if l.Name == name {
			return l, true
		}
	}
	return Listener{}, false
}

func protocolMap(entries []string) (map[string]string, error) {
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		name, proto, ok := strings.Cut(e, ":")
		name, proto = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(proto))
		if !ok || name == "" || !slices.Contains(securityProtocols, proto) {
			return nil, fmt.Errorf("invalid value %q for configuration listener.security.protocol.map: must be a list of NAME:PROTOCOL, PROTOCOL one of %s",
				e, strings.Join(securityProtocols, ", "))
		}
		out[name] = proto
	}
	return out, nil
}

// parseListeners reads NAME://host:port items. bound tells listeners, where names and ports must be unique and
// the protocol served, from advertised ones.
func parseListeners(key, text string, protocols map[string]string, bound bool) ([]Listener, error) {
	var out []Listener
	for _, item := range SplitList(text) {
		l, err := parseListener(item)
		if err != nil {
			return nil, fmt.Errorf("invalid value %q for configuration %s: %w", text, key, err)
		}
		if l.Protocol = protocols[l.Name]; l.Protocol == "" {
			return nil, fmt.Errorf("invalid value %q for configuration %s: listener.security.protocol.map has no protocol for %s", text, key, l.Name)
		}
		if bound && !slices.Contains(servedProtocols, l.Protocol) {
			return nil, fmt.Errorf("invalid value %q for configuration %s: protocol %s of %s is not served, must be one of %s",
				text, key, l.Protocol, l.Name, strings.Join(servedProtocols, ", "))
		}
		for _, o := range out {
			if o.Name == l.Name {
				return nil, fmt.Errorf("invalid value %q for configuration %s: %s is named twice", text, key, l.Name)
			}
			if bound && o.Port == l.Port && l.Port != 0 && o.Host == l.Host {
				return nil, fmt.Errorf("invalid value %q for configuration %s: %s and %s have the same address", text, key, o.Name, l.Name)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

func parseListener(item string) (Listener, error) {
	name, addr, ok := strings.Cut(item, "://")
	if !ok || name == "" {
		return Listener{}, fmt.Errorf("%q is not of the form NAME://host:port", item)
	}
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return Listener{}, fmt.Errorf("%q has no port", item)
	}
	port, err := strconv.Atoi(addr[colon+1:])
	if err != nil || port < 0 || port > 65535 {
		return Listener{}, fmt.Errorf("port of %q must be an integer from 0 to 65535", item)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(addr[:colon], "["), "]")
	return Listener{Name: strings.ToUpper(name), Host: host, Port: port}, nil
}

// hostname is what a listener without a host advertises, as in Kafka.
func hostname() string {
	if h, err := os.Hostname(); err == nil && h != "" {
		return h
	}
	return "localhost"
}
