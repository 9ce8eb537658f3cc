package rows

import (
	"strconv"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// Quota is one limit of one entity, there or planned.
type Quota struct {
	Entity    string   `json:"entity" doc:"user=NAME, client-id=NAME, both, or ip=ADDRESS; <default> is the default"`
	User      *string  `json:"user" doc:"null when the entity has none"`
	ClientID  *string  `json:"clientId" doc:"null when the entity has none"`
	IP        *string  `json:"ip" doc:"null when the entity has none"`
	Key       string   `json:"key"`
	Value     *float64 `json:"value" doc:"the limit; null when it is taken away"`
	Effective bool     `json:"effective" doc:"with quotas describe: this one applies"`
}

func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return plan.QuotaValue(*v)
}

// OfQuota makes the row of a limit.
func OfQuota(q model.Quota) Quota {
	return Quota{
		Entity: q.Entity.String(), User: optionalText(q.Entity.User), ClientID: optionalText(q.Entity.ClientID), IP: optionalText(q.Entity.IP),
		Key: q.Key, Value: &q.Value,
	}
}

// QuotaKind describes Quota.
var QuotaKind = Kind[Quota]{
	Name: "Quota", Title: "quotas",
	ID: func(q Quota) string { return q.Entity + " " + q.Key },
	Columns: []Column[Quota]{
		{Name: "ENTITY", Cell: func(q Quota) string { return q.Entity }},
		{Name: "KEY", Cell: func(q Quota) string { return q.Key }},
		{Name: "VALUE", Right: true, Cell: func(q Quota) string { return number(q.Value) }},
	},
}

// QuotaChange is one planned or made change of a limit.
type QuotaChange struct {
	Entity string   `json:"entity"`
	Key    string   `json:"key"`
	Action string   `json:"action" doc:"set, delete, or none"`
	Before *float64 `json:"before" doc:"null for no limit"`
	After  *float64 `json:"after" doc:"null for no limit"`
	Done   bool     `json:"done"`
	Error  string   `json:"error"`
}

// QuotaChangeKind describes QuotaChange.
var QuotaChangeKind = Kind[QuotaChange]{
	Name: "QuotaChange", Title: "changes",
	ID: func(q QuotaChange) string { return q.Entity + " " + q.Key },
	Columns: []Column[QuotaChange]{
		{Name: "ENTITY", Cell: func(q QuotaChange) string { return q.Entity }},
		{Name: "KEY", Cell: func(q QuotaChange) string { return q.Key }},
		{Name: "ACTION", Cell: func(q QuotaChange) string { return q.Action }},
		{Name: "BEFORE", Right: true, Cell: func(q QuotaChange) string { return number(q.Before) }},
		{Name: "AFTER", Right: true, Cell: func(q QuotaChange) string { return number(q.After) }},
		{Name: "RESULT", Cell: func(q QuotaChange) string { return outcome(q.Done, q.Error) }},
	},
}

func outcome(done bool, err string) string {
	switch {
	case err != "":
		return err
	case done:
		return "done"
	}
	return "-"
}

// OfQuotaChange makes the row of a planned change.
func OfQuotaChange(c *plan.QuotaChange) QuotaChange {
	row := QuotaChange{Entity: c.Entity.String(), Key: c.Key, Action: "set", Before: c.Before, After: c.After}
	switch {
	case c.None():
		row.Action = "none"
	case c.After == nil:
		row.Action = "delete"
	}
	return row
}

// User is one SCRAM credential of one user.
type User struct {
	Name       string `json:"name"`
	Mechanism  string `json:"mechanism" doc:"SCRAM-SHA-256 or SCRAM-SHA-512"`
	Iterations int32  `json:"iterations"`
}

// UserKind describes User.
var UserKind = Kind[User]{
	Name: "User", Title: "SCRAM users",
	ID: func(u User) string { return u.Name },
	Columns: []Column[User]{
		{Name: "NAME", Cell: func(u User) string { return u.Name }},
		{Name: "MECHANISM", Cell: func(u User) string { return u.Mechanism }},
		{Name: "ITERATIONS", Right: true, Cell: func(u User) string { return itoa(u.Iterations) }},
	},
}

// UserChange is one planned or made change of a credential.
type UserChange struct {
	Name       string `json:"name"`
	Mechanism  string `json:"mechanism"`
	Action     string `json:"action" doc:"create, replace, delete, or none"`
	Iterations int32  `json:"iterations" doc:"afterwards; 0 when deleted"`
	Done       bool   `json:"done"`
	Error      string `json:"error"`
}

// UserChangeKind describes UserChange.
var UserChangeKind = Kind[UserChange]{
	Name: "UserChange", Title: "changes",
	ID: func(u UserChange) string { return u.Name + " " + u.Mechanism },
	Columns: []Column[UserChange]{
		{Name: "NAME", Cell: func(u UserChange) string { return u.Name }},
		{Name: "MECHANISM", Cell: func(u UserChange) string { return u.Mechanism }},
		{Name: "ACTION", Cell: func(u UserChange) string { return u.Action }},
		{Name: "ITERATIONS", Right: true, Cell: func(u UserChange) string { return strconv.Itoa(int(u.Iterations)) }},
		{Name: "RESULT", Cell: func(u UserChange) string { return outcome(u.Done, u.Error) }},
	},
}

// ACL is one rule, there or planned.
type ACL struct {
	ResourceType string `json:"resourceType" doc:"Topic, Group, Cluster, TransactionalId, DelegationToken, User"`
	ResourceName string `json:"resourceName" doc:"* is all"`
	PatternType  string `json:"patternType" doc:"Literal or Prefixed"`
	Principal    string `json:"principal"`
	Permission   string `json:"permission" doc:"Allow or Deny"`
	Operation    string `json:"operation"`
	Host         string `json:"host" doc:"* is all"`
}

func aclColumns[T any](of func(T) ACL) []Column[T] {
	return []Column[T]{
		{Name: "RESOURCE", Cell: func(t T) string { return of(t).ResourceType }},
		{Name: "NAME", Cell: func(t T) string { return of(t).ResourceName }},
		{Name: "PATTERN", Cell: func(t T) string { return of(t).PatternType }},
		{Name: "PRINCIPAL", Cell: func(t T) string { return of(t).Principal }},
		{Name: "PERMISSION", Cell: func(t T) string { return of(t).Permission }},
		{Name: "OPERATION", Cell: func(t T) string { return of(t).Operation }},
		{Name: "HOST", Cell: func(t T) string { return of(t).Host }},
	}
}

// OfACL makes the row of a rule.
func OfACL(a model.ACL) ACL {
	return ACL{a.ResourceType, a.ResourceName, a.PatternType, a.Principal, a.Permission, a.Operation, a.Host}
}

func (a ACL) id() string {
	return a.ResourceType + ":" + a.PatternType + ":" + a.ResourceName + " " + a.Principal + " " + a.Permission + " " + a.Operation + " " + a.Host
}

// ACLKind describes ACL.
var ACLKind = Kind[ACL]{Name: "ACL", Title: "ACLs", ID: ACL.id, Columns: aclColumns(func(a ACL) ACL { return a })}

// ACLChange is one planned or made change of the rules.
type ACLChange struct {
	Action string `json:"action" doc:"create, delete, or none"`
	ACL
	Done  bool   `json:"done"`
	Error string `json:"error"`
}

// ACLChangeKind describes ACLChange.
var ACLChangeKind = Kind[ACLChange]{
	Name: "ACLChange", Title: "changes",
	ID: func(c ACLChange) string { return c.id() },
	Columns: append(append([]Column[ACLChange]{{Name: "ACTION", Cell: func(c ACLChange) string { return c.Action }}},
		aclColumns(func(c ACLChange) ACL { return c.ACL })...), Column[ACLChange]{Name: "RESULT", Cell: func(c ACLChange) string { return outcome(c.Done, c.Error) }}),
}
