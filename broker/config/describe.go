package config

import (
	"context"
	"slices"
	"sort"
	"strings"
)

// Source says where a value comes from, numbered as in DescribeConfigs.
type Source int8

// The sources.
const (
	DynamicTopic         Source = 1
	DynamicBroker        Source = 2
	DynamicBrokerDefault Source = 3
	StaticBroker         Source = 4
	Default              Source = 5
)

// Synonym is a place that could give a value, in order of precedence.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Entry is one configuration as DescribeConfigs shows it.
type Entry struct {
	Key
	Value     *string // nil: null, or hidden
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Synonyms  []Synonym
}

// TopicOverrides reads the overrides of topics from ZooKeeper, all at a time, so that any broker can answer for any
// topic with what was written last. Topics without overrides are not in the answer.
func (d *Dynamic) TopicOverrides(ctx context.Context, topics []string) (map[string]map[string]string, error) {
	return d.readTopics(ctx, topics)
}

// DescribeTopic returns the configurations that a topic with these overrides has, sorted by name: those in names, or all
// when names is nil.
func (d *Dynamic) DescribeTopic(overrides map[string]string, names []string) []Entry {
	return d.curr.Load().describeTopic(overrides, names)
}

func (s *state) describeTopic(overrides map[string]string, names []string) []Entry {
	asked := func(name string) bool { return names == nil || slices.Contains(names, name) }
	var out []Entry
	for i := range topicKeys {
		k := &topicKeys[i]
		if !asked(k.Name) {
			continue
		}
		e := Entry{Key: *k, Source: Default}
		value := s.topicValue(overrides, k.Name)
		e.Value = &value
		if _, ok := overrides[k.Name]; ok {
			e.Synonyms = append(e.Synonyms, Synonym{k.Name, &value, DynamicTopic})
		}
		if k.Broker != "" {
			for _, syn := range synonymsOf(k.Broker) {
				e.Synonyms = append(e.Synonyms, s.places(syn.key)...)
			}
		} else {
			def := k.Default
			e.Synonyms = append(e.Synonyms, Synonym{k.Name, &def, Default})
		}
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		out = append(out, e)
	}
	for name, v := range overrides { // written by hand: shown, so that it can be deleted
		if _, known := topicIndex[name]; !known && asked(name) {
			out = append(out, Entry{Key: Key{Name: name, Type: String}, Value: &v, Source: DynamicTopic})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// places lists the values of a broker key from the most to the least specific.
func (s *state) places(key string) []Synonym {
	var out []Synonym
	if v, ok := s.own[key]; ok {
		out = append(out, Synonym{key, &v, DynamicBroker})
	}
	if v, ok := s.clusterDefault[key]; ok {
		out = append(out, Synonym{key, &v, DynamicBrokerDefault})
	}
	if v, ok := s.static.set[key]; ok {
		out = append(out, Synonym{key, &v, StaticBroker})
	}
	if k := brokerIndex[key]; k != nil && !k.Null {
		out = append(out, Synonym{key, &k.Default, Default})
	}
	return out
}

// DescribeBroker returns every configuration of this broker, sorted by name.
func (d *Dynamic) DescribeBroker() []Entry {
	s := d.curr.Load()
	out := make([]Entry, 0, len(brokerKeys))
	for i := range brokerKeys {
		k := &brokerKeys[i]
		e := Entry{Key: *k, Source: Default, ReadOnly: k.Scope == ReadOnly, Sensitive: k.Type == Password}
		for _, syn := range synonymsOf(k.Name) {
			e.Synonyms = append(e.Synonyms, s.places(syn.key)...)
		}
		if v, ok := s.brokerValue(k.Name); ok && !e.Sensitive {
			e.Value = &v
		}
		if p := s.places(k.Name); len(p) > 0 {
			e.Source = p[0].Source
		}
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return strings.Compare(out[i].Name, out[j].Name) < 0 })
	return out
}

// DescribeBrokerDefault returns what /config/brokers/<default> sets.
func (d *Dynamic) DescribeBrokerDefault() []Entry {
	s := d.curr.Load()
	out := make([]Entry, 0, len(s.clusterDefault))
	for name, v := range s.clusterDefault {
		e := Entry{Key: *brokerIndex[name], Value: &v, Source: DynamicBrokerDefault}
		if e.Sensitive = e.Type == Password; e.Sensitive {
			e.Value = nil
		}
		e.Synonyms = []Synonym{{name, e.Value, DynamicBrokerDefault}}
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
