package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// need refuses when the brokers do not serve an API key; what names the feature.
func (c *Client) need(ctx context.Context, key int16, what string) error {
	ok, err := c.supports(ctx, key)
	if err != nil || ok {
		return err
	}
	return &Error{
		Kind: Failed, Msg: fmt.Sprintf("this cluster has no %s: its brokers do not serve %s (API key %d)", what, kmsg.NameForKey(key), key),
		Hint: "Apache Kafka has it; kctl's own broker engine has not",
	}
}

// The parts of an entity as the protocol names them.
const (
	quotaUser   = "user"
	quotaClient = "client-id"
	quotaIP     = "ip"
)

// Quotas reads all quotas of the cluster, sorted by entity and key.
func (c *Client) Quotas(ctx context.Context) ([]model.Quota, error) {
	if c.inTree() {
		return c.quotasInTree(ctx)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.need(ctx, kmsg.DescribeClientQuotas.Int16(), "client quotas"); err != nil {
		return nil, err
	}
	resp, err := c.askAny(ctx, func() kmsg.Request { return kmsg.NewPtrDescribeClientQuotasRequest() })
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.DescribeClientQuotasResponse)
	if err := brokerErr(kmsg.DescribeClientQuotas, r.ErrorCode, r.ErrorMessage); err != nil {
		return nil, wrap(err, "read quotas")
	}
	var out []model.Quota
	for _, entry := range r.Entries {
		var e model.QuotaEntity
		for _, part := range entry.Entity {
			name := model.QuotaDefault
			if part.Name != nil {
				name = *part.Name
			}
			switch part.Type {
			case quotaUser:
				e.User = name
			case quotaClient:
				e.ClientID = name
			case quotaIP:
				e.IP = name
			}
		}
		for _, v := range entry.Values {
			out = append(out, model.Quota{Entity: e, Key: v.Key, Value: v.Value})
		}
	}
	slices.SortFunc(out, func(a, b model.Quota) int {
		return cmp.Or(cmp.Compare(a.Entity.User, b.Entity.User), cmp.Compare(a.Entity.ClientID, b.Entity.ClientID), cmp.Compare(a.Entity.IP, b.Entity.IP), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// AlterQuotas changes limits of one entity, all or none of them, or has the cluster check them only. After a write it
// reads until they show, within the timeout.
func (c *Client) AlterQuotas(ctx context.Context, e model.QuotaEntity, changes []plan.QuotaChange, validateOnly bool) error {
	if c.Stored() {
		return c.storeQuotas(ctx, e, changes, validateOnly)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.need(ctx, kmsg.AlterClientQuotas.Int16(), "client quotas"); err != nil {
		return err
	}
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.ValidateOnly = validateOnly
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for _, part := range [][2]string{{quotaUser, e.User}, {quotaClient, e.ClientID}, {quotaIP, e.IP}} {
		if part[1] == "" {
			continue
		}
		p := kmsg.NewAlterClientQuotasRequestEntryEntity()
		if p.Type = part[0]; part[1] != model.QuotaDefault {
			p.Name = kmsg.StringPtr(part[1])
		}
		entry.Entity = append(entry.Entity, p)
	}
	for _, ch := range changes {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		if op.Key, op.Remove = ch.Key, ch.After == nil; ch.After != nil {
			op.Value = *ch.After
		}
		entry.Ops = append(entry.Ops, op)
	}
	req.Entries = append(req.Entries, entry)
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		es := r.(*kmsg.AlterClientQuotasResponse).Entries
		return len(es) > 0 && es[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return err
	}
	for _, r := range resp.(*kmsg.AlterClientQuotasResponse).Entries {
		if err := brokerErr(kmsg.AlterClientQuotas, r.ErrorCode, r.ErrorMessage); err != nil {
			return wrap(err, "change the quotas of %s", e)
		}
	}
	if validateOnly {
		return nil
	}
	return c.await(ctx, fmt.Sprintf("the quotas of %s", e), func(ctx context.Context) (bool, error) {
		now, err := c.Quotas(ctx)
		return err == nil && quotasShow(now, changes), err
	})
}

func quotasShow(now []model.Quota, changes []plan.QuotaChange) bool {
	for _, ch := range changes {
		i := slices.IndexFunc(now, func(q model.Quota) bool { return q.Entity == ch.Entity && q.Key == ch.Key })
		if (i >= 0) != (ch.After != nil) || i >= 0 && now[i].Value != *ch.After {
			return false
		}
	}
	return true
}
