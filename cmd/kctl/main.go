// Command kctl is the admin tool for Kafka-protocol clusters coordinated through ZooKeeper.
package main

import (
	"os"

	"kctl/cmd/internal/cli"
)

func main() { os.Exit(cli.Main()) }
