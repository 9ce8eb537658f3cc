package offline

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"kctl/admin/plan"
)

// metadataFrame is the version of the frame around each record of __cluster_metadata.
const metadataFrame = 1

// metadataRecord is one type of record of a KRaft controller.
type metadataRecord struct {
	name string
	*layout
}

// metadataRecords are the types that Apache Kafka 4.1 has, by their number (KIP-631 and what followed it). Salts and keys
// of SCRAM credentials are passed over.
var metadataRecords = map[uint64]metadataRecord{
	0: {"register-broker-record", fields(4, of("brokerId", int32T), of("isMigratingZkBroker", boolT).since(2), of("incarnationId", uuidT), of("brokerEpoch", int64T),
		endpoints(), features(), of("rack", stringT).orNull(), of("fenced", boolT), of("inControlledShutdown", boolT).since(1), list("logDirs", uuidT).since(3).tagged(0))},
	1: {"unregister-broker-record", fields(0, of("brokerId", int32T), of("brokerEpoch", int64T))},
	2: {"topic-record", fields(0, of("name", stringT), of("topicId", uuidT))},
	3: {"partition-record", fields(2, of("partitionId", int32T), of("topicId", uuidT), list("replicas", int32T), list("isr", int32T), list("removingReplicas", int32T),
		list("addingReplicas", int32T), of("leader", int32T), of("leaderRecoveryState", int8T).tagged(0), of("leaderEpoch", int32T), of("partitionEpoch", int32T),
		list("directories", uuidT).since(1), list("eligibleLeaderReplicas", int32T).orNull().since(2).tagged(1), list("lastKnownElr", int32T).orNull().since(2).tagged(2))},
	4: {configRecord, fields(0, of("resourceType", int8T), of("resourceName", stringT), of("name", stringT), of("value", stringT).orNull())},
	5: {"partition-change-record", fields(2, of("partitionId", int32T), of("topicId", uuidT), list("isr", int32T).orNull().tagged(0), of("leader", int32T).tagged(1),
		list("replicas", int32T).orNull().tagged(2), list("removingReplicas", int32T).orNull().tagged(3), list("addingReplicas", int32T).orNull().tagged(4),
		of("leaderRecoveryState", int8T).tagged(5), list("directories", uuidT).orNull().since(1).tagged(8),
		list("eligibleLeaderReplicas", int32T).orNull().since(2).tagged(6), list("lastKnownElr", int32T).orNull().since(2).tagged(7))},
	7:  {"fence-broker-record", fields(0, of("id", int32T), of("epoch", int64T))},
	8:  {"unfence-broker-record", fields(0, of("id", int32T), of("epoch", int64T))},
	9:  {"remove-topic-record", fields(0, of("topicId", uuidT))},
	10: {"delegation-token-record", fields(0, of("owner", stringT), of("requester", stringT), list("renewers", stringT), of("issueTimestamp", int64T), of("maxTimestamp", int64T), of("expirationTimestamp", int64T), of("tokenId", stringT))},
	11: {"user-scram-credential-record", fields(0, of("name", stringT), of("mechanism", int8T), of("salt", secretT), of("storedKey", secretT), of("serverKey", secretT), of("iterations", int32T))},
	12: {"feature-level-record", fields(0, of("name", stringT), of("featureLevel", int16T))},
	14: {"client-quota-record", fields(0, structs("entity", of("entityType", stringT), of("entityName", stringT).orNull()), of("key", stringT), of("value", float64T), of("remove", boolT))},
	15: {"producer-ids-record", fields(0, of("brokerId", int32T), of("brokerEpoch", int64T), of("nextProducerId", int64T))},
	17: {"broker-registration-change-record", fields(2, of("brokerId", int32T), of("brokerEpoch", int64T), of("fenced", int8T).tagged(0), of("inControlledShutdown", int8T).since(1).tagged(1), list("logDirs", uuidT).since(2).tagged(2))},
	18: {"access-control-entry-record", fields(0, of("id", uuidT), of("resourceType", int8T), of("resourceName", stringT), of("patternType", int8T), of("principal", stringT), of("host", stringT), of("operation", int8T), of("permissionType", int8T))},
	19: {"remove-access-control-entry-record", fields(0, of("id", uuidT))},
	20: {"no-op-record", fields(0)},
	21: {"zk-migration-state-record", fields(0, of("zkMigrationState", int8T))},
	22: {"remove-user-scram-credential-record", fields(0, of("name", stringT), of("mechanism", int8T))},
	23: {"begin-transaction-record", fields(0, of("name", stringT).orNull().tagged(0))},
	24: {"end-transaction-record", fields(0)},
	25: {"abort-transaction-record", fields(0, of("reason", stringT).orNull().tagged(0))},
	26: {"remove-delegation-token-record", fields(0, of("tokenId", stringT))},
	27: {"register-controller-record", fields(0, of("controllerId", int32T), of("incarnationId", uuidT), of("zkMigrationReady", boolT), endpoints(), features())},
	28: {"clear-elr-record", fields(0, of("topicName", stringT))},
}

func endpoints() field {
	return structs("endPoints", of("name", stringT), of("host", stringT), of("port", uint16T), of("securityProtocol", int16T))
}

func features() field {
	return structs("features", of("name", stringT), of("minSupportedVersion", int16T), of("maxSupportedVersion", int16T))
}

// DecodeMetadata reads a record of __cluster_metadata, or of a snapshot of it: a frame version, the type, its version (all
// unsigned varints) and the fields. A type or version that is not known is named by its number, without its bytes: nobody can tell
// whether they hold a secret. Bytes of a known record that is damaged are shown unless it is one of secrets.
func DecodeMetadata(_, value []byte) Decoded {
	frame, n := binary.Uvarint(value)
	if n <= 0 {
		return undecoded("a value of %d bytes has no frame", len(value))
	}
	if frame != metadataFrame {
		return undecoded("frame version %d is not known"+unshown, frame, len(value)-n)
	}
	rest := value[n:]
	number, n := binary.Uvarint(rest)
	if n <= 0 {
		return undecoded("the frame ends before the type")
	}
	rest = rest[n:]
	version, n := binary.Uvarint(rest)
	if n <= 0 || version > 1<<15-1 {
		return undecoded("the frame of a record of type %d has no version", number)
	}
	rest = rest[n:]
	v := int16(version)
	kind, ok := metadataRecords[number]
	if !ok {
		d := undecoded("record type %d is not known"+unshown, number, len(rest))
		d.Version = &v
		return d
	}
	d := Decoded{Type: kind.name, Version: &v}
	data, err := kind.read(rest, v, true)
	hideSecret(data)
	d.Data = data
	switch {
	case err == nil:
	case v > kind.newest || kind.secret() || kind.name == configRecord:
		d.Problem = err.Error() + fmt.Sprintf(unshown, len(rest)) // its bytes hold what is passed over, or may
	default:
		d.Problem = err.Error()
		return raw(d, rest)
	}
	return d
}

// unshown says why bytes are not there.
const unshown = "; its %d bytes may hold a secret and are not shown"

// configRecord may set a key that is a secret.
const configRecord = "config-record"

// hideSecret takes the value of a key that is a secret, such as a broker's ssl.keystore.password, out of a config record.
func hideSecret(data map[string]any) {
	key, _ := data["name"].(string)
	if value, ok := data["value"].(string); ok && value != "" && plan.SecretKey(key) {
		data["value"] = "***"
	}
}

// raw keeps bytes that could not be decoded.
func raw(d Decoded, b []byte) Decoded {
	d.Hex = hex.EncodeToString(b)
	return d
}

// control reads the value of a control record of a KRaft log.
func (d Decoded) control(l *layout, value []byte) Decoded {
	if len(value) < 2 {
		d.Problem = fmt.Sprintf("a value of %d bytes", len(value))
		return d
	}
	data, err := l.read(value, 0, true)
	d.Data = data
	if err != nil {
		d.Problem = fmt.Sprintf("the value: %v", err)
		return raw(d, value)
	}
	return d
}

// controlRecords are the values of control records of KRaft logs and snapshots; their own version is their first field.
var controlRecords = map[int16]*layout{
	3: fields(0, of("version", int16T), of("lastContainedLogTimestamp", int64T)),
	4: fields(0, of("version", int16T)),
	5: fields(0, of("version", int16T), of("kRaftVersion", int16T)),
	6: fields(0, of("version", int16T), structs("voters", of("voterId", int32T), of("voterDirectoryId", uuidT),
		structs("endpoints", of("name", stringT), of("host", stringT), of("port", uint16T)),
		structs("kRaftVersionFeature", of("minSupportedVersion", int16T), of("maxSupportedVersion", int16T)).one())),
}
