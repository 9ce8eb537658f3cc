//go:build peers && secure

package admin

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// TestPeerPermissions sends the requests of the table to a real Kafka as a user without any right, gives what the refusal is
// said to take, and nothing else, until nothing is refused: that must be exactly what is expected. KCTL_PEER_BOOTSTRAP is a
// listener for a super user, KCTL_PEER_SASL one for user nobody, password nobody (PLAIN), of a cluster of one broker.
func TestPeerPermissions(t *testing.T) {
	p := newPermissionPeer(t)
	for _, probe := range p.probes() {
		t.Run(probe.name, func(t *testing.T) { p.run(t, probe) })
	}
}

// permissionProbe is a request with what it takes, as "Operation resource".
type permissionProbe struct {
	name string
	key  kmsg.Key
	want []string
	ask  func(ctx context.Context) (kmsg.Response, error)
}

type permissionPeer struct {
	ctx         context.Context
	super, user *kgo.Client
	topic       string
	id          [16]byte
}

func newPermissionPeer(t *testing.T) *permissionPeer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	t.Cleanup(cancel)
	p := &permissionPeer{ctx: ctx, topic: "kctl-permission"}
	client := func(env string, more ...kgo.Opt) *kgo.Client {
		if os.Getenv(env) == "" {
			t.Fatalf("%s is not set", env)
		}
		cl, err := kgo.NewClient(append(more, kgo.SeedBrokers(os.Getenv(env)), kgo.MetadataMinAge(10*time.Millisecond))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		return cl
	}
	p.super = client("KCTL_PEER_BOOTSTRAP")
	p.user = client("KCTL_PEER_SASL", kgo.SASL(plain.Auth{User: "nobody", Pass: "nobody"}.AsMechanism()), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic(p.topic), kgo.RecordRetries(1))
	adm := kadm.NewClient(p.super)
	r, err := adm.CreateTopic(ctx, 1, 1, nil, p.topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Fatal(err)
	}
	p.id = r.ID
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: p.topic, At: 0, LeaderEpoch: -1})
	if err := adm.CommitAllOffsets(ctx, probeGroup, offsets); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.revoke(t)
		if _, err := adm.DeleteTopic(ctx, p.topic); err != nil {
			t.Error(err)
		}
		_, _ = adm.DeleteGroup(ctx, probeGroup) // the last offset was deleted with it
	})
	return p
}

// run gives rights until nothing is refused.
func (p *permissionPeer) run(t *testing.T, probe permissionProbe) {
	p.revoke(t)
	var taken []string
	wait := time.Now().Add(20 * time.Second)
	for {
		refused, err := p.refusals(probe)
		if err != nil {
			t.Fatal(err)
		}
		if len(refused) == 0 {
			break
		}
		var d *denial
		if !errors.As(needs(probe.key, refused[0]), &d) {
			t.Fatalf("%v is refused, and nothing is said to help", refused[0])
		}
		if !slices.Contains(taken, d.what()) {
			taken = append(taken, d.what())
			p.grant(t, d)
			continue
		}
		if time.Now().After(wait) {
			t.Fatalf("%v is refused although there is %s", refused[0], strings.Join(taken, ", "))
		}
		pause(p.ctx) // a broker learns of a rule a moment after the controller took it
	}
	slices.Sort(taken)
	if !slices.Equal(taken, probe.want) {
		t.Errorf("it takes %q, expected was %q", taken, probe.want)
	}
}

// refusals are those of an answer, wherever they stand in it.
func (p *permissionPeer) refusals(probe permissionProbe) ([]error, error) {
	resp, err := probe.ask(p.ctx)
	if err != nil {
		if isAuthorization(err) {
			return []error{err}, nil
		}
		return nil, err
	}
	var out []error
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Field(i); v.Type().Field(i).Name == "ErrorCode" && f.Kind() == reflect.Int16 {
					if err := kerr.ErrorForCode(int16(f.Int())); err != nil && isAuthorization(err) {
						out = append(out, err)
					}
				} else {
					walk(f)
				}
			}
		}
	}
	walk(reflect.ValueOf(resp))
	return out, nil
}

var permissionResources = map[string]struct {
	kind kmsg.ACLResourceType
	name string
}{
	"the cluster": {kmsg.ACLResourceTypeCluster, "kafka-cluster"}, "the topic": {kmsg.ACLResourceTypeTopic, "*"},
	"the group": {kmsg.ACLResourceTypeGroup, "*"}, "the transactional id": {kmsg.ACLResourceTypeTransactionalId, "*"},
}

func (p *permissionPeer) grant(t *testing.T, d *denial) {
	t.Helper()
	op, err := kmsg.ParseACLOperation(d.operation)
	if err != nil {
		t.Fatal(err)
	}
	c := kmsg.NewCreateACLsRequestCreation()
	c.ResourceType, c.ResourceName = permissionResources[d.resource].kind, permissionResources[d.resource].name
	c.ResourcePatternType, c.Principal, c.Host, c.Operation, c.PermissionType = kmsg.ACLResourcePatternTypeLiteral, "User:nobody", "*", op, kmsg.ACLPermissionTypeAllow
	req := kmsg.NewPtrCreateACLsRequest()
	req.Creations = append(req.Creations, c)
	r, err := req.RequestWith(p.ctx, p.super)
	if err == nil {
		err = kerr.ErrorForCode(r.Results[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// revoke takes every right away, and waits until describing the cluster's rules is refused again.
func (p *permissionPeer) revoke(t *testing.T) {
	t.Helper()
	req := kmsg.NewPtrDeleteACLsRequest()
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	req.Filters = append(req.Filters, f)
	if _, err := req.RequestWith(p.ctx, p.super); err != nil {
		t.Fatal(err)
	}
	none := kmsg.NewPtrDescribeACLsRequest()
	none.ResourceType, none.ResourcePatternType, none.Operation, none.PermissionType = f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType
	for ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second); ; {
		if r, err := none.RequestWith(p.ctx, p.super); err == nil && len(r.Resources) == 0 {
			cancel()
			return
		}
		if !pause(ctx) {
			cancel()
			t.Fatal("rules remain")
		}
	}
}
