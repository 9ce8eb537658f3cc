package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// describeZK prints a write; a multi without its fence, which every one has.
func describeZK(req zkop.Request) string {
	switch req.Kind {
	case zkop.Create:
		kind := "create "
		if req.Mode == zkop.Ephemeral {
			kind = "create-ephemeral "
		}
		return strings.TrimRight(kind+req.Path+" "+string(req.Data), " ")
	case zkop.Set:
		return fmt.Sprintf("set %s v%d %s", req.Path, req.Version, req.Data)
	case zkop.Delete:
		return "delete " + req.Path
	case zkop.Multi:
		ops, prefix := req.Ops, "multi"
		if len(ops) > 0 && ops[0].Kind == zkop.Check && ops[0].Path == znode.ControllerEpochPath {
			ops, prefix = ops[1:], "fenced"
		}
		if len(ops) > 12 {
			return fmt.Sprintf("%s[%d ops, first %s]", prefix, len(ops), describeZK(ops[0]))
		}
		var parts []string
		for _, op := range ops {
			parts = append(parts, describeZK(op))
		}
		return prefix + "[" + strings.Join(parts, "; ") + "]"
	}
	return fmt.Sprintf("kind %d %s", req.Kind, req.Path)
}

func describeRequest(req kmsg.Request) string {
	var b strings.Builder
	switch req := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		b.WriteString("LeaderAndISR")
		if req.Type == requestFull {
			b.WriteString(" full")
		}
		n := 0
		for _, t := range req.TopicStates {
			for _, p := range t.PartitionStates {
				if n++; n > 12 {
					continue
				}
				fmt.Fprintf(&b, " %s-%d(leader=%d epoch=%d isr=%v v%d", t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion)
				if len(p.AddingReplicas)+len(p.RemovingReplicas) > 0 {
					fmt.Fprintf(&b, " adding=%v removing=%v", p.AddingReplicas, p.RemovingReplicas)
				}
				if p.IsNew {
					b.WriteString(" new")
				}
				if p.LeaderRecoveryState == 1 {
					b.WriteString(" recovering")
				}
				b.WriteString(")")
			}
		}
		if n > 12 {
			fmt.Fprintf(&b, " and %d more", n-12)
		}
	case *kmsg.UpdateMetadataRequest:
		var ids []int32
		for _, lb := range req.LiveBrokers {
			ids = append(ids, lb.ID)
		}
		fmt.Fprintf(&b, "UpdateMetadata brokers=%v", ids)
		for _, t := range req.TopicStates {
			if len(t.PartitionStates) > 12 {
				fmt.Fprintf(&b, " %s(%d partitions)", t.Topic, len(t.PartitionStates))
				continue
			}
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, " %s-%d(leader=%d epoch=%d isr=%v", t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR)
				if len(p.OfflineReplicas) > 0 {
					fmt.Fprintf(&b, " offline=%v", p.OfflineReplicas)
				}
				b.WriteString(")")
			}
		}
	case *kmsg.StopReplicaRequest:
		b.WriteString("StopReplica")
		for _, t := range req.Topics {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, " %s-%d(epoch=%d delete=%v)", t.Topic, p.Partition, p.LeaderEpoch, p.Delete)
			}
		}
	}
	return b.String()
}

func describeResponse(resp kmsg.Response) string {
	var b strings.Builder
	switch resp := resp.(type) {
	case *kmsg.ControlledShutdownResponse:
		fmt.Fprintf(&b, "ControlledShutdown %s remaining", errText(resp.ErrorCode))
		for _, p := range resp.PartitionsRemaining {
			fmt.Fprintf(&b, " %s-%d", p.Topic, p.Partition)
		}
	case *kmsg.AlterPartitionResponse:
		fmt.Fprintf(&b, "AlterPartition %s", errText(resp.ErrorCode))
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %d(%s leader=%d epoch=%d isr=%v v%d)", p.Partition, errText(p.ErrorCode), p.LeaderID, p.LeaderEpoch, p.ISR, p.PartitionEpoch)
			}
		}
	case *kmsg.AlterPartitionAssignmentsResponse:
		fmt.Fprintf(&b, "AlterPartitionReassignments %s", errText(resp.ErrorCode))
		for _, t := range resp.Topics {
			if len(t.Partitions) > 12 {
				good := len(slices.DeleteFunc(slices.Clone(t.Partitions), func(p kmsg.AlterPartitionAssignmentsResponseTopicPartition) bool { return p.ErrorCode != 0 }))
				fmt.Fprintf(&b, " %s(%d of %d partitions OK)", t.Topic, good, len(t.Partitions))
				continue
			}
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d(%s)", t.Topic, p.Partition, errText(p.ErrorCode))
			}
		}
	case *kmsg.ListPartitionReassignmentsResponse:
		fmt.Fprintf(&b, "ListPartitionReassignments %s", errText(resp.ErrorCode))
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d(replicas=%v adding=%v removing=%v)", t.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas)
			}
		}
	case *kmsg.ElectLeadersResponse:
		fmt.Fprintf(&b, "ElectLeaders %s", errText(resp.ErrorCode))
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d(%s%s)", t.Topic, p.Partition, errText(p.ErrorCode), describeChanged(p))
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// describeChanged is what the answer to a change of leaderAndISR says beyond the code.
func describeChanged(p kmsg.ElectLeadersResponseTopicPartition) string {
	out := ""
	p.UnknownTags.Each(func(_ uint32, data []byte) {
		c, err := cluster.DecodeLeaderChanged(data)
		out = fmt.Sprintf(" now leader=%d epoch=%d isr=%v v%d %v", c.Leader, c.LeaderEpoch, c.ISR, c.ZKVersion, err)
	})
	if out != "" && p.ErrorMessage != nil {
		out = ": " + *p.ErrorMessage + out
	}
	return strings.TrimSuffix(out, " <nil>")
}

func errText(code int16) string {
	if code == 0 {
		return "OK"
	}
	return codeName(code)
}

func describeAlert(a znode.LeadershipAlert) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s leader=%d epoch=%d reason=%s", a.Partition, a.Decision.Leader, a.Decision.LeaderEpoch, a.Reason)
	for _, w := range a.Waiting {
		fmt.Fprintf(&b, " waiting=%d attempts=%d", w.Broker, w.Attempts)
		if w.Error != "" {
			fmt.Fprintf(&b, " error=%q", w.Error)
		}
	}
	return b.String()
}

func describeNote(n Note) string {
	s := string(n.Kind)
	if n.Partition != (cluster.TopicPartition{}) {
		if n.Partition.Partition < 0 {
			s += " " + n.Partition.Topic
		} else {
			s += " " + n.Partition.String()
		}
	}
	if n.Broker != 0 {
		s += fmt.Sprintf(" broker=%d", n.Broker)
	}
	if n.Count != 0 {
		s += fmt.Sprintf(" count=%d", n.Count)
	}
	if n.Reason != "" {
		s += ": " + n.Reason
	}
	return s
}
