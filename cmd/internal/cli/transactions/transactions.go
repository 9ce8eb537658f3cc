// Package transactions holds the verbs on transactions: those that coordinators know, those that a log holds open, and
// how one that hangs is ended. They need brokers with transactions, such as Apache Kafka 3.0 or later.
package transactions

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("transactions", "Transactions: who has one under way, which one hangs", newList(f), newDescribe(f), newFindHanging(f), newAbort(f))
}

type listOptions struct {
	f        *factory.Factory
	filter   admin.TransactionFilter
	duration string
}

func newList(f *factory.Factory) *cobra.Command {
	o := &listOptions{f: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the transactional ids of all coordinators",
		Example: `  kctl transactions list
  kctl transactions list --state ongoing --duration 1m
  kctl transactions list --producer-id 4001 -o json`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.duration != "" {
				if o.filter.OlderThan, err = plan.ParseDuration(o.duration); err != nil {
					return exit.Usagef("--duration: %v", err)
				}
			}
			return runList(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&o.filter.States, "state", nil, "only these states, such as ongoing,preparecommit")
	cmd.Flags().Int64SliceVar(&o.filter.ProducerIDs, "producer-id", nil, "only these producer ids")
	cmd.Flags().StringVar(&o.duration, "duration", "", "only transactions under way for at least so long, such as 1m or PT1M")
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("state", verb.Fixed("empty", "ongoing", "preparecommit", "prepareabort", "completecommit", "completeabort"))
	return cmd
}

func runList(ctx context.Context, o *listOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	ts, problems, err := c.Transactions(ctx, o.filter)
	if err != nil {
		return err
	}
	return verb.List(o.f, rows.TransactionKind, transactionRows(o.f, ts), problems)
}

func transactionRows(f *factory.Factory, ts []model.TransactionState) []rows.Transaction {
	now := f.Now()
	out := make([]rows.Transaction, len(ts))
	for i := range ts {
		out[i] = rows.OfTransaction(&ts[i], now)
	}
	return out
}

func newDescribe(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "describe ID...",
		Short:   "Show what transactional ids have under way",
		Example: `  kctl transactions describe payments-1 -o wide`,
		Args:    verb.Args(1, -1, "at least one transactional id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Admin(cmd.Context())
			if err != nil {
				return err
			}
			ts, err := c.DescribeTransactions(cmd.Context(), args)
			if err != nil {
				return err
			}
			var problems []model.Problem
			for i := range ts {
				if ts[i].Err != "" {
					problems = append(problems, model.Problem{Object: "transactional id " + ts[i].ID, Message: ts[i].Err})
				}
			}
			if len(problems) == len(ts) {
				return verb.NothingDone("", problems, "kctl transactions list shows the ids")
			}
			return verb.List(f, rows.TransactionKind, transactionRows(f, ts), problems)
		},
	}
}

type findOptions struct {
	f       *factory.Factory
	targets []plan.Target
	broker  int32
	longest string
}

func newFindHanging(f *factory.Factory) *cobra.Command {
	o := &findOptions{f: f}
	cmd := &cobra.Command{
		Use:   "find-hanging [TOPIC[:P,..]...]",
		Short: "Find transactions that a log holds open and that nobody will end",
		Long: `Ask the leaders for transactions that their logs hold open for longer than a transaction may last, and every coordinator
whether it knows them. One that no coordinator will end hangs: consumers with read_committed do not get past its
first record, and compaction stops there. Exit 10 when there is one.`,
		Example: `  kctl transactions find-hanging
  kctl transactions find-hanging orders --max-transaction-timeout 5m
  kctl transactions find-hanging --broker-id 2 -o json | jq -r '.items[].fix'`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.targets, err = verb.Targets(args); err != nil {
				return err
			}
			d, err := plan.ParseDuration(o.longest)
			if err != nil {
				return exit.Usagef("--max-transaction-timeout: %v", err)
			}
			return runFindHanging(cmd.Context(), o, d)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().Int32Var(&o.broker, "broker-id", -1, "only partitions that this broker leads (-1: of all brokers)")
	cmd.Flags().StringVar(&o.longest, "max-transaction-timeout", "15m", "the brokers' transaction.max.timeout.ms")
	return cmd
}

func runFindHanging(ctx context.Context, o *findOptions, longest time.Duration) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	open, problems, err := c.HangingTransactions(ctx, o.targets, cluster.BrokerID(o.broker), longest)
	if err != nil {
		return err
	}
	now := o.f.Now()
	out := make([]rows.OpenTransaction, len(open))
	for i := range open {
		out[i] = rows.OfOpenTransaction(&open[i], now)
	}
	if err := verb.List(o.f, rows.OpenTransactionKind, out, problems); err != nil || len(out) == 0 {
		return err
	}
	for _, t := range out {
		o.f.Say("to end it: %s", t.Fix)
	}
	return exit.Silent(exit.Problems)
}
