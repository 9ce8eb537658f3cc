package plan

import (
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

func TestTopicExpectation(t *testing.T) {
	topic := &model.Topic{Name: "t", ID: cluster.TopicID{1}, Partitions: make([]model.Partition, 2)}
	id := topic.ID.String()
	for _, tt := range []struct {
		words   string
		records int64
		want    string // part of the refusal
	}{
		{"", -1, ""},
		{"id=" + id + " partitions=2 records=0", 0, ""},
		{"id=AAAAAAAAAAAAAAAAAAAAAA", 0, "deleted and created again"},
		{"partitions=3", 0, "2 partitions, expected were 3"},
		{"records=0", 5, "5 records were written"},
		{"records=0", -1, "nobody knows"},
		{"records", 0, "is not id=ID"},
		{"records=x", 0, "not a number"},
		{"records=-1", 0, "not a number"},
		{"partitions=0", 0, "not a number"},
		{"name=t", 0, "not one of"},
		{"id=", 0, "is not id=ID"},
	} {
		e, err := ParseTopicExpectation(strings.Fields(tt.words))
		if err == nil {
			err = e.Check(topic, tt.records)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %d records: %v, want %q", tt.words, tt.records, err, tt.want)
		}
	}
}

func TestRecordsWritten(t *testing.T) {
	topic := &model.Topic{Name: "t", Partitions: make([]model.Partition, 2)}
	leader := func(p int32, end int64, err string) model.ReplicaPosition {
		return model.ReplicaPosition{Topic: "t", Partition: p, Leader: true, LogEndOffset: end, Err: err}
	}
	for _, tt := range []struct {
		positions []model.ReplicaPosition
		want      int64
	}{
		{[]model.ReplicaPosition{leader(0, 3, ""), leader(1, 4, ""), {Topic: "t", LogEndOffset: 9}, {Topic: "u", Leader: true, LogEndOffset: 9}}, 7},
		{[]model.ReplicaPosition{leader(0, 3, "")}, -1},
		{[]model.ReplicaPosition{leader(0, 3, ""), leader(1, -1, "")}, -1},
		{[]model.ReplicaPosition{leader(0, 3, ""), leader(1, 4, "silent")}, -1},
	} {
		if got := RecordsWritten(topic, tt.positions); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.positions, got, tt.want)
		}
	}
}

func TestCheckExpectedScram(t *testing.T) {
	have := []model.ScramCredential{{User: "a", Mechanism: "SCRAM-SHA-256", Iterations: 8192}, {User: "b", Mechanism: "SCRAM-SHA-512", Iterations: 4096}}
	for _, tt := range []struct {
		user     string
		expected []string
		want     string
	}{
		{"a", nil, ""},
		{"a", []string{"SCRAM-SHA-256=8192"}, ""},
		{"a", []string{"SCRAM-SHA-256=4096"}, "8192 iterations, expected were 4096"},
		{"a", []string{"SCRAM-SHA-512=4096"}, "no credentials of SCRAM-SHA-512 any more"},
		{"c", []string{"SCRAM-SHA-256=8192"}, "no credentials"},
	} {
		err := CheckExpectedScram(tt.user, have, tt.expected)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: %v, want %q", tt.user, tt.expected, err, tt.want)
		}
	}
}
