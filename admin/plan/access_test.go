package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// TestEffectiveQuotas: the most specific entity that has the limit, key by key.
func TestEffectiveQuotas(t *testing.T) {
	const d = model.QuotaDefault
	all := []model.Quota{
		{Entity: model.QuotaEntity{User: "u", ClientID: "c"}, Key: "producer_byte_rate", Value: 1},
		{Entity: model.QuotaEntity{User: "u"}, Key: "consumer_byte_rate", Value: 2},
		{Entity: model.QuotaEntity{User: d}, Key: "consumer_byte_rate", Value: 3},
		{Entity: model.QuotaEntity{ClientID: "c"}, Key: "request_percentage", Value: 4},
		{Entity: model.QuotaEntity{ClientID: d}, Key: "producer_byte_rate", Value: 5},
		{Entity: model.QuotaEntity{IP: d}, Key: "connection_creation_rate", Value: 6},
	}
	for _, tt := range []struct{ user, client, ip, want string }{
		{"u", "c", "", "user=u consumer_byte_rate 2; user=u,client-id=c producer_byte_rate 1; client-id=c request_percentage 4"},
		{"v", "x", "", "user=<default> consumer_byte_rate 3; client-id=<default> producer_byte_rate 5"},
		{"", "x", "", "client-id=<default> producer_byte_rate 5"},
		{"", "", "10.0.0.1", "ip=<default> connection_creation_rate 6"},
	} {
		var got []string
		for _, q := range plan.EffectiveQuotas(all, tt.user, tt.client, tt.ip) {
			got = append(got, fmt.Sprintf("%s %s %v", q.Entity, q.Key, q.Value))
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%+v: got %s", tt, strings.Join(got, "; "))
		}
	}
}

func TestParseQuotas(t *testing.T) {
	user, ip := model.QuotaEntity{User: "u"}, model.QuotaEntity{IP: "10.0.0.1"}
	for _, tt := range []struct {
		e    model.QuotaEntity
		pair string
		err  string
	}{
		{user, "producer_byte_rate=1048576", ""}, {ip, "connection_creation_rate=1.5", ""},
		{user, "connection_creation_rate=1", "not one of producer_byte_rate"}, {user, "producer_byte_rat=1", `did you mean "producer_byte_rate"?`},
		{user, "producer_byte_rate=0", "above zero"}, {user, "producer_byte_rate=x", "above zero"}, {user, "producer_byte_rate=NaN", "above zero"}, {user, "producer_byte_rate", "not key=value"},
		{model.QuotaEntity{}, "producer_byte_rate=1", "no entity"}, {model.QuotaEntity{User: "u", IP: "i"}, "producer_byte_rate=1", "cannot have a user"},
	} {
		_, err := plan.ParseQuotas(tt.e, []string{tt.pair})
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%v %s: got %v, want %q", tt.e, tt.pair, err, tt.err)
		}
	}
}

const aclFile = `acls:
    - principal: User:alice
      topic: orders
      pattern: prefixed
      operations: [Describe, Read]
    - principal: User:eve
      cluster: true
      permission: deny
      operations: [All]
      hosts: [10.0.0.9]
`

// TestACLFile: the declarative form is read and written alike, and mistakes are named.
func TestACLFile(t *testing.T) {
	acls, err := plan.ParseACLFile([]byte(aclFile))
	if err != nil || len(acls) != 3 {
		t.Fatalf("%v %v", acls, err)
	}
	data, err := plan.EncodeACLFile(acls)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.ParseACLFile(data)
	plan.SortACLs(acls)
	plan.SortACLs(again)
	if err != nil || !slices.Equal(acls, again) {
		t.Errorf("%v\n%s", err, data)
	}
	for doc, want := range map[string]string{
		"acls: []": "no rules", "acls: [{principal: User:a, topic: t, operation: [Read]}]": "operation not found",
		"acls: [{principal: User:a, topic: t, group: g, operations: [Read]}]": "both a Topic and a Group", "acls: [{principal: User:a, operations: [Read]}]": "names no resource",
		"acls: [{principal: alice, topic: t, operations: [Read]}]": "not TYPE:NAME", "acls: [{principal: User:a, topic: t, operations: [Raed]}]": `did you mean "Read"?`,
		"acls: [{principal: User:a, topic: '*', pattern: prefixed, operations: [Read]}]": "begin with a star", "acls: [{principal: User:a, group: g, operations: [Write]}]": "not one of Read, Describe",
	} {
		if _, err := plan.ParseACLFile([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", doc, err, want)
		}
	}
}

// TestDiffACLs: pruning touches the rules of the named principals only.
func TestDiffACLs(t *testing.T) {
	rule := func(who, op string) model.ACL {
		return model.ACL{ResourceType: "Topic", ResourceName: "t", PatternType: "Literal", Principal: who, Host: "*", Operation: op, Permission: "Allow"}
	}
	have := []model.ACL{rule("User:a", "Read"), rule("User:a", "Write"), rule("User:b", "Read")}
	d := plan.DiffACLs(have, []model.ACL{rule("User:a", "Read"), rule("User:a", "Describe")}, true)
	if !slices.Equal(d.Create, []model.ACL{rule("User:a", "Describe")}) || !slices.Equal(d.Delete, []model.ACL{rule("User:a", "Write")}) || !slices.Equal(d.Keep, []model.ACL{rule("User:a", "Read")}) {
		t.Errorf("%+v", d)
	}
	if d := plan.DiffACLs(have, []model.ACL{rule("User:a", "Describe")}, false); len(d.Delete) != 0 {
		t.Errorf("deleted without --prune: %v", d.Delete)
	}
}

// TestNewPartitions: live brokers only, as many replicas as before, leaders and replicas spread, racks not repeated.
func TestNewPartitions(t *testing.T) {
	topic := &model.Topic{Name: "t", Partitions: []model.Partition{{Replicas: []cluster.BrokerID{1, 2}}}}
	brokers := []model.Broker{{ID: 1, Rack: "a", Live: true}, {ID: 2, Rack: "a", Live: true}, {ID: 3, Rack: "b", Live: true}, {ID: 4, Rack: "b", Live: true}, {ID: 5, Rack: "c"}}
	got, err := plan.NewPartitions(topic, brokers, 5)
	if err != nil || len(got) != 4 {
		t.Fatalf("%v %v", got, err)
	}
	leaders, replicas := map[cluster.BrokerID]int{1: 1}, map[cluster.BrokerID]int{1: 1, 2: 1}
	rack := map[cluster.BrokerID]string{1: "a", 2: "a", 3: "b", 4: "b"}
	for _, p := range got {
		if len(p) != 2 || rack[p[0]] == "" || rack[p[0]] == rack[p[1]] {
			t.Errorf("replicas %v", p)
		}
		leaders[p[0]]++
		for _, id := range p {
			replicas[id]++
		}
	}
	for id := range rack {
		if leaders[id] < 1 || leaders[id] > 2 || replicas[id] < 2 || replicas[id] > 3 {
			t.Errorf("broker %d has %d leaders and %d replicas", id, leaders[id], replicas[id])
		}
	}
	for count, want := range map[int32]string{0: "cannot be removed", plan.PartitionsMax + 1: "above"} {
		if _, err := plan.NewPartitions(topic, brokers, count); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", count, err)
		}
	}
	if _, err := plan.NewPartitions(topic, brokers[:1], 2); err == nil || !strings.Contains(err.Error(), "only 1 brokers") {
		t.Errorf("too few brokers: %v", err)
	}
}

// FuzzParseACLFile: no file makes the parser panic, and what it accepts passes the checks of single rules.
func FuzzParseACLFile(f *testing.F) {
	f.Add([]byte(aclFile))
	f.Fuzz(func(t *testing.T, data []byte) {
		acls, err := plan.ParseACLFile(data)
		if err != nil {
			return
		}
		for _, a := range acls {
			if err := plan.CheckACL(a); err != nil {
				t.Errorf("%+v: %v", a, err)
			}
		}
	})
}
