# Two commands do all the set-up on a machine with Go 1.26 and git:
#   make demo    build inspan and watch it mend a small project, offline
#   make test    run everything, race detector included

GOFLAGS := -trimpath
TAGS    := grpcnotrace
export CGO_ENABLED ?= 0

.PHONY: build demo test test-long test-hostile test-engine bench-engine lint safety fuzz explore oracle harbor bench proof recursion teams test262 bench-serve e2e-local fuzz-api managed update pictures notice release image image-cluster

build:
	go build $(GOFLAGS) -tags $(TAGS) -ldflags '-s -w' -o inspan ./cmd/inspan

demo: build
	./inspan demo

# What a person runs before a change, some ten minutes on two cores. What this machine can't run is said first
# and last.
test:
	@./scripts/missing
	./scripts/test
	@./scripts/missing

# The rest: sweeps over every byte of a log, hundreds of kills, all packages with the race detector, PostgreSQL.
test-long:
	./scripts/test-long

# The tests on a machine that is busy with other things, with one processor and with two.
test-hostile:
	./scripts/test-hostile

# The store in PostgreSQL and the supervisor on Temporal, against real servers: PostgreSQL from the
# system, and one of the S3 protocol and one of Temporal that are built from the Go module proxy. Not
# part of test.
test-engine:
	./scripts/test-engine

# Steps a second and processor time a step over PostgreSQL and Temporal, the same on a rival, and
# INSPAN_SESSIONS sessions at the pace of real ones (docs/SCALE.md).
bench-engine:
	./scripts/test-engine bench

lint:
	go run mvdan.cc/gofumpt@v0.12.0 -l . | tee /dev/stderr | test -z "$$(cat)"
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...
	for m in postgres temporal temporal/devserver rivals; do \
		(cd engine/$$m && go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run -c $(CURDIR)/.golangci.yml ./...) || exit 1; done

# False allows and needless asks over the corpora, escapes, orphans.
safety:
	./scripts/safety

# Then made-up command lines, which a throwaway box runs, hold the proofs of commands against bash.
fuzz:
	./scripts/fuzz 20s
	CGO_ENABLED=0 go test -count=1 -timeout 60m -run TestProverAgainstBash -v ./internal/safety/shell -lines 200000

# Everything that can happen to a session in any two places of the protocol between
# its drivers and its log; make test plays a part of it.
explore:
	go test -count=1 -timeout 30m -run TestExplorer -v ./internal/kernel/session -explore 2

# Tasks, habits, lazy policies, and what the router makes of models of known strength: what fails there
# fails by the harness. make test does a part of it.
oracle:
	go test -count=1 -timeout 30m -v -run "Oracle|Habits|Lazy|Routing|SmallWindow" ./internal/lab/eval

# Run task folders through Harbor with our adapter. Needs Python 3.12 or later with harbor and pytest, which
# PYTHON names.
PYTHON ?= python3
harbor:
	./scripts/harbor "$(PYTHON)"

# Hold the adapters against a real Ollama and a real llama.cpp server with a real
# small model; what is needed is installed into the user's cache. Not part of test.
e2e-local:
	./scripts/e2e-local

# Hold a real server against the description of its API, with Schemathesis from PyPI. Not part of test.
fuzz-api:
	./scripts/fuzz-api

# Hold the door for Managed Agents against the newest SDKs for Python and TypeScript, and print how each method
# was answered. Then pin them: pythonVersion in test/oracle, and test/peers.
managed:
	cd test/oracle && INSPAN_SDK=newest go test -count=1 -v -run 'TestStepsBy' .

# Parts for a second each, then the whole; every figure of the whole is the
# median of five rounds.
bench:
	go test -run '^$$' -bench . ./test/journeys ./internal/kernel/loop ./internal/kernel/session ./internal/safety/policy ./internal/safety/shell ./internal/safety/places ./internal/safety/secret ./internal/safety/guard ./internal/kernel/compact ./internal/world/snapshot ./internal/world/sandbox/... ./internal/view/markdown ./internal/world/web ./internal/front/tui ./internal/extend/skill ./internal/extend/memory ./internal/extend/recall ./internal/view/cost ./internal/install/running ./internal/extend/mcp ./internal/extend/oauth ./internal/delegate/script ./llm/...
	go test -run '^$$' -bench . -skip LongRun -benchtime 5x -timeout 20m ./internal/front/command
	go test -run '^$$' -bench LongRun -benchtime 1x -timeout 20m ./internal/front/command
	cd test/oracle && go test -run '^$$' -bench Prompt -benchtime 1x .

# Hold what comparisons and learning promise, with as many simulations as are promised. Takes minutes.
proof:
	INSPAN_PROOF=1 go test -count 1 -timeout 20m -run 'Equal|Promised|Loops|Canaries' -v ./internal/lab/eval

# Simulate programs over texts of up to 10 million tokens, and write the table of docs/CORPUS.md. Takes half an hour.
recursion:
	go test -count 1 -timeout 3h -run TestTables -v ./internal/lab/recursion -update

# Measure teams of 1 to 50 simulated members on one repository, and kill some fifty times. Writes the table of
# docs/SUBAGENTS.md. Takes ten minutes.
teams:
	go test -count 1 -timeout 1h -run 'TestTable|TestKilledTeams' -v ./internal/lab/teams -update

# Run the tests of JavaScript itself in the engine of scripts, from a copy of tc39/test262 as its tests
# want it: make test262 SUITE=/path/to/test262 (at commit 5c8206929d81). Takes minutes.
test262:
	INSPAN_TEST262=$(SUITE) go test -count 1 -timeout 30m -run Test262 -v ./internal/delegate/script

# Measure the server: a thousand tasks at once, two thousand idle streams, two hundred reads a second.
bench-serve:
	go test -run '^$$' -bench . -benchtime 1x -timeout 20m ./internal/service/server

# Write everything anew that is made from the code.
update:
	go test ./test/policy -run 'TestAPI|TestEventsDocument' -update
	go test ./test/journeys -run Corpus -update
	go test ./internal/view/transcript -run Corpus -update
	go test ./internal/install/config -run Schema -update
	go test ./internal/front/tui -run TestFrames -update
	go test ./workflow -run TestTableOfFields -update

# Take the pictures of the documents anew. Needs Chromium, curl and git.
pictures:
	./scripts/pictures

# Write NOTICE and third_party anew: the licences of all that is linked into the command or embedded in it.
notice:
	go test ./test/policy -run 'TestNotice$$' -update

# Archives, packages, bills of materials and checksums for all systems, from the commit, into dist/.
release:
	./scripts/release

# The container image, from the binary of make release.
image:
	./scripts/image

# The same with the drivers for PostgreSQL and Temporal, built from the source.
image-cluster:
	./scripts/image cluster
