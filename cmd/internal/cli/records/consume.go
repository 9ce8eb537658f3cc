package records

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
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
	f                *factory.Factory
	opts             admin.ConsumeOptions
	format           string
	parts            []int32
	offset           string
	to               string
	tillEnd, headers bool
	separator        string
	write            func(w *bufio.Writer, r *admin.Record) error
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

--offset and --to take an offset (1234), start, end, start+10, end-10, @2024-05-01T10:00:00 (UTC without a zone) or
@-2h; --to is where reading ends, itself not included, and --until-end is --to end.

Format: %v value, %k key, %t topic, %p partition, %o offset, %T timestamp in milliseconds, %D timestamp as RFC 3339,
%h headers as key=value, %s and %S value length, %K key length, \n \t \r \0 \\ and %% as they are. %v{hex}, %v{base64} and
%v{json} (a JSON string) write bytes that are no text; %k likewise. JSON output is one object per line; bytes that are
no UTF-8 are base64 there, and encoding says so. kctl produce --input json reads it again.`,
		Example: `  kctl consume orders --from-beginning --max-messages 5
  kctl consume orders --partition 3 --offset end-10 --until-end --headers --key-separator :
  kctl consume orders --offset @2024-05-01T10:00:00 --to @2024-05-01T10:05:00 -o json
  kctl consume orders --group audit -f '%p/%o %k=%v\n'
  kctl consume orders --from-beginning --idle-timeout 2s -o json`,
		Args: verb.Args(1, 1, "one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[0], cmd.Flags().Changed); err != nil {
				return err
			}
			return runConsume(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.opts.FromBeginning, "from-beginning", false, "begin with the oldest record")
	fl.StringVar(&o.offset, "offset", "", "begin there in each partition: 1234, start+10, end-10, @TIME, @-2h")
	fl.StringVar(&o.to, "to", "", "end there in each partition, in the same forms")
	fl.BoolVarP(&o.tillEnd, "until-end", "e", false, "end with the records that are there now")
	fl.Int32SliceVar(&o.parts, "partition", nil, "only these partitions")
	fl.Int64VarP(&o.opts.Max, "max-messages", "n", 0, "stop after so many records (0: do not)")
	fl.DurationVar(&o.opts.Until, "idle-timeout", 0, "stop when no record came for so long (0: do not)")
	fl.StringVarP(&o.opts.Group, "group", "g", "", "consume as a member of this group")
	fl.StringVarP(&o.format, "format", "f", `%v\n`, "how a record is printed")
	fl.BoolVar(&o.headers, "headers", false, "print the headers before the record: a=1,b=2 and a tab")
	fl.StringVar(&o.separator, "key-separator", "", "print the key before the value, with this text between")
	fl.BoolVar(&o.opts.ReadCommitted, "read-committed", false, "only records of committed transactions")
	return cmd
}

func (o *consumeOptions) parse(topic string, given func(flag string) bool) (err error) {
	o.opts.Topic, o.opts.Partitions, o.opts.Offset = topic, o.parts, -1
	if err := plan.TopicName(topic); err != nil {
		return admin.NewBadInput(err)
	}
	if o.opts.From, err = o.place("offset", o.offset, given); err != nil {
		return err
	}
	if o.opts.To, err = o.place("to", o.to, given); err != nil {
		return err
	}
	switch {
	case o.tillEnd && o.opts.To != nil:
		return exit.Usagef("--until-end excludes --to")
	case o.tillEnd:
		o.opts.To = &plan.OffsetSpec{Base: plan.LogEnd}
	}
	switch {
	case o.opts.From != nil && o.opts.FromBeginning:
		return exit.Usagef("--offset excludes --from-beginning")
	case o.opts.From != nil && o.opts.Group != "":
		return exit.Usagef("--offset excludes --group: a group begins at its committed offsets")
	case o.opts.To != nil && o.opts.Group != "":
		return exit.Usagef("--to and --until-end exclude --group: its members share the partitions")
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
	return o.parseFormat(given)
}

// place reads one of --offset and --to; nil when it is not given.
func (o *consumeOptions) place(flag, value string, given func(string) bool) (*plan.OffsetSpec, error) {
	if !given(flag) {
		return nil, nil
	}
	spec, err := plan.ParseOffsetSpec(value, o.f.Now())
	if err != nil {
		return nil, exit.Usagef("--%s %s: %v", flag, value, err)
	}
	return &spec, nil
}

func (o *consumeOptions) parseFormat(given func(string) bool) (err error) {
	if shaped := o.headers || given("key-separator"); shaped {
		if given("format") {
			return exit.Usagef("--format excludes --headers and --key-separator: %%h and %%k stand for them")
		}
		o.format = ""
		if o.headers {
			o.format = `%h\t`
		}
		if given("key-separator") {
			o.format += "%k" + strings.NewReplacer("%", "%%", `\`, `\\`, "{", "%{").Replace(o.separator)
		}
		o.format += `%v\n`
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
	ctx, stop := o.f.IO.UntilReaderGone(ctx)
	defer stop()
	o.opts.Drained = func() error { return flush(w) } // a burst's last records would stay here until the next one
	_, err = c.Consume(ctx, o.opts, func(r *admin.Record) error { return gone(o.write(w, r)) })
	if ferr := flush(w); err == nil {
		err = ferr
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, errReaderGone) {
		return nil // the reader of our output has seen enough
	}
	return err
}

// errReaderGone says that nobody reads stdout any more.
var errReaderGone = errors.New("the reader of stdout is gone")

func flush(w *bufio.Writer) error { return gone(w.Flush()) }

func gone(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return errReaderGone
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
