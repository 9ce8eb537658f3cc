package offline

// coordinatorRecord is one type of record that a coordinator writes: the key's version is its number. Keys have no
// versions of their own and classic lengths, values begin with their version and are flexible.
type coordinatorRecord struct {
	name       string
	key, value *layout
}

func groupKey() *layout { return fields(0, of("groupId", stringT)) }

func memberKey() *layout { return fields(0, of("groupId", stringT), of("memberId", stringT)) }

func topicPartitions(name string) field {
	return structs(name, of("topicId", uuidT), list("partitions", int32T))
}

func tasks(name string) field {
	return structs(name, of("subtopologyId", stringT), list("partitions", int32T))
}

func topicInfos(name string) field {
	return structs(name, of("name", stringT), of("partitions", int32T), of("replicationFactor", int16T), structs("topicConfigs", of("key", stringT), of("value", stringT)))
}

// groupRecords are those of consumer groups of the new protocol (KIP-848), share groups (KIP-932) and streams groups
// (KIP-1071), as Apache Kafka 3.9 and 4.1 write them.
var groupRecords = map[int16]coordinatorRecord{
	3: {"consumer-group-metadata", groupKey(), fields(0, of("epoch", int32T), of("metadataHash", int64T).tagged(0))},
	4: {"consumer-group-partition-metadata", groupKey(), partitionMetadata()},
	5: {"consumer-group-member", memberKey(), fields(0, of("instanceId", stringT).orNull(), of("rackId", stringT).orNull(), of("clientId", stringT), of("clientHost", stringT),
		list("subscribedTopicNames", stringT), of("subscribedTopicRegex", stringT).orNull(), of("rebalanceTimeoutMs", int32T), of("serverAssignor", stringT).orNull(),
		structs("classicMemberMetadata", of("sessionTimeoutMs", int32T), structs("supportedProtocols", of("name", stringT), of("metadata", bytesT))).one().orNull().tagged(0))},
	6:  {"consumer-group-target-assignment", groupKey(), fields(0, of("assignmentEpoch", int32T))},
	7:  {"consumer-group-target-assignment-member", memberKey(), fields(0, topicPartitions("topicPartitions"))},
	8:  {"consumer-group-current-assignment", memberKey(), fields(0, of("memberEpoch", int32T), of("previousMemberEpoch", int32T), of("state", int8T), topicPartitions("assignedPartitions"), topicPartitions("partitionsPendingRevocation"))},
	9:  {"share-group-partition-metadata", groupKey(), partitionMetadata()},
	10: {"share-group-member", memberKey(), fields(0, of("rackId", stringT).orNull(), of("clientId", stringT), of("clientHost", stringT), list("subscribedTopicNames", stringT))},
	11: {"share-group-metadata", groupKey(), fields(0, of("epoch", int32T), of("metadataHash", int64T))},
	12: {"share-group-target-assignment", groupKey(), fields(0, of("assignmentEpoch", int32T))},
	13: {"share-group-target-assignment-member", memberKey(), fields(0, topicPartitions("topicPartitions"))},
	14: {"share-group-current-assignment", memberKey(), fields(0, of("memberEpoch", int32T), of("previousMemberEpoch", int32T), of("state", int8T), topicPartitions("assignedPartitions"))},
	15: {"share-group-state-partition-metadata", groupKey(), fields(0, namedPartitions("initializingTopics"), namedPartitions("initializedTopics"), structs("deletingTopics", of("topicId", uuidT), of("topicName", stringT)))},
	16: {"consumer-group-regular-expression", fields(0, of("groupId", stringT), of("regularExpression", stringT)), fields(0, list("topics", stringT), of("version", int64T), of("timestamp", int64T))},
	17: {"streams-group-metadata", groupKey(), fields(0, of("epoch", int32T), of("metadataHash", int64T))},
	19: {"streams-group-member", memberKey(), fields(0, of("instanceId", stringT).orNull(), of("rackId", stringT).orNull(), of("clientId", stringT), of("clientHost", stringT),
		of("rebalanceTimeoutMs", int32T), of("topologyEpoch", int32T), of("processId", stringT), structs("userEndpoint", of("host", stringT), of("port", uint16T)).one().orNull(),
		structs("clientTags", of("key", stringT), of("value", stringT)))},
	20: {"streams-group-target-assignment", groupKey(), fields(0, of("assignmentEpoch", int32T))},
	21: {"streams-group-target-assignment-member", memberKey(), fields(0, tasks("activeTasks"), tasks("standbyTasks"), tasks("warmupTasks"))},
	22: {"streams-group-current-assignment", memberKey(), fields(0, of("memberEpoch", int32T), of("previousMemberEpoch", int32T), of("state", int8T), tasks("activeTasks"), tasks("standbyTasks"), tasks("warmupTasks"),
		tasks("activeTasksPendingRevocation"), tasks("standbyTasksPendingRevocation"), tasks("warmupTasksPendingRevocation"))},
	23: {"streams-group-topology", groupKey(), fields(0, of("epoch", int32T), structs("subtopologies", of("subtopologyId", stringT), list("sourceTopics", stringT), list("sourceTopicRegex", stringT),
		topicInfos("stateChangelogTopics"), list("repartitionSinkTopics", stringT), topicInfos("repartitionSourceTopics"),
		structs("copartitionGroups", list("sourceTopics", int16T), list("sourceTopicRegex", int16T), list("repartitionSourceTopics", int16T))))},
}

func partitionMetadata() *layout {
	return fields(0, structs("topics", of("topicId", uuidT), of("topicName", stringT), of("numPartitions", int32T), structs("partitionMetadata", of("partition", int32T), list("racks", stringT))))
}

func namedPartitions(name string) field {
	return structs(name, of("topicId", uuidT), of("topicName", stringT), list("partitions", int32T))
}

// shareRecords are those of __share_group_state.
var shareRecords = map[int16]coordinatorRecord{
	0: {"share-snapshot", shareKey(), fields(0, of("snapshotEpoch", int32T), of("stateEpoch", int32T), of("leaderEpoch", int32T), of("startOffset", int64T), of("createTimestamp", int64T), of("writeTimestamp", int64T), stateBatches())},
	1: {"share-update", shareKey(), fields(0, of("snapshotEpoch", int32T), of("leaderEpoch", int32T), of("startOffset", int64T), stateBatches())},
}

func shareKey() *layout {
	return fields(0, of("groupId", stringT), of("topicId", uuidT), of("partition", int32T))
}

func stateBatches() field {
	return structs("stateBatches", of("firstOffset", int64T), of("lastOffset", int64T), of("deliveryState", int8T), of("deliveryCount", int16T))
}

// DecodeShareState reads a record of __share_group_state.
func DecodeShareState(key, value []byte) Decoded {
	return coordinated(shareRecords, key, value)
}

// coordinated reads a record by the types of a coordinator.
func coordinated(types map[int16]coordinatorRecord, key, value []byte) Decoded {
	number := version(key)
	if number < 0 {
		return undecoded("a key of %d bytes", len(key))
	}
	kind, ok := types[number]
	if !ok {
		return raw(undecoded("key version %d is not known", number), value)
	}
	d := Decoded{Type: kind.name, Tombstone: value == nil}
	d.Key = d.keyed(kind.key, key)
	d.Group = text(d.Key, "groupId")
	if d.Key != nil && value != nil {
		d.Data = d.valued(kind.value, value, 0)
	}
	return d
}
