// Package dump holds the verbs that read the files of a broker's log directory without a broker.
package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin/offline"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	g := verb.NewGroup("dump", "Read log segments, indexes and checkpoints offline",
		newSegment(f), newIndex(f), newTimeIndex(f), newTxnIndex(f), newSnapshot(f), newCheckpoint(f))
	g.Long = `Read files of a broker's log directory as they lie on the disk. No broker is needed and nothing is written. With
-o json each row is one line; the last line of each file (kind DumpFile) says how much of it is good. Damage is
exit code 10: the output says where it begins and what is good behind it.`
	return g
}

// each opens the files one after the other.
func each(ctx context.Context, f *factory.Factory, files []string, one func(s *stream, name string, file *os.File, size int64) error) error {
	s, err := newStream(f)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err = open(name, func(file *os.File, size int64) error { return one(s, name, file, size) }); err != nil {
			break
		}
		if err = ctx.Err(); err != nil {
			break
		}
	}
	return s.close(err)
}

func open(name string, fn func(file *os.File, size int64) error) error {
	file, err := os.Open(name)
	if err != nil {
		return exit.Usagef("%v", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &exit.Error{Code: exit.Usage, Msg: name + " is a folder", Hint: "name its files, such as " + filepath.Join(name, "*.log")}
	}
	return fn(file, info.Size())
}

// baseOffset reads the offset that a segment's files are named after.
func baseOffset(name string) (int64, bool) {
	digits, _, _ := strings.Cut(filepath.Base(name), ".")
	digits, _, _ = strings.Cut(digits, "-") // snapshots of a KRaft log are named OFFSET-EPOCH
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n >= 0
}

func suffix(want string) func(files []string) error {
	return func(files []string) error {
		for _, name := range files {
			base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".deleted"), ".cleaned")
			if got := filepath.Ext(base); got != want {
				if verb := verbOf(name); verb != "" {
					return &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("%s is not a *%s file", name, want), Hint: "kctl dump " + verb + " reads it"}
				}
			}
		}
		return nil
	}
}

// verbOf names the verb for a file, by its name.
func verbOf(name string) string {
	verbs := map[string]string{".log": "segment", ".index": "index", ".timeindex": "timeindex", ".txnindex": "txnindex", ".snapshot": "snapshot"}
	if v := verbs[filepath.Ext(name)]; v != "" {
		return v
	}
	if _, ok := offline.CheckpointFormatOf(name); ok {
		return "checkpoint"
	}
	return ""
}

type segmentOptions struct {
	f          *factory.Factory
	printData  bool
	deep       bool
	verify     bool
	decoder    string
	fromOffset int64
}

// decoders are the names of --decoder.
var decoders = []string{"offsets", "transactions", "metadata", "share-state"}

func newSegment(f *factory.Factory) *cobra.Command {
	o := &segmentOptions{f: f}
	cmd := &cobra.Command{
		Use:   "segment FILE...",
		Short: "Show the record batches of log segments and check them",
		Long: `Show the batches of log segments (*.log), of all formats from 0.8 on, and verify their checksums. --deep opens
compressed batches and checks every record; --print-data shows the records. Damage is passed over: where a batch cannot
be read, the next good one is looked for, and what is between is reported.

--decoder shows what the records of an internal topic say: offsets (__consumer_offsets: commits, classic groups, and those of
KIP-848, share and streams groups), transactions (__transaction_state), share-state (__share_group_state) and metadata
(__cluster_metadata of KRaft, and its snapshots, OFFSET-EPOCH.checkpoint). A record of a type or version that is not known is named by its number; metadata of such are not shown, for they may hold secrets.`,
		Example: `  kctl dump segment orders-0/00000000000000000000.log
  kctl dump segment --print-data --from-offset 4711 orders-0/00000000000000000000.log
  kctl dump segment --decoder offsets __consumer_offsets-*/*.log -o json | jq 'select(.decoded.group=="billing")'
  kctl dump segment --decoder metadata __cluster_metadata-0/*.log __cluster_metadata-0/*.checkpoint
  kctl dump segment --verify --deep /var/lib/kafka/*/*.log`,
		Args: verb.Args(1, -1, "log segments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.decoder != "" && offline.Decoders()[o.decoder] == nil {
				return exit.Usagef("--decoder %q is not %s", o.decoder, strings.Join(decoders, ", "))
			}
			if err := suffix(".log")(args); err != nil {
				return err
			}
			return each(cmd.Context(), f, args, func(s *stream, name string, file *os.File, size int64) error {
				return o.segment(cmd.Context(), s, name, file, size)
			})
		},
	}
	cmd.Flags().BoolVar(&o.printData, "print-data", false, "show the records with keys, values and headers")
	cmd.Flags().BoolVar(&o.deep, "deep", false, "open compressed batches and show every record, without data")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "check only: show no batches and records")
	cmd.Flags().StringVar(&o.decoder, "decoder", "", "decode the records of an internal topic: "+strings.Join(decoders, "|"))
	cmd.Flags().Int64Var(&o.fromOffset, "from-offset", 0, "show nothing before this offset; everything is checked all the same")
	_ = cmd.RegisterFlagCompletionFunc("decoder", verb.Fixed(decoders...)) // the flag was just declared
	return cmd
}

// segment shows one file.
func (o *segmentOptions) segment(ctx context.Context, s *stream, name string, file *os.File, size int64) error {
	base := int64(-1)
	if n, ok := baseOffset(name); ok && filepath.Ext(name) == ".log" {
		base = n
	}
	r := offline.NewSegmentReader(file, size, offline.SegmentOptions{BaseOffset: base})
	records := int64(0)
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := o.batch(s, name, r, b); err != nil {
			return err
		}
		if records += int64(b.Count); b.Count < 0 {
			records = -1 << 40 // unknown stays unknown
		}
	}
	row := FileRow{File: name, Size: size, GoodBytes: r.GoodBytes(), Entries: r.Batches, Records: max(records, -1), BaseOffset: r.First, NextOffset: r.NextOffset()}
	row = row.damaged(r.Damage)
	return s.file(&row, "batches")
}

// batch shows one batch and, where asked for, its records. Its row comes first; a compressed message of the old
// formats is opened for it, since its header does not tell its first offset.
func (o *segmentOptions) batch(s *stream, name string, r *offline.SegmentReader, b *offline.Batch) error {
	deep := o.deep || o.printData || o.decoder != ""
	if !b.CRCValid() {
		return o.show(s, name, b)
	}
	if !deep && b.Count >= 0 && !b.Control {
		return o.show(s, name, b)
	}
	shown := false
	show := func() error {
		if shown {
			return nil
		}
		shown = true
		return o.show(s, name, b)
	}
	if b.Count >= 0 {
		if err := show(); err != nil {
			return err
		}
	}
	err := r.Records(b, o.printData || o.decoder != "" || b.Control, func(rec *offline.Record) error {
		if err := show(); err != nil {
			return err
		}
		return o.record(s, name, b, rec, deep)
	})
	if errors.Is(err, offline.ErrRecords) {
		r.Damage = append(r.Damage, offline.Damage{Position: b.Position, Length: b.Size, Offset: b.BaseOffset, Cause: err.Error()})
		err = nil
	}
	if err != nil {
		return err
	}
	return show()
}

func (o *segmentOptions) show(s *stream, name string, b *offline.Batch) error {
	if o.verify || b.LastOffset < o.fromOffset {
		return nil
	}
	return put(s, BatchKind, batchRow(name, b))
}

// record shows a record; the markers of a control batch are shown in any case.
func (o *segmentOptions) record(s *stream, name string, b *offline.Batch, rec *offline.Record, deep bool) error {
	if o.verify || rec.Offset < o.fromOffset || !deep && !b.Control {
		return nil
	}
	row := recordRow(name, rec, o.printData)
	switch {
	case b.Control:
		d := offline.DecodeControl(rec.Key, rec.Value)
		row.Decoded = &d
	case o.decoder != "":
		d := offline.Decoders()[o.decoder](rec.Key, rec.Value)
		row.Decoded = &d
	}
	return put(s, RecordKind, row)
}
