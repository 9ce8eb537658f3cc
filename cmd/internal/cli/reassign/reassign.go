// Package reassign holds the verbs of reassignment: a plan in Kafka's JSON is generated, executed in batches by a run
// that can be interrupted and resumed at any point, looked at, verified, cancelled and rolled back.
package reassign

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan/reassign"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("reassign", "Move replicas between brokers, with Kafka's plan files",
		newGenerate(f), newExecute(f), newStatus(f), newVerify(f), newCancel(f), newRollback(f))
}

// readPlan reads a plan file.
func readPlan(path string) ([]reassign.Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("%v", err)
	}
	entries, err := reassign.Parse(data)
	if err != nil {
		return nil, exit.Usagef("%s: %v", path, err)
	}
	return entries, nil
}

// topicsOf lists the topics of a plan.
func topicsOf(entries []reassign.Entry) []string {
	var out []string
	seen := map[string]bool{}
	for i := range entries {
		if t := entries[i].Topic; !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// parseIDs reads broker ids: 1,2,3.
func parseIDs(flag string, values []string) ([]cluster.BrokerID, error) {
	var out []cluster.BrokerID
	for _, v := range values {
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
		if err != nil || n < 0 {
			return nil, exit.Usagef("--%s: %q is not a broker id", flag, v)
		}
		if !slices.Contains(out, cluster.BrokerID(n)) {
			out = append(out, cluster.BrokerID(n))
		}
	}
	return out, nil
}

// checkVia reads --via.
func checkVia(via string) error {
	if via != admin.ViaAuto && via != admin.ViaAPI && via != admin.ViaZnode {
		return exit.Usagef("--via %q is none of auto, api and znode", via)
	}
	return nil
}

const viaUsage = "how it is asked for: api (Kafka 2.4 and later), znode (/admin/reassign_partitions, with -z), or auto"

func sizeFlag(flag, value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	n, err := reassign.ParseSize(value)
	if err != nil {
		return 0, exit.Usagef("--%s: %v", flag, err)
	}
	return n, nil
}

// logDirs leaves out a list that says any for all.
func logDirs(dirs []string) []string {
	if !slices.ContainsFunc(dirs, func(d string) bool { return d != reassign.AnyDir }) {
		return []string{}
	}
	return dirs
}

func stepRow(s *reassign.RunStep) rows.ReassignmentStep {
	r := rows.ReassignmentStep{
		Topic: s.Topic, Partition: s.Partition, From: cluster.IDsToInt32(s.From), To: cluster.IDsToInt32(s.Replicas),
		LogDirs: logDirs(s.LogDirs), State: string(reassign.Waiting), Bytes: s.Bytes, Error: s.Error,
	}
	switch {
	case s.Done:
		r.State = string(reassign.Done)
	case s.Error != "":
		r.State = "failed"
	case s.Sent:
		r.State = string(reassign.Running)
	}
	return r
}

// progress prints how far a run is: a bar on a terminal, lines elsewhere.
type progress struct {
	f    *factory.Factory
	last time.Time
	done int
	open bool // a bar is on the line
}

// everyLine is the time between lines that tell nothing but bytes.
const everyLine = 10 * time.Second

func (p *progress) show(r admin.ReassignProgress) {
	if p.f.Machine() {
		return
	}
	now := p.f.Now()
	if !p.f.IO.ErrTTY && r.Done == p.done && now.Sub(p.last) < everyLine {
		return
	}
	p.done, p.last = r.Done, now
	if p.f.IO.ErrTTY {
		p.open = true
		fmt.Fprintf(p.f.IO.Err, "\r%s\x1b[K", barLine(r, output.Columns(p.f.IO.Err)))
		return
	}
	p.f.Say("%s", strings.Join(progressParts(r), gap))
}

const gap = "  "

// progressParts are the figures of a run, in the order of their weight.
func progressParts(r admin.ReassignProgress) []string {
	eta := "?"
	if r.ETAKnown {
		eta = r.ETA.String()
	}
	return []string{
		fmt.Sprintf("%d%%", r.Copied.Percent()), reassign.Size(r.Copied.Done) + " of " + reassign.Size(r.Copied.Total),
		reassign.Size(int64(r.Rate)) + "/s", "ETA " + eta, fmt.Sprintf("batch %d of %d", r.Batch, r.Batches), fmt.Sprintf("%d of %d partitions", r.Done, r.Steps),
	}
}

// barLine is the bar with its figures in less than columns (0: as wide as it likes): a line that the terminal wraps could not be
// drawn over. The bar gives way first, then the last figures.
func barLine(r admin.ReassignProgress, columns int) string {
	parts := progressParts(r)
	text := strings.Join(parts, gap)
	if columns == 0 {
		return reassign.Bar(r.Copied, barWidth) + " " + text
	}
	if width := min(columns-1-len(text)-len("[] "), barWidth); width >= barWidth/3 {
		return reassign.Bar(r.Copied, width) + " " + text
	}
	for len(parts) > 1 && len(text) >= columns {
		parts = parts[:len(parts)-1]
		text = strings.Join(parts, gap)
	}
	return text
}

const barWidth = 24

// end leaves the line of the bar.
func (p *progress) end() {
	if p.open {
		fmt.Fprintln(p.f.IO.Err)
		p.open = false
	}
}

// warn says something beside the bar.
func (p *progress) warn(text string) {
	p.end()
	p.f.Say("warning: %s", text)
}
