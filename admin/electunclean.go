package admin

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// UncleanCandidates asks every replica of the planned partitions for the end of its own log and the leader
// epoch of its last batch: what an unclean election keeps is the log of the one it takes. Dead brokers are
// candidates with their error. The order is that of the assignment.
func (c *Client) UncleanCandidates(ctx context.Context, s *model.Snapshot, moves []plan.Election) []model.Candidate {
	ctx, cancel := c.within(ctx)
	defer cancel()
	wanted := map[cluster.TopicPartition]*plan.Election{}
	for i := range moves {
		wanted[moves[i].TP()] = &moves[i]
	}
	live := check.Live(s)
	var rows []model.Candidate
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			e := wanted[p.TP()]
			if e == nil {
				continue
			}
			for _, id := range p.Replicas {
				rows = append(rows, model.Candidate{
					Topic: p.Topic, Partition: p.Partition, Broker: id, Live: live[id], InSync: p.InSync(id), Chosen: id == e.To,
					LeaderEpoch: p.LeaderEpoch, LogEndOffset: -1, LastEpoch: cluster.NoLeaderEpoch,
				})
			}
		}
	}
	c.askCandidates(ctx, rows)
	plan.RateCandidates(rows)
	return rows
}

func (c *Client) askCandidates(ctx context.Context, rows []model.Candidate) {
	by := map[cluster.BrokerID][]int{}
	for i := range rows {
		if rows[i].Live {
			by[rows[i].Broker] = append(by[rows[i].Broker], i)
		} else {
			rows[i].Err = notRegistered
		}
	}
	errs := c.eachBroker(ctx, keys(by), func(ctx context.Context, id cluster.BrokerID) error {
		parts := make([]*model.Partition, len(by[id]))
		for k, i := range by[id] {
			parts[k] = &model.Partition{Topic: rows[i].Topic, Partition: rows[i].Partition}
		}
		got, err := c.listOffsets(ctx, id, asDebugger, parts, anyEpoch)
		if err != nil {
			return err
		}
		for k, i := range by[id] {
			a, ok := got[parts[k].TP()]
			switch {
			case !ok:
				rows[i].Err = "the broker did not answer for this partition"
			case a.code != 0:
				rows[i].Err = short(brokerErr(kmsg.ListOffsets, a.code, nil))
			default:
				rows[i].LogEndOffset = a.offset
			}
		}
		return c.lastEpochs(ctx, id, rows, by[id])
	})
	for _, id := range keys(by) {
		for _, i := range by[id] {
			if errs[id] != nil {
				rows[i].Err = short(errs[id])
			}
		}
	}
}

// lastEpochs reads the epoch of the last batch of each log, as far as the replica shows it: records above its own
// high watermark stay hidden, and their epoch not known. ListOffsets only tells in which epoch a replica acts.
func (c *Client) lastEpochs(ctx context.Context, id cluster.BrokerID, rows []model.Candidate, mine []int) error {
	at := map[cluster.TopicPartition]int{}
	for chunk := range slices.Chunk(mine, fetchChunk) {
		req := newPeek()
		req.MaxBytes = 64 << 20
		for _, i := range chunk {
			if rows[i].LogEndOffset > 0 {
				at[cluster.TopicPartition{Topic: rows[i].Topic, Partition: rows[i].Partition}] = i
				addPeek(req, rows[i].Topic, rows[i].Partition, rows[i].LogEndOffset-1)
				// One batch at most lies there, and brokers leave out a batch that does not fit.
				t := &req.Topics[len(req.Topics)-1]
				t.Partitions[len(t.Partitions)-1].PartitionMaxBytes = 1 << 20
			}
		}
		if len(req.Topics) == 0 {
			continue
		}
		resp, err := c.askBroker(ctx, id, req)
		if err != nil {
			return err
		}
		for _, t := range resp.(*kmsg.FetchResponse).Topics {
			for _, p := range t.Partitions {
				i, ok := at[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}]
				// Batch header v2: the leader epoch is at 12, the magic byte at 16.
				if b := p.RecordBatches; ok && p.ErrorCode == 0 && len(b) > 16 && b[16] == 2 {
					rows[i].LastEpoch = cluster.LeaderEpoch(int32(binary.BigEndian.Uint32(b[12:])))
				}
			}
		}
	}
	return nil
}
