package model

// QuotaDefault stands for the default of an entity type, as Kafka's tools write it.
const QuotaDefault = "<default>"

// QuotaEntity is what a quota applies to: a user, a client id, both together, or an address. An empty part is not part
// of the entity, QuotaDefault is the default of its type.
type QuotaEntity struct {
	User, ClientID, IP string
}

// String returns the parts as user=alice,client-id=app1.
func (e QuotaEntity) String() string {
	out := ""
	for _, p := range [][2]string{{"user", e.User}, {"client-id", e.ClientID}, {"ip", e.IP}} {
		if p[1] == "" {
			continue
		}
		if out != "" {
			out += ","
		}
		out += p[0] + "=" + p[1]
	}
	return out
}

// Quota is one limit of one entity.
type Quota struct {
	Entity QuotaEntity
	Key    string
	Value  float64
}

// ScramCredential is a user's password of one mechanism, without what could be derived from it.
type ScramCredential struct {
	User       string
	Mechanism  string // SCRAM-SHA-256 or SCRAM-SHA-512
	Iterations int32
}

// ACL is one rule of the authorizer. The texts are Kafka's: resource types and operations in camel case (Topic, Group,
// Cluster, TransactionalId, DelegationToken, User; Read, IdempotentWrite), Literal or Prefixed, Allow or Deny.
type ACL struct {
	ResourceType string
	ResourceName string
	PatternType  string
	Principal    string
	Host         string
	Operation    string
	Permission   string
}

// ACLFilter selects rules; an empty field selects everything. PatternType may also be Any or Match: Match finds every
// rule that applies to the named resource, prefixed and wildcard ones too.
type ACLFilter = ACL
