package rows

import (
	"time"

	"kctl/admin/model"
)

// Transaction is one row of transactions list and describe.
type Transaction struct {
	TransactionalID string         `json:"transactionalId"`
	Coordinator     int32          `json:"coordinator" doc:"broker id; -1 when not known"`
	ProducerID      int64          `json:"producerId"`
	ProducerEpoch   int32          `json:"producerEpoch"`
	State           string         `json:"state" doc:"Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, ..."`
	TimeoutMs       int64          `json:"timeoutMs" doc:"after how long the coordinator aborts it"`
	StartedAt       *string        `json:"startedAt" doc:"RFC 3339; null when none is under way"`
	AgeMs           *int64         `json:"ageMs" doc:"time since its start; null when none is under way"`
	Partitions      []TopicNumbers `json:"partitions" doc:"those it has written to"`
	Error           string         `json:"error"`
}

// TransactionKind describes Transaction.
var TransactionKind = Kind[Transaction]{
	Name: "Transaction", Title: "transactions",
	ID: func(t Transaction) string { return t.TransactionalID },
	Columns: []Column[Transaction]{
		{Name: "TRANSACTIONAL-ID", Cell: func(t Transaction) string { return t.TransactionalID }},
		{Name: "COORDINATOR", Right: true, Cell: func(t Transaction) string { return IDText(t.Coordinator) }},
		{Name: "PRODUCER-ID", Right: true, Cell: func(t Transaction) string { return offset(t.ProducerID) }},
		{Name: "EPOCH", Right: true, Cell: func(t Transaction) string { return offset(int64(t.ProducerEpoch)) }},
		{Name: "STATE", Cell: func(t Transaction) string { return text(t.State) }},
		{Name: "AGE", Right: true, Cell: func(t Transaction) string { return ageCell(t.AgeMs) }},
		{Name: "STARTED-AT", Wide: true, Cell: func(t Transaction) string { return orDash(t.StartedAt) }},
		{Name: "TIMEOUT", Right: true, Cell: func(t Transaction) string { return ageCell(&t.TimeoutMs) }},
		{Name: "PARTITIONS", Cell: func(t Transaction) string { return numbersText(t.Partitions) }},
		{Name: "ERROR", Cell: func(t Transaction) string { return text(t.Error) }},
	},
}

// OfTransaction makes one row, seen at now.
func OfTransaction(t *model.TransactionState, now time.Time) Transaction {
	out := Transaction{
		TransactionalID: t.ID, Coordinator: int32(t.Coordinator), ProducerID: t.ProducerID, ProducerEpoch: int32(t.ProducerEpoch),
		State: t.State, TimeoutMs: t.Timeout.Milliseconds(), StartedAt: TimeText(t.Started), Partitions: numbers(t.Partitions), Error: t.Err,
	}
	if !t.Started.IsZero() {
		ms := max(0, now.Sub(t.Started).Milliseconds())
		out.AgeMs = &ms
	}
	return out
}

// OpenTransaction is one row of transactions find-hanging and of the plan of transactions abort.
type OpenTransaction struct {
	Topic            string  `json:"topic"`
	Partition        int32   `json:"partition"`
	Broker           int32   `json:"broker" doc:"the leader"`
	ProducerID       int64   `json:"producerId"`
	ProducerEpoch    int32   `json:"producerEpoch"`
	CoordinatorEpoch int32   `json:"coordinatorEpoch" doc:"-1 when no coordinator has ended a transaction of the producer yet"`
	StartOffset      int64   `json:"startOffset" doc:"consumers with read_committed do not get past it"`
	LastTimestamp    *string `json:"lastTimestamp" doc:"of the producer's last record, RFC 3339"`
	AgeMs            *int64  `json:"ageMs" doc:"time since the producer's last record"`
	TransactionalID  string  `json:"transactionalId" doc:"empty when no coordinator knows the producer id"`
	Reason           string  `json:"reason" doc:"why nobody will end it"`
	Fix              string  `json:"fix" doc:"the one command that ends it"`
}

// OpenTransactionKind describes OpenTransaction.
var OpenTransactionKind = Kind[OpenTransaction]{
	Name: "OpenTransaction", Title: "hanging transactions",
	ID: func(t OpenTransaction) string {
		return t.Topic + ":" + itoa(t.Partition) + " " + itoa(t.ProducerID) + " " + itoa(t.StartOffset)
	},
	Columns: []Column[OpenTransaction]{
		{Name: "TOPIC", Cell: func(t OpenTransaction) string { return t.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(t OpenTransaction) string { return itoa(t.Partition) }},
		{Name: "BROKER", Wide: true, Right: true, Cell: func(t OpenTransaction) string { return IDText(t.Broker) }},
		{Name: "PRODUCER-ID", Right: true, Cell: func(t OpenTransaction) string { return itoa(t.ProducerID) }},
		{Name: "EPOCH", Right: true, Cell: func(t OpenTransaction) string { return itoa(t.ProducerEpoch) }},
		{Name: "COORDINATOR-EPOCH", Wide: true, Right: true, Cell: func(t OpenTransaction) string { return offset(int64(t.CoordinatorEpoch)) }},
		{Name: "START-OFFSET", Right: true, Cell: func(t OpenTransaction) string { return itoa(t.StartOffset) }},
		{Name: "AGE", Right: true, Cell: func(t OpenTransaction) string { return ageCell(t.AgeMs) }},
		{Name: "TRANSACTIONAL-ID", Cell: func(t OpenTransaction) string { return text(t.TransactionalID) }},
		{Name: "REASON", Cell: func(t OpenTransaction) string { return text(t.Reason) }},
		{Name: "FIX", Wide: true, Cell: func(t OpenTransaction) string { return text(t.Fix) }},
	},
}

// OfOpenTransaction makes one row, seen at now.
func OfOpenTransaction(t *model.OpenTransaction, now time.Time) OpenTransaction {
	out := OpenTransaction{
		Topic: t.Topic, Partition: t.Partition, Broker: int32(t.Broker), ProducerID: t.ProducerID, ProducerEpoch: t.ProducerEpoch,
		CoordinatorEpoch: t.CoordinatorEpoch, StartOffset: t.StartOffset, TransactionalID: t.TransactionalID, Reason: t.Reason,
		Fix: "kctl transactions abort --topic " + t.Topic + ":" + itoa(t.Partition) + " --start-offset " + itoa(t.StartOffset) + " --yes",
	}
	if t.LastTimestamp.UnixMilli() > 0 {
		ms := max(0, now.Sub(t.LastTimestamp).Milliseconds())
		out.AgeMs, out.LastTimestamp = &ms, TimeText(t.LastTimestamp)
	}
	return out
}
