package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/peer"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// twinTimeout bounds the question whether a registered broker of our id is alive.
const twinTimeout = 3 * time.Second

// refuseTwin looks whether a broker with this id is registered, at another address than ours, and answers there
// as that broker. It runs before any data is touched.
func (b *Broker) refuseTwin(ctx context.Context) error {
	data, _, err := zkutil.Any(b.zk).Get(ctx, znode.BrokerPath(b.id))
	if errors.Is(err, zkop.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	reg, err := znode.DecodeRegistration(b.id, data)
	if err != nil {
		return nil // nobody to ask; registering decides
	}
	for _, e := range reg.Endpoints {
		if e.Protocol != "PLAINTEXT" || b.isOwnEndpoint(e) {
			continue
		}
		addr := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
		if answersAs(ctx, addr, b.id) {
			return fmt.Errorf("%w: broker %d answers at %s", ErrTwin, b.id, addr)
		}
	}
	return nil
}

// answersAs reports whether the broker at addr has the id: only the broker itself describes its configuration.
func answersAs(ctx context.Context, addr string, id cluster.BrokerID) bool {
	ctx, cancel := context.WithTimeout(ctx, twinTimeout)
	defer cancel()
	conn, err := peer.Dial(ctx, nil, addr, fmt.Sprintf("broker-%d-twin-check", id), twinTimeout)
	if err != nil {
		return false
	}
	defer conn.Close()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 1
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id))
	r.ConfigNames = []string{"broker.id"}
	req.Resources = append(req.Resources, r)
	resp, err := conn.Do(ctx, req)
	if err != nil {
		return false
	}
	res := resp.(*kmsg.DescribeConfigsResponse).Resources
	return len(res) == 1 && res[0].ErrorCode == 0
}
