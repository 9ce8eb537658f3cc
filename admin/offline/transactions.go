package offline

import "fmt"

// The records of __transaction_state, as Apache Kafka up to 4.1 writes them. Version 1 of the value is that of clusters whose
// transaction.version is 1 or 2 (KIP-890); nextProducerEpoch is of KIP-939.
var (
	transactionKey   = fields(0, of("transactionalId", stringT))
	transactionValue = fields(1, of("producerId", int64T), of("previousProducerId", int64T).tagged(0), of("nextProducerId", int64T).tagged(1),
		of("producerEpoch", int16T), of("transactionTimeoutMs", int32T), of("transactionStatus", int8T),
		structs("transactionPartitions", of("topic", stringT), list("partitionIds", int32T)).orNull(),
		of("transactionLastUpdateTimestampMs", int64T), of("transactionStartTimestampMs", int64T),
		of("clientTransactionVersion", int16T).tagged(2), of("nextProducerEpoch", int16T).tagged(3))
)

// flexibleTransaction is the first version of the value with tagged fields.
const flexibleTransaction = 1

// transactionStates are Kafka's by their number.
var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// DecodeTransactions reads a record of __transaction_state.
func DecodeTransactions(key, value []byte) Decoded {
	if v := version(key); v != 0 {
		if v < 0 {
			return undecoded("a key of %d bytes", len(key))
		}
		return raw(undecoded("key version %d is not known", v), value)
	}
	d := Decoded{Type: "transaction", Tombstone: value == nil}
	k := d.keyed(transactionKey, key)
	d.TransactionalID = text(k, "transactionalId")
	if k == nil || value == nil {
		return d
	}
	v := d.valued(transactionValue, value, flexibleTransaction)
	if v == nil {
		return d
	}
	d.ProducerID, d.ProducerEpoch, d.TimeoutMs = number[int64](v, "producerId"), number[int16](v, "producerEpoch"), number[int32](v, "transactionTimeoutMs")
	d.LastUpdate, d.StartTimestamp = number[int64](v, "transactionLastUpdateTimestampMs"), number[int64](v, "transactionStartTimestampMs")
	d.PreviousProducerID, d.NextProducerID = number[int64](v, "previousProducerId"), number[int64](v, "nextProducerId")
	d.NextProducerEpoch, d.ClientTransactionVersion = number[int16](v, "nextProducerEpoch"), number[int16](v, "clientTransactionVersion")
	d.Partitions, d.Data = partitionsOf(v, "transactionPartitions", "partitionIds"), unknownTags(v)
	state := *number[int32](v, "transactionStatus")
	d.State = fmt.Sprintf("unknown (%d)", state)
	if state >= 0 && int(state) < len(transactionStates) {
		d.State = transactionStates[state]
	}
	return d
}
