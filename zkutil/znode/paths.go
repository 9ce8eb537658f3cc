package znode

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"kctl/zkutil/cluster"
)

// The fixed paths of Kafka's layout. Those that end in Prefix are the stem of persistent-sequential
// children: create them with zkop.PersistentSequential, the server appends ten digits.
const (
	ConsumersPath = "/consumers"

	BrokersPath          = "/brokers"
	BrokerIDsPath        = "/brokers/ids"    // children: ephemeral registrations
	BrokerTopicsPath     = "/brokers/topics" // children: topics
	BrokerSequenceIDPath = "/brokers/seqid"  // generator of broker ids: the version counts

	ControllerPath      = "/controller"       // ephemeral
	ControllerEpochPath = "/controller_epoch" // its version fences every controller write

	AdminPath                    = "/admin"
	DeleteTopicsPath             = "/admin/delete_topics"
	ReassignPartitionsPath       = "/admin/reassign_partitions"
	PreferredReplicaElectionPath = "/admin/preferred_replica_election"
	// LeadershipAlertsPath is ours: one child for each leadership transition that is overdue.
	LeadershipAlertsPath = "/admin/leadership_alerts"

	ISRChangeNotificationPath   = "/isr_change_notification"
	ISRChangePrefix             = "/isr_change_notification/isr_change_"
	LogDirEventNotificationPath = "/log_dir_event_notification"
	LogDirEventPrefix           = "/log_dir_event_notification/log_dir_event_"

	ConfigPath         = "/config"
	ConfigChangesPath  = "/config/changes"
	ConfigChangePrefix = "/config/changes/config_change_"

	ClusterPath         = "/cluster"
	ClusterIDPath       = "/cluster/id"
	ProducerIDBlockPath = "/latest_producer_id_block"
	FeaturePath         = "/feature"
	MigrationPath       = "/migration"

	DelegationTokenPath        = "/delegation_token"
	DelegationTokenChangesPath = "/delegation_token/token_changes"
	DelegationTokensPath       = "/delegation_token/tokens"
)

// PersistentPaths are the nodes that a broker makes sure of when it starts, in Kafka's order. All are
// persistent with null data; NodeExists is expected.
func PersistentPaths() []string {
	return []string{
		ConsumersPath, BrokersPath, BrokerIDsPath, BrokerTopicsPath, ConfigPath, ConfigChangesPath, AdminPath,
		DeleteTopicsPath, BrokerSequenceIDPath, ISRChangeNotificationPath, ProducerIDBlockPath,
		LogDirEventNotificationPath, ConfigEntityTypePath(TopicConfig), ConfigEntityTypePath(ClientConfig),
		ConfigEntityTypePath(UserConfig), ConfigEntityTypePath(BrokerConfig), ConfigEntityTypePath(IPConfig),
	}
}

// TokenPaths are made by Kafka after a broker has registered; persistent with null data.
func TokenPaths() []string {
	return []string{DelegationTokenPath, DelegationTokenChangesPath, DelegationTokensPath}
}

// BrokerPath is the ephemeral registration of a broker.
func BrokerPath(id cluster.BrokerID) string {
	return BrokerIDsPath + "/" + strconv.Itoa(int(id))
}

// ParseBrokerID reads a child name of BrokerIDsPath.
func ParseBrokerID(child string) (cluster.BrokerID, error) {
	id, err := strconv.ParseInt(child, 10, 32)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != child {
		return 0, fmt.Errorf("%s/%s: child is not a broker id", BrokerIDsPath, child)
	}
	return cluster.BrokerID(id), nil
}

// TopicPath holds a topic's assignment.
func TopicPath(topic string) string { return BrokerTopicsPath + "/" + topic }

// TopicPartitionsPath is the parent of a topic's partition nodes; null data.
func TopicPartitionsPath(topic string) string { return TopicPath(topic) + "/partitions" }

// PartitionPath is the parent of a partition's state; null data.
func PartitionPath(tp cluster.TopicPartition) string {
	return TopicPartitionsPath(tp.Topic) + "/" + strconv.Itoa(int(tp.Partition))
}

// StatePath holds a partition's LeaderAndISR.
func StatePath(tp cluster.TopicPartition) string { return PartitionPath(tp) + "/state" }

// ParseStatePath is the reverse of StatePath.
func ParseStatePath(path string) (cluster.TopicPartition, bool) {
	rest, ok := strings.CutPrefix(path, BrokerTopicsPath+"/")
	if !ok {
		return cluster.TopicPartition{}, false
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 4 || parts[1] != "partitions" || parts[3] != "state" {
		return cluster.TopicPartition{}, false
	}
	p, err := ParsePartition(parts[2])
	return cluster.TopicPartition{Topic: parts[0], Partition: p}, err == nil && parts[0] != ""
}

// ParseTopicPath is the reverse of TopicPath.
func ParseTopicPath(path string) (topic string, ok bool) {
	topic, ok = strings.CutPrefix(path, BrokerTopicsPath+"/")
	return topic, ok && topic != "" && !strings.Contains(topic, "/")
}

// ParsePartition reads a partition number as it is written in paths and JSON keys.
func ParsePartition(s string) (int32, error) {
	p, err := strconv.ParseInt(s, 10, 32)
	if err != nil || p < 0 || strconv.FormatInt(p, 10) != s {
		return 0, fmt.Errorf("%q is not a partition number", s)
	}
	return int32(p), nil
}

// DeleteTopicPath marks a topic for deletion; null data.
func DeleteTopicPath(topic string) string { return DeleteTopicsPath + "/" + topic }

// LeadershipAlertPath is the alert of one partition.
func LeadershipAlertPath(tp cluster.TopicPartition) string {
	return LeadershipAlertsPath + "/" + tp.String()
}

// ParseLeadershipAlertChild reads a child name of LeadershipAlertsPath.
func ParseLeadershipAlertChild(child string) (cluster.TopicPartition, error) {
	i := strings.LastIndexByte(child, '-')
	if i > 0 {
		if p, err := ParsePartition(child[i+1:]); err == nil {
			return cluster.TopicPartition{Topic: child[:i], Partition: p}, nil
		}
	}
	return cluster.TopicPartition{}, fmt.Errorf("%s/%s: child is not topic-partition", LeadershipAlertsPath, child)
}

// ConfigType is a kind of configured entity; the text is the path element.
type ConfigType string

// The configured entity types.
const (
	TopicConfig  ConfigType = "topics"
	BrokerConfig ConfigType = "brokers"
	ClientConfig ConfigType = "clients"
	UserConfig   ConfigType = "users"
	IPConfig     ConfigType = "ips"
)

// DefaultEntity is the literal child name that stands for the cluster-wide default of a ConfigType.
const DefaultEntity = "<default>"

// ConfigEntityTypePath is the parent of all entities of one type; null data.
func ConfigEntityTypePath(t ConfigType) string { return ConfigPath + "/" + string(t) }

// ConfigEntityPath holds the configuration of an entity. The name is the path element as it stands:
// sanitised for users and clients, DefaultEntity for the default, "alice/clients/app1" for a pair.
func ConfigEntityPath(t ConfigType, name string) string {
	return ConfigEntityTypePath(t) + "/" + name
}

// UserClientEntity names the entity of a user together with a client id, both already sanitised.
func UserClientEntity(user, client string) string { return user + "/clients/" + client }

// SanitizeEntity turns a user or client name into a path element as Kafka's Sanitizer does: Java's form encoding, which
// leaves letters, digits and . - _ as they are, with %20 for a space and %2A for a star.
func SanitizeEntity(name string) string {
	s := url.QueryEscape(name)
	s = strings.ReplaceAll(s, "+", "%20")
	s = strings.ReplaceAll(s, "~", "%7E") // which Go leaves as it is
	return strings.ReplaceAll(s, "*", "%2A")
}

// DesanitizeEntity is the reverse of SanitizeEntity.
func DesanitizeEntity(element string) (string, error) {
	s, err := url.PathUnescape(element)
	if err != nil {
		return "", fmt.Errorf("entity %q is not percent-encoded: %w", element, err)
	}
	return s, nil
}

// SequenceNumber reads the ten digits that the server appended to a sequential node's name or path.
// ok is false when the name does not end in a sequence.
func SequenceNumber(name string) (n int32, ok bool) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if len(name)-i < 10 {
		return 0, false
	}
	v, err := strconv.ParseInt(name[len(name)-10:], 10, 32)
	return int32(v), err == nil
}
