package transactions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type abortOptions struct {
	f        *factory.Factory
	id       string
	topic    string
	target   plan.Target
	start    int64
	producer int64
	epoch    int16
	coord    int32
	force    bool
	change   factory.ChangeFlags
}

func newAbort(f *factory.Factory) *cobra.Command {
	o := &abortOptions{f: f}
	cmd := &cobra.Command{
		Use:   "abort (ID | --topic T:P (--start-offset N | --producer-id N [--producer-epoch N --coordinator-epoch N]))",
		Short: "End a transaction: through its coordinator, or in one partition's log",
		Long: `With a transactional id the coordinator aborts what it has under way and shuts out the producer, as if a new instance of
it had started.

With --topic T:P an abort marker is written into that partition's log past every coordinator: right only for a transaction
that hangs (find-hanging names it). The transaction is found by the offset of its first record, or by its producer id. When
a coordinator still has it under way the command refuses: abort the id instead. --producer-id with both epochs writes the
marker as given, for brokers that cannot describe their producers. An aborted transaction does not come back.`,
		Example: `  kctl transactions abort payments-1
  kctl transactions abort --topic orders:3 --start-offset 1234 --yes
  kctl transactions abort --topic orders:3 --producer-id 4001 --dry-run`,
		Args: verb.Args(0, 1, "one transactional id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := map[string]bool{}
			for _, name := range []string{"start-offset", "producer-id", "producer-epoch", "coordinator-epoch"} {
				given[name] = cmd.Flags().Changed(name)
			}
			if err := o.parse(args, given); err != nil {
				return err
			}
			if o.id != "" {
				return runFence(cmd.Context(), o)
			}
			return runAbort(cmd.Context(), o)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.topic, "topic", "", "the partition, as TOPIC:P")
	fl.Int64Var(&o.start, "start-offset", -1, "offset of the transaction's first record")
	fl.Int64Var(&o.producer, "producer-id", -1, "producer id of the transaction")
	fl.Int16Var(&o.epoch, "producer-epoch", -1, "producer epoch of the transaction")
	fl.Int32Var(&o.coord, "coordinator-epoch", -1, "epoch of the coordinator that ended the producer's last transaction")
	fl.BoolVar(&o.force, "force", false, "write the marker although a coordinator has the transaction under way")
	factory.AddChangeFlags(fl, &o.change)
	_ = cmd.RegisterFlagCompletionFunc("topic", verb.CompleteTopics(f)) // the only error is a flag that does not exist
	return cmd
}

func (o *abortOptions) parse(args []string, given map[string]bool) error {
	if (len(args) == 1) == (o.topic != "") {
		return exit.Usagef("name the transaction in one way: a transactional id, or --topic T:P with --start-offset or --producer-id")
	}
	if len(args) == 1 {
		for name, yes := range given {
			if yes {
				return exit.Usagef("--%s goes with --topic, not with a transactional id", name)
			}
		}
		o.id = args[0]
		return o.f.Writable()
	}
	ts, err := verb.Targets([]string{o.topic})
	if err != nil {
		return err
	}
	if o.target = ts[0]; len(o.target.Partitions) != 1 {
		return exit.Usagef("--topic %q names not exactly one partition: the form is TOPIC:P", o.topic)
	}
	switch {
	case given["start-offset"] == given["producer-id"]:
		return exit.Usagef("name the transaction by --start-offset or by --producer-id")
	case given["producer-epoch"] != given["coordinator-epoch"]:
		return exit.Usagef("--producer-epoch and --coordinator-epoch go together")
	case given["producer-epoch"] && !given["producer-id"]:
		return exit.Usagef("--producer-epoch needs --producer-id")
	case given["start-offset"] && o.start < 0, given["producer-id"] && o.producer < 0, given["producer-epoch"] && o.epoch < 0:
		return exit.Usagef("offsets, producer ids and epochs are not below 0")
	}
	return o.f.Writable()
}

// runFence ends a transaction through its coordinator.
func runFence(ctx context.Context, o *abortOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	ts, err := c.DescribeTransactions(ctx, []string{o.id})
	if err != nil {
		return err
	}
	t := ts[0]
	if t.Err != "" {
		return &exit.Error{Code: exit.Failed, Msg: "transactional id " + o.id + ": " + t.Err, Hint: "kctl transactions list shows the ids"}
	}
	row := transactionRows(o.f, ts)
	if o.change.DryRun {
		o.f.Say("dry run: the coordinator would abort what is under way and shut out producer %d of epoch %d", t.ProducerID, t.ProducerEpoch)
		return verb.List(o.f, rows.TransactionKind, row, nil)
	}
	if !o.f.Machine() {
		o.f.Say("will abort what is under way, and shut out its producer:")
		p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
		if err := output.List(p, rows.TransactionKind, row, nil); err != nil {
			return err
		}
	}
	if err := o.f.Confirm(o.change, fmt.Sprintf("abort the transaction of %s?", o.id)); err != nil {
		return err
	}
	_, epoch, err := c.FenceTransaction(ctx, o.id)
	ch := factory.Change{
		Cluster: c.ClusterID(), Command: "transactions abort", Object: "transactional id " + o.id,
		Before: fmt.Sprintf("%s, producer %d epoch %d", t.State, t.ProducerID, t.ProducerEpoch), After: fmt.Sprintf("producer epoch %d", epoch), Result: "done",
	}
	if err != nil {
		ch.After, ch.Result = "", err.Error()
	}
	o.f.Record(ch)
	if err != nil {
		return err
	}
	o.f.Say("ended what %s had under way; its producer is shut out (epoch %d)", o.id, epoch)
	if !o.f.Machine() {
		return nil
	}
	if ts, err = c.DescribeTransactions(ctx, []string{o.id}); err != nil {
		return err
	}
	return verb.List(o.f, rows.TransactionKind, transactionRows(o.f, ts), nil)
}

// runAbort writes an abort marker into one partition.
func runAbort(ctx context.Context, o *abortOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	t, err := o.find(ctx, c)
	if err != nil {
		return err
	}
	now := o.f.Now()
	row := []rows.OpenTransaction{rows.OfOpenTransaction(t, now)}
	if o.change.DryRun {
		o.f.Say("dry run: an abort marker would be written into %s:%d", t.Topic, t.Partition)
		return verb.List(o.f, rows.OpenTransactionKind, row, nil)
	}
	if !o.f.Machine() {
		o.f.Say("will write an abort marker into %s:%d for:", t.Topic, t.Partition)
		p := &output.Printer{Out: o.f.IO.Err, Format: output.Wide, TTY: o.f.IO.ErrTTY}
		if err := output.List(p, rows.OpenTransactionKind, row, nil); err != nil {
			return err
		}
	}
	if err := o.f.Confirm(o.change, "abort it? Its records are never delivered to consumers with read_committed"); err != nil {
		return err
	}
	err = c.WriteAbort(ctx, admin.AbortMarker{
		Topic: t.Topic, Partition: t.Partition, ProducerID: t.ProducerID, ProducerEpoch: int16(t.ProducerEpoch), CoordinatorEpoch: t.CoordinatorEpoch,
	})
	ch := factory.Change{
		Cluster: c.ClusterID(), Command: "transactions abort", Object: fmt.Sprintf("%s:%d", t.Topic, t.Partition),
		Before: fmt.Sprintf("open at offset %d, producer %d epoch %d", t.StartOffset, t.ProducerID, t.ProducerEpoch), After: "aborted", Result: "done",
	}
	if err != nil {
		ch.Result = err.Error()
	}
	o.f.Record(ch)
	if err != nil {
		return err
	}
	o.f.Say("aborted the transaction of producer %d in %s:%d", t.ProducerID, t.Topic, t.Partition)
	if !o.f.Machine() {
		return nil
	}
	return verb.List(o.f, rows.OpenTransactionKind, row, nil)
}

// find looks the transaction up at the leader, and whether a coordinator has it under way. With both epochs given the
// brokers are not asked for their producers.
func (o *abortOptions) find(ctx context.Context, c *admin.Client) (*model.OpenTransaction, error) {
	if o.epoch >= 0 {
		return &model.OpenTransaction{
			Topic: o.target.Topic, Partition: o.target.Partitions[0], Broker: -1, ProducerID: o.producer, ProducerEpoch: int32(o.epoch),
			CoordinatorEpoch: o.coord, StartOffset: -1,
		}, nil
	}
	open, problems, err := c.OpenTransactions(ctx, []plan.Target{o.target}, -1)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, verb.NothingDone("", problems, "")
	}
	var found *model.OpenTransaction
	for i := range open {
		if open[i].StartOffset == o.start || o.producer >= 0 && open[i].ProducerID == o.producer {
			found = &open[i]
		}
	}
	if found == nil {
		e := &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("%s has no such transaction open", o.topic), Hint: "none is open there"}
		if len(open) > 0 {
			e.Hint = fmt.Sprintf("open is: producer %d from offset %d (%d in all)", open[0].ProducerID, open[0].StartOffset, len(open))
		}
		return nil, e
	}
	if o.force {
		return found, nil
	}
	states, problems, err := c.Transactions(ctx, admin.TransactionFilter{ProducerIDs: []int64{found.ProducerID}})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &exit.Error{Code: exit.Failed, Msg: problems[0].Object + ": " + problems[0].Message + ": a coordinator that does not answer may have the transaction under way",
			Hint: "--force writes the marker all the same"}
	}
	if len(plan.Hanging([]model.OpenTransaction{*found}, states)) == 0 {
		return nil, &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("nothing was changed: the coordinator has it under way for %s (%s)", states[0].ID, states[0].State),
			Hint: "kctl transactions abort " + states[0].ID + " has the coordinator abort it; --force writes the marker all the same"}
	}
	found.TransactionalID = ""
	if len(states) > 0 {
		found.TransactionalID = states[0].ID
	}
	return found, nil
}
