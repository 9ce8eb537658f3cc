package group

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Code is an error code of Kafka's protocol.
type Code int16

// The codes that group coordination uses.
const (
	None                         Code = 0
	UnknownServerError           Code = -1
	UnknownTopicOrPartition      Code = 3
	NotLeaderOrFollower          Code = 6
	RequestTimedOut              Code = 7
	MessageTooLarge              Code = 10
	OffsetMetadataTooLarge       Code = 12
	CoordinatorLoadInProgress    Code = 14
	CoordinatorNotAvailable      Code = 15
	NotCoordinator               Code = 16
	RecordListTooLarge           Code = 18
	NotEnoughReplicas            Code = 19
	NotEnoughReplicasAfterAppend Code = 20
	IllegalGeneration            Code = 22
	InconsistentGroupProtocol    Code = 23
	InvalidGroupID               Code = 24
	UnknownMemberID              Code = 25
	InvalidSessionTimeout        Code = 26
	RebalanceInProgress          Code = 27
	InvalidCommitOffsetSize      Code = 28
	InvalidRequest               Code = 42
	InvalidProducerEpoch         Code = 47
	StorageError                 Code = 56
	NonEmptyGroup                Code = 68
	GroupIDNotFound              Code = 69
	MemberIDRequired             Code = 79
	GroupMaxSizeReached          Code = 81
	FencedInstanceID             Code = 82
	GroupSubscribedToTopic       Code = 86
	UnstableOffsetCommit         Code = 88
)

// String returns Kafka's name of the code.
func (c Code) String() string {
	if c == None {
		return "NONE"
	}
	if e := kerr.TypedErrorForCode(int16(c)); e != nil {
		return e.Message
	}
	return strconv.Itoa(int(c))
}

// commitCode translates the outcome of an append into the answer to an OffsetCommit, as Apache Kafka does.
func commitCode(c Code) Code {
	switch c {
	case UnknownTopicOrPartition, NotEnoughReplicas, NotEnoughReplicasAfterAppend, RequestTimedOut:
		return CoordinatorNotAvailable
	case NotLeaderOrFollower, StorageError:
		return NotCoordinator
	case MessageTooLarge, RecordListTooLarge:
		return InvalidCommitOffsetSize
	default:
		return c
	}
}

// groupCode translates the outcome of an append into the answer to a request that had to store the group.
func groupCode(c Code) Code {
	switch c {
	case MessageTooLarge, RecordListTooLarge:
		return UnknownServerError
	default:
		return commitCode(c)
	}
}

// mayBeInLog reports whether records whose append ended with c may nevertheless become committed: they are
// in the leader's log and only their replication was not confirmed in time.
func mayBeInLog(c Code) bool {
	return c == RequestTimedOut || c == NotEnoughReplicasAfterAppend
}
