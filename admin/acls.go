package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// camel turns a constant's name, such as TRANSACTIONAL_ID, into Kafka's other spelling, TransactionalId.
func camel(constant string) string {
	var b strings.Builder
	for _, w := range strings.Split(strings.ToLower(constant), "_") {
		if w != "" {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// word is the reverse of camel for the parsers of the protocol library, which ignore case; an empty text is Any.
func word(s string) string {
	if s == "" {
		return "ANY"
	}
	return s
}

// aclWords are the numbers of a rule's words on the wire.
type aclWords struct {
	resource   kmsg.ACLResourceType
	pattern    kmsg.ACLResourcePatternType
	operation  kmsg.ACLOperation
	permission kmsg.ACLPermissionType
}

func wordsOf(a model.ACL) (w aclWords, err error) {
	var errs [4]error
	w.resource, errs[0] = kmsg.ParseACLResourceType(word(a.ResourceType))
	w.pattern, errs[1] = kmsg.ParseACLResourcePatternType(word(a.PatternType))
	w.operation, errs[2] = kmsg.ParseACLOperation(word(a.Operation))
	w.permission, errs[3] = kmsg.ParseACLPermissionType(word(a.Permission))
	return w, errors.Join(errs[:]...)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// aclErr explains a refusal. Without an authorizer there are no rules, and making one would protect nothing.
func aclErr(key kmsg.Key, code int16, message *string, doing string) error {
	err := brokerErr(key, code, message)
	if !errors.Is(err, kerr.SecurityDisabled) {
		return wrap(err, "%s", doing)
	}
	return &Error{
		Kind: Failed, Msg: doing + ": no authorizer is configured on the brokers, so there are no rules and none would be enforced",
		Hint: "Apache Kafka: authorizer.class.name=kafka.security.authorizer.AclAuthorizer (KRaft: org.apache.kafka.metadata.authorizer.StandardAuthorizer) in server.properties; kctl's own broker engine has none",
	}
}

// ACLs lists the rules that a filter selects, sorted.
func (c *Client) ACLs(ctx context.Context, f model.ACLFilter) ([]model.ACL, error) {
	if c.inTree() {
		return c.aclsInTree(ctx, f)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.need(ctx, kmsg.DescribeACLs.Int16(), "ACLs"); err != nil {
		return nil, err
	}
	w, err := wordsOf(f)
	if err != nil {
		return nil, NewBadInput(err)
	}
	resp, err := c.askAny(ctx, func() kmsg.Request {
		req := kmsg.NewPtrDescribeACLsRequest()
		req.ResourceType, req.ResourcePatternType, req.Operation, req.PermissionType = w.resource, w.pattern, w.operation, w.permission
		req.ResourceName, req.Principal, req.Host = optional(f.ResourceName), optional(f.Principal), optional(f.Host)
		return req
	})
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.DescribeACLsResponse)
	if err := aclErr(kmsg.DescribeACLs, r.ErrorCode, r.ErrorMessage, "list ACLs"); err != nil {
		return nil, err
	}
	var out []model.ACL
	for _, res := range r.Resources {
		for _, a := range res.ACLs {
			out = append(out, model.ACL{
				ResourceType: camel(res.ResourceType.String()), ResourceName: res.ResourceName, PatternType: camel(res.ResourcePatternType.String()),
				Principal: a.Principal, Host: a.Host, Operation: camel(a.Operation.String()), Permission: camel(a.PermissionType.String()),
			})
		}
	}
	plan.SortACLs(out)
	return out, nil
}

// CreateACLs makes rules and returns an error for each that failed, nil in the other places. It then reads until the
// made ones show.
func (c *Client) CreateACLs(ctx context.Context, acls []model.ACL) ([]error, error) {
	if c.Stored() {
		return c.storeACLs(ctx, acls, true)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.need(ctx, kmsg.CreateACLs.Int16(), "ACLs"); err != nil {
		return nil, err
	}
	req := kmsg.NewPtrCreateACLsRequest()
	for _, a := range acls {
		w, err := wordsOf(a)
		if err != nil {
			return nil, NewBadInput(err)
		}
		cr := kmsg.NewCreateACLsRequestCreation()
		cr.ResourceType, cr.ResourcePatternType, cr.Operation, cr.PermissionType = w.resource, w.pattern, w.operation, w.permission
		cr.ResourceName, cr.Principal, cr.Host = a.ResourceName, a.Principal, a.Host
		req.Creations = append(req.Creations, cr)
	}
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		rs := r.(*kmsg.CreateACLsResponse).Results
		return len(rs) > 0 && rs[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	results := resp.(*kmsg.CreateACLsResponse).Results
	if len(results) != len(acls) {
		return nil, &Error{Kind: Failed, Msg: fmt.Sprintf("%d rules were sent, the broker answered for %d", len(acls), len(results))}
	}
	errs := make([]error, len(acls))
	var made []model.ACL
	for i, r := range results {
		if errs[i] = aclErr(kmsg.CreateACLs, r.ErrorCode, r.ErrorMessage, "create ACL"); errs[i] == nil {
			made = append(made, acls[i])
		}
	}
	return errs, c.awaitACLs(ctx, made, true)
}

// DeleteACLs deletes exactly these rules and reads until they are gone.
func (c *Client) DeleteACLs(ctx context.Context, acls []model.ACL) ([]error, error) {
	if c.Stored() {
		return c.storeACLs(ctx, acls, false)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, a := range acls {
		w, err := wordsOf(a)
		if err != nil {
			return nil, NewBadInput(err)
		}
		df := kmsg.NewDeleteACLsRequestFilter()
		df.ResourceType, df.ResourcePatternType, df.Operation, df.PermissionType = w.resource, w.pattern, w.operation, w.permission
		df.ResourceName, df.Principal, df.Host = &a.ResourceName, &a.Principal, &a.Host
		req.Filters = append(req.Filters, df)
	}
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		rs := r.(*kmsg.DeleteACLsResponse).Results
		return len(rs) > 0 && rs[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	results := resp.(*kmsg.DeleteACLsResponse).Results
	if len(results) != len(acls) {
		return nil, &Error{Kind: Failed, Msg: fmt.Sprintf("%d rules were sent, the broker answered for %d", len(acls), len(results))}
	}
	errs := make([]error, len(acls))
	var gone []model.ACL
	for i, r := range results {
		errs[i] = aclErr(kmsg.DeleteACLs, r.ErrorCode, r.ErrorMessage, "delete ACL")
		for _, m := range r.MatchingACLs {
			if errs[i] == nil {
				errs[i] = aclErr(kmsg.DeleteACLs, m.ErrorCode, m.ErrorMessage, "delete ACL")
			}
		}
		if errs[i] == nil {
			gone = append(gone, acls[i])
		}
	}
	return errs, c.awaitACLs(ctx, gone, false)
}

func (c *Client) awaitACLs(ctx context.Context, acls []model.ACL, there bool) error {
	if len(acls) == 0 {
		return nil
	}
	return c.await(ctx, "the brokers' ACLs", func(ctx context.Context) (bool, error) {
		now, err := c.ACLs(ctx, model.ACLFilter{})
		if err != nil {
			return false, err
		}
		for _, a := range acls {
			if slices.Contains(now, a) != there {
				return false, nil
			}
		}
		return true, nil
	})
}
