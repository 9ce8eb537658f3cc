// Package records holds produce and consume.
package records

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type produceOptions struct {
	f            *factory.Factory
	opts         admin.ProduceOptions
	acks         string
	separator    string
	input        string // lines or json
	key, null    string
	headerArgs   []string
	headers      []admin.Header
	headersFirst bool
	fixed        map[string]bool // which of --key and --null are given
	yes          factory.ChangeFlags
}

// NewProduce returns the verb.
func NewProduce(f *factory.Factory) *cobra.Command {
	o := &produceOptions{f: f}
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write the lines of stdin as records",
		Long: `Write each line of stdin as one record, without its line end. With --key-separator the part before the first
separator is the key; a line without it has no key. With --headers a line begins with headers and a tab: a=1,b=2.
With --null TEXT a key or value of that text is null; a record with a null value is a tombstone.

--input json reads the objects of kctl consume -o json: key, value, headers, encoding and timestamp. Exit 0 means that
every record was acknowledged.`,
		Example: `  seq 1 1000 | kctl produce orders
  kctl produce orders --key-separator : --acks all --compression zstd < orders.txt
  echo NULL | kctl produce orders --key customer-7 --null NULL --header source=repair
  kctl consume orders -e --from-beginning -o json | kctl produce orders-copy --input json`,
		Args: verb.Args(1, 1, "one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.fixed = map[string]bool{"key": cmd.Flags().Changed("key"), "null": cmd.Flags().Changed("null")}
			if err := o.parse(args[0]); err != nil {
				return err
			}
			return runProduce(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	fl := cmd.Flags()
	fl.StringVar(&o.separator, "key-separator", "", "text between key and value")
	fl.StringVarP(&o.key, "key", "k", "", "the key of every record")
	fl.StringArrayVarP(&o.headerArgs, "header", "H", nil, "a header of every record, key=value; repeatable")
	fl.BoolVar(&o.headersFirst, "headers", false, "a line begins with headers and a tab: a=1,b=2")
	fl.StringVar(&o.null, "null", "", "text that stands for a null key or value")
	fl.StringVar(&o.input, "input", "lines", "lines, or json as kctl consume -o json prints it")
	fl.StringVar(&o.acks, "acks", "all", "who must have a record before it counts: all, 1, 0")
	fl.StringVar(&o.opts.Compression, "compression", "none", "none, gzip, snappy, lz4 or zstd")
	fl.Int32Var(&o.opts.Partition, "partition", -1, "write to this partition (-1: by key)")
	factory.AddChangeFlags(fl, &o.yes)
	for flag, words := range map[string][]string{"acks": {"all", "1", "0"}, "compression": {"none", "gzip", "snappy", "lz4", "zstd"}, "input": {"lines", "json"}} {
		// The only error is a flag that does not exist.
		_ = cmd.RegisterFlagCompletionFunc(flag, verb.Fixed(words...))
	}
	return cmd
}

func (o *produceOptions) parse(topic string) error {
	o.opts.Topic = topic
	if err := plan.TopicName(topic); err != nil {
		return admin.NewBadInput(err)
	}
	switch o.acks {
	case "all", "-1":
		o.opts.Acks = -1
	case "1":
		o.opts.Acks = 1
	case "0":
		o.opts.Acks = 0
	default:
		return exit.Usagef("--acks %q is not all, 1 or 0", o.acks)
	}
	if err := o.opts.Check(); err != nil {
		return err
	}
	if err := o.parseInput(); err != nil {
		return err
	}
	return o.f.Writable()
}

func (o *produceOptions) parseInput() error {
	switch {
	case o.input != "lines" && o.input != "json":
		return exit.Usagef("--input %q is not lines or json", o.input)
	case o.input == "json" && (o.separator != "" || o.headersFirst || o.fixed["key"] || o.fixed["null"]):
		return exit.Usagef("--input json excludes --key-separator, --headers, --key and --null: the objects say it")
	case o.fixed["key"] && o.separator != "":
		return exit.Usagef("--key excludes --key-separator")
	}
	o.opts.OwnTimestamps = o.input == "json"
	for _, h := range o.headerArgs {
		k, v, ok := strings.Cut(h, "=")
		if !ok || k == "" {
			return exit.Usagef("--header %q is not key=value", h)
		}
		o.headers = append(o.headers, admin.Header{Key: k, Value: []byte(v)})
	}
	return nil
}

// lineMax bounds one line, so that a file without line ends cannot fill the memory.
const lineMax = 16 << 20

func runProduce(ctx context.Context, o *produceOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	if o.yes.DryRun {
		if _, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: []string{o.opts.Topic}, NoZooKeeper: true}); err != nil {
			return err
		}
		o.f.Say("dry run: topic %s exists; nothing was written", o.opts.Topic)
		return nil
	}
	p, err := c.NewProducer(ctx, o.opts)
	if err != nil {
		return err
	}
	started := time.Now()
	readErr := o.feed(p)
	n, err := p.Close(ctx)
	if err == nil {
		err = readErr
	}
	if err != nil {
		if n > 0 {
			return &exit.Error{Code: exit.Partial, Msg: fmt.Sprintf("%d records acknowledged, then: %v", n, err), Hint: exit.HintOf(err)}
		}
		return err
	}
	o.f.Say("%d records to %s in %s", n, o.opts.Topic, time.Since(started).Round(time.Millisecond))
	return nil
}

// feed reads lines until the end of the input or the first failure.
func (o *produceOptions) feed(p *admin.Producer) error {
	r := bufio.NewReaderSize(o.f.IO.In, 256<<10)
	n := 0
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		n++
		rec, perr := o.record(line)
		if perr != nil {
			return exit.Usagef("line %d: %v", n, perr)
		}
		if perr := p.ProduceRecord(rec); perr != nil {
			return perr
		}
		if err != nil {
			return nil // the last line had no line end
		}
	}
}

// readLine returns one line without its line end, in memory of its own.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > lineMax {
			return nil, fmt.Errorf("a line is longer than %d bytes", lineMax)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return line, err
		}
		line = line[:len(line)-1]
		return bytes.TrimSuffix(line, []byte("\r")), nil
	}
}

func (o *produceOptions) split(line []byte) (key, value []byte) {
	if o.separator == "" {
		return nil, line
	}
	k, v, ok := bytes.Cut(line, []byte(o.separator))
	if !ok {
		return nil, line
	}
	return k, v
}
