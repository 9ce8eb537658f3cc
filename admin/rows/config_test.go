package rows_test

import (
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
)

// TestChangeableFieldsAreStable holds the JSON field names of configurations, quotas, users and ACLs.
func TestChangeableFieldsAreStable(t *testing.T) {
	checkFields(t, []fieldsOf{
		{rows.ConfigEntry{}, "resource name value source override readOnly sensitive type synonyms"},
		{rows.ConfigChange{}, "resource name action before after inherited inheritedFrom sensitive done error"},
		{rows.Quota{}, "entity user clientId ip key value effective"},
		{rows.QuotaChange{}, "entity key action before after done error"},
		{rows.User{}, "name mechanism iterations"},
		{rows.UserChange{}, "name mechanism action iterations done error"},
		{rows.ACL{}, "resourceType resourceName patternType principal permission operation host"},
		{rows.TopicChange{}, "topic what action before after done error"},
	})
}

// TestSecretsAreHidden: neither the old nor the new value of a secret is shown, in any form.
func TestSecretsAreHidden(t *testing.T) {
	secret := "topsecret"
	ch := plan.ConfigChange{
		Resource: model.ConfigResource{Type: model.BrokerResource, Name: "1"}, ConfigOp: plan.ConfigOp{Kind: plan.SetConfig, Key: "ssl.key.password", Value: secret},
		Before: &secret, After: &secret, Sensitive: true,
	}
	row := rows.OfConfigChange(&ch)
	if row.Before != nil || row.After != nil || strings.Contains(strings.Join(rows.ConfigChangeKind.Cells(row, true), " "), secret) {
		t.Errorf("%+v", row)
	}
}
