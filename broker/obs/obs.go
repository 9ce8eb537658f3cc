// Package obs is the one table of log keys and metric names: a key or a metric that is not here does not
// exist. It imports log/slog and the Prometheus client only; the pure cores do not import it.
package obs

import "log/slog"

// Keys of log attributes. Messages are constant strings; everything variable is an attribute.
const (
	KeyBroker          = "broker"
	KeyPeer            = "peer" // the other broker, where KeyBroker is the one that logs
	KeyTopic           = "topic"
	KeyPartition       = "partition"
	KeyTopicPartition  = "tp"
	KeyLeader          = "leader"
	KeyLeaderEpoch     = "leader_epoch"
	KeyControllerEpoch = "controller_epoch"
	KeyBrokerEpoch     = "broker_epoch"
	KeyISR             = "isr"
	KeyZKVersion       = "zk_version"
	KeyOffset          = "offset"
	KeyPath            = "path"
	KeyError           = "error"
	KeyDuration        = "duration"
	KeyAddr            = "addr"
	KeyAPI             = "api"
	KeyReason          = "reason"
	KeyCount           = "count"
	KeyGroup           = "group"
	KeyMember          = "member"
	KeyGeneration      = "generation"
	KeyOffsets         = "offsets"
	KeySession         = "session"
	KeyState           = "state"
	KeyLogDir          = "log_dir"
	KeySegment         = "segment"
	KeyConfig          = "config"
	KeyValue           = "value"
	KeyUnlogged        = "unlogged" // lines of the same kind that were left out before this one
)

// Err makes the attribute of an error.
func Err(err error) slog.Attr { return slog.Any(KeyError, err) }
