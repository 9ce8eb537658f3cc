package plan

import (
	"errors"
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

func TestJudgeStored(t *testing.T) {
	two, many := []cluster.BrokerID{1, 2}, []cluster.BrokerID{1, 2, 3, 4, 5, 6, 7}
	for _, tt := range []struct {
		name                      string
		facts                     StoredFacts
		glass                     bool
		read, write               string // what the error says; empty for none
		hint, readNote, writeNote string
	}{
		{name: "before the first start", facts: StoredFacts{Address: "z:1"}, read: "holds no Kafka cluster", writeNote: "begins a new cluster"},
		{name: "all brokers stopped", facts: StoredFacts{Used: true}},
		{name: "registered", facts: StoredFacts{Used: true, Registered: two}, write: "brokers 1, 2 are registered in ZooKeeper, but none of them answers", hint: "--break-glass"},
		{name: "one registered", facts: StoredFacts{Used: true, Registered: two[:1]}, write: "broker 1 is registered", hint: "--break-glass"},
		{name: "many registered", facts: StoredFacts{Used: true, Registered: many}, write: "brokers 1, 2, 3, 4, 5 and 2 more are registered", hint: "--break-glass"},
		{name: "registered, break glass", facts: StoredFacts{Used: true, Registered: two}, glass: true, writeNote: "brokers 1, 2 are registered: they learn of it"},
		{name: "KRaft", facts: StoredFacts{Used: true, KRaft: true}, write: "to KRaft", hint: "-b", readNote: "may be old"},
		{name: "KRaft, break glass", facts: StoredFacts{Used: true, KRaft: true, Registered: two}, glass: true, readNote: "may be old", writeNote: "may never read this"},
		{name: "no chroot", facts: StoredFacts{Address: "z:1,y:1/", Below: []string{"/kafka", "/other"}}, read: "below /kafka and /other", write: "below /kafka and /other", hint: "-z z:1,y:1/kafka"},
		{name: "no chroot, break glass", facts: StoredFacts{Below: []string{"/kafka"}}, glass: true, read: "below /kafka", writeNote: "begins a new cluster"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			says := func(what, note, wantNote string, err error, want string) {
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", what, err, want)
				}
				if (note == "") != (wantNote == "") || !strings.Contains(note, wantNote) {
					t.Errorf("%s: note %q, want %q", what, note, wantNote)
				}
			}
			note, err := JudgeStoredRead(&tt.facts)
			says("read", note, tt.readNote, err, tt.read)
			note, err = JudgeStoredWrite(&tt.facts, tt.glass)
			says("write", note, tt.writeNote, err, tt.write)
			if r, ok := errors.AsType[*StoredRefusal](err); ok && !strings.Contains(r.Hint, tt.hint) {
				t.Errorf("hint %q, want %q", r.Hint, tt.hint)
			}
		})
	}
}

// TestStoredQuota: values as Apache Kafka 3.9.1 stores them, and those that its brokers could not read.
func TestStoredQuota(t *testing.T) {
	for _, tt := range []struct {
		key   string
		value float64
		want  string
	}{
		{"producer_byte_rate", 1048576, "1048576"}, {"consumer_byte_rate", 1e12, "1000000000000"}, {"connection_creation_rate", 2147483647, "2147483647"},
		{"request_percentage", 50.5, "50.5"}, {"request_percentage", 200, "200.0"}, {"controller_mutation_rate", 1e7, "1.0E7"}, {"controller_mutation_rate", 12345678.5, "1.23456785E7"},
		{"request_percentage", 0.0005, "5.0E-4"}, {"request_percentage", 0.001, "0.001"},
		{"producer_byte_rate", 1.5, ""}, {"producer_byte_rate", 1e19, ""}, {"connection_creation_rate", 2147483648, ""}, {"connection_creation_rate", 0.5, ""},
	} {
		got, err := StoredQuota(tt.key, tt.value)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s=%v: %q, %v; want %q", tt.key, tt.value, got, err, tt.want)
		}
	}
}

func TestCheckStored(t *testing.T) {
	v := 1.5
	for _, tt := range []struct {
		err  error
		want string
	}{
		{CheckStoredQuotas(model.QuotaEntity{User: ".."}, nil), "cannot be stored"},
		{CheckStoredQuotas(model.QuotaEntity{User: "a/b", ClientID: "."}, nil), "cannot be stored"},
		{CheckStoredQuotas(model.QuotaEntity{IP: "localhost"}, nil), "not an address"},
		{CheckStoredQuotas(model.QuotaEntity{User: "a/b"}, []QuotaChange{{Key: "consumer_byte_rate", After: &v}}), "whole number"},
		{CheckStoredQuotas(model.QuotaEntity{IP: model.QuotaDefault}, nil), ""},
		{CheckStoredQuotas(model.QuotaEntity{IP: "::1"}, []QuotaChange{{Key: "connection_creation_rate"}}), ""},
		{CheckStoredACL(model.ACL{ResourceType: "Group", ResourceName: "a/b"}), "no slash"},
		{CheckStoredACL(model.ACL{ResourceType: "Group", ResourceName: "."}), "cannot be stored"},
		{CheckStoredACL(model.ACL{ResourceType: "Group", ResourceName: "*"}), ""},
	} {
		if (tt.err == nil) != (tt.want == "") || tt.err != nil && !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%v, want %q", tt.err, tt.want)
		}
	}
}
