package controller

import "github.com/twmb/franz-go/pkg/kerr"

// Kafka's error codes that the controller gives or understands.
const (
	codeUnknownServerError          int16 = -1
	codeNone                        int16 = 0
	codeUnknownTopicOrPartition     int16 = 3
	codeBrokerNotAvailable          int16 = 8
	codeStaleControllerEpoch        int16 = 11
	codeInvalidTopic                int16 = 17
	codeInvalidReplicaAssignment    int16 = 39
	codeNotController               int16 = 41
	codeInvalidRequest              int16 = 42
	codeOperationNotAttempted       int16 = 55
	codeKafkaStorageError           int16 = 56
	codeFencedLeaderEpoch           int16 = 74
	codeStaleBrokerEpoch            int16 = 77
	codePreferredLeaderNotAvailable int16 = 80
	codeEligibleLeadersNotAvailable int16 = 83
	codeElectionNotNeeded           int16 = 84
	codeNoReassignmentInProgress    int16 = 85
	codeInvalidUpdateVersion        int16 = 95
	codeUnknownTopicID              int16 = 100
	codeIneligibleReplica           int16 = 107
)

// codeName is Kafka's name of an error code.
func codeName(code int16) string {
	if code == codeNone {
		return ""
	}
	return kerr.TypedErrorForCode(code).Message
}
