package model

// ConfigResourceType is a kind of configured resource.
type ConfigResourceType string

// The kinds of resources whose configuration can be read and changed over the protocol. Client metrics and groups
// exist from Kafka 3.7 and 4.0 on, in KRaft mode.
const (
	TopicResource         ConfigResourceType = "topic"
	BrokerResource        ConfigResourceType = "broker"
	BrokerLoggerResource  ConfigResourceType = "broker-logger"
	ClientMetricsResource ConfigResourceType = "client-metrics"
	GroupResource         ConfigResourceType = "group"
)

// ConfigResource is one configured resource. A broker without a name is the default of all brokers.
type ConfigResource struct {
	Type ConfigResourceType
	Name string
}

// DefaultName is how the default of all brokers is written.
const DefaultName = "default"

// String returns the form that commands take: topic/orders, broker/1, broker/default.
func (r ConfigResource) String() string {
	if r.Name == "" {
		return string(r.Type) + "/" + DefaultName
	}
	return string(r.Type) + "/" + r.Name
}

// OwnSource is the source of a value that was set on this very resource.
func (r ConfigResource) OwnSource() string {
	switch {
	case r.Type == TopicResource:
		return "dynamic-topic"
	case r.Type == BrokerResource && r.Name == "":
		return "dynamic-default-broker"
	case r.Type == BrokerResource:
		return "dynamic-broker"
	case r.Type == BrokerLoggerResource:
		return "dynamic-broker-logger"
	}
	return string(r.Type)
}

// DefaultSource is the source of a value that nobody set.
const DefaultSource = "default"

// ConfigEntry is one configuration value of a resource. Value is nil when the broker does not tell it: it is a
// secret, or null.
type ConfigEntry struct {
	Name      string
	Value     *string
	Source    string // dynamic-topic, dynamic-broker, dynamic-default-broker, static-broker, default, ...
	ReadOnly  bool   // cannot be changed while the broker runs
	Sensitive bool
	Type      string // boolean, string, int, short, long, double, list, class, password; empty when not told
	Synonyms  []ConfigSynonym
}

// ConfigSynonym is one place where a value could come from, the one in force first.
type ConfigSynonym struct {
	Name   string
	Value  *string
	Source string
}

// Override returns the value set on the resource itself and whether there is one.
func (e *ConfigEntry) Override(r ConfigResource) (value *string, ok bool) {
	return e.Value, e.Source == r.OwnSource()
}

// Inherited returns what holds when the resource itself sets nothing: the first synonym of another source.
func (e *ConfigEntry) Inherited(r ConfigResource) (s ConfigSynonym, ok bool) {
	if e.Source != r.OwnSource() {
		return ConfigSynonym{Name: e.Name, Value: e.Value, Source: e.Source}, true
	}
	for _, s := range e.Synonyms {
		if s.Source != r.OwnSource() {
			return s, true
		}
	}
	return ConfigSynonym{}, false
}

// ResourceConfigs is the configuration of one resource, sorted by name, or why it could not be read.
type ResourceConfigs struct {
	Resource ConfigResource
	Entries  []ConfigEntry
	Err      error
	Source   Source
}

// Entry returns the named entry, nil when there is none.
func (r *ResourceConfigs) Entry(name string) *ConfigEntry {
	for i := range r.Entries {
		if r.Entries[i].Name == name {
			return &r.Entries[i]
		}
	}
	return nil
}
