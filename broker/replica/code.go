package replica

import "strconv"

// Code is an error code of Kafka's protocol; the values are those of the wire.
type Code int16

// The codes that the partition's rules answer with.
const (
	CodeNone                      Code = 0
	CodeOffsetOutOfRange          Code = 1
	CodeUnknownTopicOrPartition   Code = 3
	CodeLeaderNotAvailable        Code = 5
	CodeNotLeaderOrFollower       Code = 6
	CodeRequestTimedOut           Code = 7
	CodeStaleControllerEpoch      Code = 11
	CodeNotEnoughReplicas         Code = 19
	CodeNotEnoughReplicasAppended Code = 20 // NOT_ENOUGH_REPLICAS_AFTER_APPEND
	CodeKafkaStorageError         Code = 56
	CodeFencedLeaderEpoch         Code = 74
	CodeUnknownLeaderEpoch        Code = 75
	CodeOffsetNotAvailable        Code = 78
	CodeInconsistentTopicID       Code = 103
)

var codeNames = map[Code]string{
	CodeNone: "NONE", CodeOffsetOutOfRange: "OFFSET_OUT_OF_RANGE",
	CodeUnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION", CodeLeaderNotAvailable: "LEADER_NOT_AVAILABLE",
	CodeNotLeaderOrFollower: "NOT_LEADER_OR_FOLLOWER", CodeRequestTimedOut: "REQUEST_TIMED_OUT",
	CodeStaleControllerEpoch: "STALE_CONTROLLER_EPOCH", CodeNotEnoughReplicas: "NOT_ENOUGH_REPLICAS",
	CodeNotEnoughReplicasAppended: "NOT_ENOUGH_REPLICAS_AFTER_APPEND", CodeKafkaStorageError: "KAFKA_STORAGE_ERROR",
	CodeFencedLeaderEpoch: "FENCED_LEADER_EPOCH", CodeUnknownLeaderEpoch: "UNKNOWN_LEADER_EPOCH",
	CodeOffsetNotAvailable: "OFFSET_NOT_AVAILABLE", CodeInconsistentTopicID: "INCONSISTENT_TOPIC_ID",
}

// String returns Kafka's name of the code.
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return "code " + strconv.Itoa(int(c))
}
