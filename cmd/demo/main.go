// Command demo is what `make demo` runs: three brokers as three processes, a replicated topic, 100,000
// records, the leader killed with SIGKILL in the middle, and the proof that nothing acknowledged was lost.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var d demo
	flag.StringVar(&d.bin, "bin", "bin", "folder of the kbroker and kctl binaries")
	flag.IntVar(&d.records, "records", 100_000, "records to produce")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		cancel()
		os.Exit(1)
	}
}
