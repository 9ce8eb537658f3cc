package admin

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// askOffice asks the broker that /controller names something that only the controller answers, and that changes and costs nothing:
// the reassignments of no partition. Its silence is told elsewhere.
func (r *factsReader) askOffice(ctx context.Context) {
	id := r.f.Snapshot.Controller.ID
	if r.f.Tree == nil || r.f.Snapshot.Controller.Quorum || !check.Live(r.f.Snapshot)[id] {
		return
	}
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{} // nil asks for all
	if ok, err := r.c.supports(ctx, req.Key()); err != nil || !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.c.brokerTimeout())
	defer cancel()
	resp, err := r.c.askBroker(ctx, id, req)
	if err != nil {
		return
	}
	if code := resp.(*kmsg.ListPartitionReassignmentsResponse).ErrorCode; code == kerr.NotController.Code {
		r.f.Office.Refuses = kerr.NotController.Message
	}
}

// confirmOffice reads /controller again when its broker denies it: who loses the office while everything is read denies it rightly.
func (r *factsReader) confirmOffice(ctx context.Context) {
	if len(r.f.Denial()) == 0 {
		return
	}
	r.f.Office.Changed = true // also when it cannot be read: then nobody knows
	rs, err := r.c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.ControllerPath}})
	if err != nil {
		r.problem(model.Problem{Object: "zookeeper, second look", Message: err.Error()})
		return
	}
	if rs[0].Err != nil {
		return
	}
	now, err := znode.DecodeController(rs[0].Data)
	was := r.f.Snapshot.Controller
	r.f.Office.Changed = err != nil || now.BrokerID != was.ID || !time.UnixMilli(rs[0].Stat.Ctime).Equal(was.Since)
	r.f.Office.Persistent = rs[0].Stat.EphemeralOwner == 0
}
