package records

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type consumeOptions struct {
	f      *factory.Factory
	opts   admin.ConsumeOptions
	format string
	parts  []int32
	write  func(w *bufio.Writer, r *admin.Record) error
}

// NewConsume returns the verb.
func NewConsume(f *factory.Factory) *cobra.Command {
	o := &consumeOptions{f: f}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print records, from now on or from the beginning",
		Long: `Print the records of a topic until interrupted, --max-messages or --idle-timeout. Without --from-beginning or
--offset it begins with the records that come next; with --group at the group's committed offsets, and what was
printed is committed.

Format: %v value, %k key, %t topic, %p partition, %o offset, %T timestamp in milliseconds, %D timestamp as RFC 3339,
%h headers as key=value, %s value length, \n \t \\ and %% as they are. JSON output is one object per line.`,
		Example: `  kctl consume orders --from-beginning --max-messages 5
  kctl consume orders --group audit -f '%p/%o %k=%v\n'
  kctl consume orders --from-beginning --idle-timeout 2s -o json`,
		Args: verb.Args(1, 1, "one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[0], cmd.Flags().Changed("offset")); err != nil {
				return err
			}
			return runConsume(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.opts.FromBeginning, "from-beginning", false, "begin with the oldest record")
	fl.Int64Var(&o.opts.Offset, "offset", -1, "begin with this offset in each partition")
	fl.Int32SliceVar(&o.parts, "partition", nil, "only these partitions")
	fl.Int64VarP(&o.opts.Max, "max-messages", "n", 0, "stop after so many records (0: do not)")
	fl.DurationVar(&o.opts.Until, "idle-timeout", 0, "stop when no record came for so long (0: do not)")
	fl.StringVarP(&o.opts.Group, "group", "g", "", "consume as a member of this group")
	fl.StringVarP(&o.format, "format", "f", `%v\n`, "how a record is printed")
	fl.BoolVar(&o.opts.ReadCommitted, "read-committed", false, "only records of committed transactions")
	return cmd
}

func (o *consumeOptions) parse(topic string, offsetGiven bool) (err error) {
	o.opts.Topic, o.opts.Partitions = topic, o.parts
	if err := plan.TopicName(topic); err != nil {
		return admin.NewBadInput(err)
	}
	switch {
	case offsetGiven && o.opts.Offset < 0:
		return exit.Usagef("--offset %d is below 0", o.opts.Offset)
	case offsetGiven && o.opts.FromBeginning:
		return exit.Usagef("--offset excludes --from-beginning")
	case offsetGiven && o.opts.Group != "":
		return exit.Usagef("--offset excludes --group: a group begins at its committed offsets")
	case len(o.parts) > 0 && o.opts.Group != "":
		return exit.Usagef("--partition excludes --group: a group divides the partitions itself")
	case o.opts.Max < 0:
		return exit.Usagef("--max-messages %d is below 0", o.opts.Max)
	case o.opts.Until < 0:
		return exit.Usagef("--idle-timeout %s is below zero", o.opts.Until)
	}
	for _, p := range o.parts {
		if p < 0 {
			return exit.Usagef("--partition %d is below 0", p)
		}
	}
	if o.write, err = compileFormat(o.format); err != nil {
		return exit.Usagef("--format %q: %v", o.format, err)
	}
	s, err := o.f.Settings()
	if err == nil && s.Output.Machine() {
		o.write = writeJSON
	}
	return err
}

func runConsume(ctx context.Context, o *consumeOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(o.f.IO.Out, 64<<10)
	live := o.f.IO.OutTTY
	flushed := time.Now()
	_, err = c.Consume(ctx, o.opts, func(r *admin.Record) error {
		if err := o.write(w, r); err != nil {
			return err
		}
		if live || time.Since(flushed) > 100*time.Millisecond {
			flushed = time.Now()
			return w.Flush()
		}
		return nil
	})
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Document is a record for programs, one object per line.
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Offset     int64    `json:"offset"`
	Timestamp  int64    `json:"timestamp" doc:"milliseconds since the Unix epoch"`
	Key        *string  `json:"key"`
	Value      *string  `json:"value"`
	Encoding   string   `json:"encoding" doc:"of key, value and header values: utf-8, or base64 when one of them is not text"`
	Headers    []Header `json:"headers"`
}

// Header is one header of a record.
type Header struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
}

func writeJSON(w *bufio.Writer, r *admin.Record) error {
	d := Document{
		APIVersion: rows.APIVersion, Kind: "Record", Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		Timestamp: r.Timestamp.UnixMilli(), Encoding: "utf-8", Headers: []Header{},
	}
	valid := utf8.Valid(r.Key) && utf8.Valid(r.Value)
	for _, h := range r.Headers {
		valid = valid && utf8.Valid(h.Value)
	}
	enc := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		if !valid {
			s = base64.StdEncoding.EncodeToString(b)
		}
		return &s
	}
	if !valid {
		d.Encoding = "base64"
	}
	d.Key, d.Value = enc(r.Key), enc(r.Value)
	for _, h := range r.Headers {
		d.Headers = append(d.Headers, Header{h.Key, enc(h.Value)})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(d)
}
