package dump

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin/offline"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// indexOptions are those of index and timeindex.
type indexOptions struct {
	f      *factory.Factory
	log    string
	noLog  bool
	verify bool
}

func (o *indexOptions) command(use, short, ext string, one func(s *stream, name string, file *os.File, size, base int64, log *offline.SegmentReader) (FileRow, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " FILE...",
		Short: short,
		Long: `Show the entries and compare them with the log segment beside the file (or --log), as a reader would use them.
Preallocated space at the end of an active index is not damage.`,
		Example: "  kctl dump " + use + " orders-0/00000000000000000000" + ext + "\n  kctl dump " + use + " --verify /var/lib/kafka/*/*" + ext,
		Args:    verb.Args(1, -1, "index files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := suffix(ext)(args); err != nil {
				return err
			}
			if o.log != "" && (len(args) > 1 || o.noLog) {
				return exit.Usagef("--log is for one index file, and not with --no-log")
			}
			return each(cmd.Context(), o.f, args, func(s *stream, name string, file *os.File, size int64) error {
				return o.one(cmd.Context(), s, name, ext, file, size, one)
			})
		},
	}
	cmd.Flags().StringVar(&o.log, "log", "", "the log segment to compare with (default: the one beside the index)")
	cmd.Flags().BoolVar(&o.noLog, "no-log", false, "do not compare with the log segment")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "check only: show no entries")
	return cmd
}

func (o *indexOptions) one(ctx context.Context, s *stream, name, ext string, file *os.File, size int64, one func(*stream, string, *os.File, int64, int64, *offline.SegmentReader) (FileRow, error)) error {
	base, ok := baseOffset(name)
	if !ok {
		return &exit.Error{Code: exit.Usage, Msg: name + " is not named after a base offset", Hint: "offsets in an index are relative to the one in its name, such as 00000000000000000000" + ext}
	}
	run := func(log *offline.SegmentReader) error {
		row, err := one(s, name, file, size, base, log)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.file(&row, "entries")
	}
	if o.noLog {
		return run(nil)
	}
	beside := o.log
	if beside == "" {
		beside = strings.Replace(name, ext, ".log", 1)
		if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
			o.f.Say("%s: no segment beside it; its entries are not compared", name)
			return run(nil)
		}
	}
	return open(beside, func(log *os.File, logSize int64) error {
		return run(offline.NewSegmentReader(log, logSize, offline.SegmentOptions{BaseOffset: base, NoCRC: true}))
	})
}

func newIndex(f *factory.Factory) *cobra.Command {
	o := &indexOptions{f: f}
	return o.command("index", "Show offset indexes and compare them with their segments", ".index",
		func(s *stream, name string, file *os.File, size, base int64, log *offline.SegmentReader) (FileRow, error) {
			report, err := offline.OffsetIndex(file, size, base, log, func(e *offline.IndexEntry) error {
				if o.verify {
					return nil
				}
				return put(s, IndexKind, IndexRow{File: name, Offset: e.Offset, Position: e.Position, Problem: e.Problem})
			})
			if err != nil {
				return FileRow{}, err
			}
			return fileRow(name, report), nil
		})
}

func newTimeIndex(f *factory.Factory) *cobra.Command {
	o := &indexOptions{f: f}
	return o.command("timeindex", "Show time indexes and compare them with their segments", ".timeindex",
		func(s *stream, name string, file *os.File, size, base int64, log *offline.SegmentReader) (FileRow, error) {
			report, err := offline.TimeIndex(file, size, base, log, func(e *offline.IndexEntry) error {
				if o.verify {
					return nil
				}
				return put(s, TimeIndexKind, TimeIndexRow{File: name, Timestamp: e.Timestamp, Offset: e.Offset, Problem: e.Problem})
			})
			if err != nil {
				return FileRow{}, err
			}
			return fileRow(name, report), nil
		})
}

func newTxnIndex(f *factory.Factory) *cobra.Command {
	return simple(f, "txnindex", ".txnindex", "Show the aborted transactions of transaction indexes",
		func(s *stream, name string, file *os.File, size int64) (*offline.IndexReport, error) {
			return offline.TxnIndex(file, size, func(t *offline.AbortedTxn) error {
				return put(s, AbortedKind, AbortedRow{File: name, ProducerID: t.ProducerID, FirstOffset: t.FirstOffset, LastOffset: t.LastOffset, LastStableOffset: t.LastStableOffset, Problem: t.Problem})
			})
		})
}

func newSnapshot(f *factory.Factory) *cobra.Command {
	return simple(f, "snapshot", ".snapshot", "Show the producers of producer snapshots",
		func(s *stream, name string, file *os.File, size int64) (*offline.IndexReport, error) {
			return offline.ProducerSnapshot(file, size, func(p *offline.ProducerState) error {
				return put(s, ProducerKind, ProducerRow{
					File: name, ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch, LastSequence: p.LastSequence, LastOffset: p.LastOffset,
					OffsetDelta: p.OffsetDelta, Timestamp: p.Timestamp, CoordinatorEpoch: p.CoordinatorEpoch, TxnFirstOffset: p.TxnFirstOffset,
				})
			})
		})
}

// simple is a verb without flags over files of entries.
func simple(f *factory.Factory, use, ext, short string, read func(*stream, string, *os.File, int64) (*offline.IndexReport, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " FILE...", Short: short, Example: "  kctl dump " + use + " orders-0/00000000000000004711" + ext,
		Args: verb.Args(1, -1, "files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := suffix(ext)(args); err != nil {
				return err
			}
			return each(cmd.Context(), f, args, func(s *stream, name string, file *os.File, size int64) error {
				report, err := read(s, name, file, size)
				if err != nil {
					return err
				}
				row := fileRow(name, report)
				return s.file(&row, "entries")
			})
		},
	}
}

func newCheckpoint(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint FILE...",
		Short: "Show checkpoints, meta.properties and partition.metadata",
		Long: `Show the small files of a log directory: recovery-point-offset-checkpoint, replication-offset-checkpoint,
log-start-offset-checkpoint, cleaner-offset-checkpoint, leader-epoch-checkpoint, meta.properties, partition.metadata,
.kafka_cleanshutdown and quorum-state. What a file holds is told by its name.`,
		Example: `  kctl dump checkpoint /var/lib/kafka/replication-offset-checkpoint
  kctl dump checkpoint /var/lib/kafka/orders-0/leader-epoch-checkpoint -o json`,
		Args: verb.Args(1, -1, "files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if _, ok := offline.CheckpointFormatOf(name); !ok {
					e := &exit.Error{Code: exit.Usage, Msg: name + " is not a checkpoint by its name", Hint: "kctl dump checkpoint --help lists the names"}
					if v := verbOf(name); v != "" {
						e.Hint = "kctl dump " + v + " reads it"
					}
					return e
				}
			}
			return each(cmd.Context(), f, args, func(s *stream, name string, file *os.File, size int64) error {
				format, _ := offline.CheckpointFormatOf(name)
				report, err := offline.ReadCheckpoint(file, size, format, func(c *offline.Checkpoint) error {
					return put(s, CheckpointKind, checkpointRow(name, format, c))
				})
				if err != nil {
					return err
				}
				row := fileRow(name, report)
				return s.file(&row, "entries")
			})
		},
	}
}
