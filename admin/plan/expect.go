package plan

import (
	"fmt"
	"strconv"
	"strings"

	"kctl/admin/model"
)

// TopicExpectation is what a topic must be for a command that takes a change back. Zero fields demand nothing.
type TopicExpectation struct {
	ID         string // the topic id in Kafka's text form
	Partitions int
	Records    *int64 // records ever written, the sum of the log ends
}

// ParseTopicExpectation reads --expect: id=ID, partitions=N and records=N.
func ParseTopicExpectation(words []string) (e TopicExpectation, err error) {
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		n, notNumber := strconv.ParseInt(value, 10, 64)
		switch {
		case !ok || value == "":
			return e, fmt.Errorf("--expect %q is not id=ID, partitions=N or records=N", w)
		case key == "id":
			e.ID = value
		case key != "partitions" && key != "records":
			return e, fmt.Errorf("--expect %s: %q is not one of id, partitions, records", w, key)
		case notNumber != nil || n < 0 || n == 0 && key == "partitions": // no topic has none
			return e, fmt.Errorf("--expect %s: %q is not a number of %s", w, value, key)
		case key == "partitions":
			e.Partitions = int(n)
		default:
			e.Records = &n
		}
	}
	return e, nil
}

// Check refuses a topic that is not what was expected; records is the sum of its log ends, -1 when not known.
func (e TopicExpectation) Check(t *model.Topic, records int64) error {
	switch id := t.ID.String(); {
	case e.ID != "" && id != e.ID:
		return fmt.Errorf("topic %s has the id %s, expected was %s: it was deleted and created again since", t.Name, id, e.ID)
	case e.Partitions > 0 && len(t.Partitions) != e.Partitions:
		return fmt.Errorf("topic %s has %d partitions, expected were %d", t.Name, len(t.Partitions), e.Partitions)
	case e.Records != nil && records < 0:
		return fmt.Errorf("topic %s: not every leader tells where its log ends, so nobody knows whether it has records", t.Name)
	case e.Records != nil && records != *e.Records:
		return fmt.Errorf("%d records were written to topic %s, expected were %d", records, t.Name, *e.Records)
	}
	return nil
}

// RecordsWritten sums up the log ends of the leaders of a topic's partitions, -1 when one is not known.
func RecordsWritten(t *model.Topic, positions []model.ReplicaPosition) int64 {
	leaders, n := 0, int64(0)
	for i := range positions {
		if p := &positions[i]; p.Leader && p.Topic == t.Name {
			if p.Err != "" || p.LogEndOffset < 0 {
				return -1
			}
			leaders++
			n += p.LogEndOffset
		}
	}
	if leaders < len(t.Partitions) {
		return -1
	}
	return n
}

// CheckExpectedScram refuses when a user's credentials are not those that were expected, each as MECHANISM=ITERATIONS.
// Whether the password is another one nobody can tell.
func CheckExpectedScram(user string, have []model.ScramCredential, expected []string) error {
	for _, x := range expected {
		mechanism, want, _ := strings.Cut(x, "=")
		got := ""
		for _, h := range have {
			if h.User == user && h.Mechanism == mechanism {
				got = strconv.Itoa(int(h.Iterations))
			}
		}
		switch {
		case got == "":
			return fmt.Errorf("user %s has no credentials of %s any more", user, mechanism)
		case got != want:
			return fmt.Errorf("the credentials of %s of %s have %s iterations, expected were %s", user, mechanism, got, want)
		}
	}
	return nil
}
