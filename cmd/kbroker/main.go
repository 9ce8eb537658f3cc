// Command kbroker runs a broker, a development cluster or the embedded ZooKeeper.
package main

import (
	"os"

	"kctl/cmd/internal/kbrokercmd"
)

func main() { os.Exit(kbrokercmd.Main(os.Args[1:], os.Stdout, os.Stderr)) }
