# The one door to everything: CI calls these targets and nothing else.
SHELL := /bin/bash
.DELETE_ON_ERROR:

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null)
STAMP   := kctl/cmd/internal/version
LDFLAGS := -s -w -X $(STAMP).Version=$(VERSION) -X $(STAMP).Commit=$(COMMIT) -X $(STAMP).Date=$(DATE)

# Where downloaded jars, other projects' clients and results of `make peers` and `make bench` go.
WORK  ?= $(CURDIR)/.work
# Scripts that run Apache Kafka and other projects' test suites; see docs/testing.md.
PEERS ?= $(abspath ../shared/peers)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.15.1

SEEDS    ?= 200
EVENTS   ?= 20000
FUZZTIME ?= 5s
ROUNDS   ?= 20

.PHONY: help build demo test lint race sim fuzz crash faults scale bench peers docs release-check clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## bin/kbroker and bin/kctl, static and version-stamped
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kbroker ./cmd/kctl

demo: build ## three brokers, 100,000 records, a killed leader, nothing lost
	go run ./cmd/demo -bin bin

test: ## unit, script and acceptance tests
	go test ./...
	go test -count=1 ./broker/invariant/archtest

lint: ## gofmt, go vet (all build tags), staticcheck
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l) && test -z "$$bad" || { echo "not gofmt-ed:" $$bad; exit 1; }
	go vet ./...
	go vet -tags 'peers proc' ./...
	go run $(STATICCHECK) ./...

# One goroutine each, by design: the race detector has nothing to see there.
ALONE := broker/(replica|replica/logexec|controller|group|sim|record|invariant/archtest)|admin/(model|plan|check|rows)|zkutil/(cluster|zkop|znode)|zkutil/zkserver/(jute|ztree)

race: ## the packages with goroutines under the race detector
	go test -race -timeout 15m $$(go list ./... | grep -vE '^kctl/($(ALONE))$$')

sim: ## SEEDS seeds of EVENTS events of the simulated cluster
	go test -count=1 -timeout 30m ./broker/sim -run 'TestSeeds$$' -seeds $(SEEDS) -events $(EVENTS)

fuzz: ## every fuzz target for FUZZTIME each
	.ci/fuzz $(FUZZTIME)

crash: build ## ROUNDS rounds of kill -9 under load
	go test -count=1 -timeout 40m -tags proc ./cmd/internal/proctest -run RoundsEmbedded -v -args -bin $(CURDIR)/bin -rounds $(ROUNDS)

faults: build ## processes under attack: garbage, dead ZooKeeper, suspended brokers, lost replicas, bad starts
	go test -count=1 -timeout 20m -tags proc ./cmd/internal/proctest -skip 'Rounds|Scale' -v -args -bin $(CURDIR)/bin

scale: build ## 10,000 partitions RF 3 in one kbroker dev: start, idle CPU, kctl
	go test -count=1 -timeout 15m -tags proc ./cmd/internal/proctest -run Scale -v -args -bin $(CURDIR)/bin

peers: build ## real ZooKeeper, Apache Kafka and other projects' clients
	WORK='$(WORK)' PEERS='$(PEERS)' .ci/peers

bench: build ## side by side with Apache Kafka; writes docs/benchmarks.md and docs/benchmarks-kctl.md
	WORK='$(WORK)' PEERS='$(PEERS)' .ci/bench
	WORK='$(WORK)' PEERS='$(PEERS)' .ci/bench-kctl

docs: build ## man pages and the command reference, generated from the commands
	rm -rf docs/reference && mkdir -p docs/reference
	bin/kctl docs markdown docs/reference

release-check: ## a snapshot release: archives, deb, rpm
	go run $(GORELEASER) release --snapshot --clean --skip=publish

clean:
	rm -rf bin dist dist-extra
