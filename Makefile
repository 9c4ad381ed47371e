# Everything that a newcomer, or a machine, runs. It needs Go, git and make;
# what else is missing, "make test" installs on Debian. "make" prints this list.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The library is built as its users get it; only nested modules use go.work.
library := GOWORK=off go
nested   = $(patsubst ./%/go.mod,%,$(sort $(shell find . -mindepth 2 -name go.mod -not -path '*/testdata/*')))

FUZZ      ?= ^Fuzz
FUZZTIME  ?= 60s
FUZZFLAGS ?= -fuzzminimizetime=1000x
fuzzed     = $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Fuzz' .)))

.DEFAULT_GOAL := help
.PHONY: help demo test test-all nested sdks fuzz exact outage feedback chaos soak mutants bench check deps needs node

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

demo: ## a fleet under a shared limit, in a terminal (REDIS=host:port uses that server)
	@$(library) run ./examples/demo $(if $(REDIS),-redis $(REDIS))

test: needs ## test the library, one package at a time: many tests measure real time
	$(library) test -race -shuffle=on -p 1 -timeout 5m ./...

test-all: test nested sdks ## test the library, every nested module, and the SDKs of docs/sdks.md

# The go command now and then takes the end of FUZZTIME for a failure, "context
# deadline exceeded"; a finding names the input that failed.
fuzz: needs ## feed every decoder hostile bytes, one target after the other, FUZZTIME=60s each
	@failed=; for dir in $(fuzzed); do \
	cd $(CURDIR)/$$dir; if test -f go.mod; then unset GOWORK; else export GOWORK=off; fi; \
	list=$$(go test -list '$(FUZZ)' .) || { echo "$$list"; exit 1; }; \
	for target in $$(echo "$$list" | grep '^Fuzz'); do \
		echo "$$dir$$target"; \
		if out=$$(go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $(FUZZFLAGS) . 2>&1); then echo "$$out" | grep execs: | tail -n 1; \
		else case "$$out" in \
			*"Failing input"*|*"seed corpus"*) echo "$$out"; failed="$$failed $$target";; \
			*"context deadline exceeded"*) echo "$$out" | grep execs: | tail -n 1;; \
			*) echo "$$out"; failed="$$failed $$target";; esac; fi; \
	done; done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

exact: needs ## prove on Redis: never more than N in any window, nearly all of it used
	@$(library) run ./internal/cmd/exact

outage: needs ## take Redis away under load: four processes, judged by the vendor's counts
	@$(library) run ./internal/cmd/outage

feedback: ## two fleets with one key and no common store: what the vendor's headers save, beside a pair that ignores them
	@$(library) run ./internal/cmd/feedback

soak: needs ## let everything go wrong at once (FOR=10m SEED=1), see docs/soak.md
	@$(library) run ./internal/cmd/soak -for $(or $(FOR),10m) -seed $(or $(SEED),0)

chaos: needs ## break Redis in every known way under load: a table, judged by bounds (RUN=pattern picks rows)
	@$(library) run ./internal/cmd/chaos $(if $(RUN),-run '$(RUN)')

mutants: needs ## break the code in listed ways, one at a time: the tests go red for each (ONLY=pattern picks)
	@$(library) run ./internal/cmd/mutants $(if $(ONLY),-only '$(ONLY)')

bench: needs ## measure what a decision costs beside its peers
	@cd bench && go run .

check: deps ## formatting, vet, go fix, staticcheck, known vulnerabilities, arrows
	@out=$$(gofmt -l .); test -z "$$out" || { echo "gofmt -w these:"; echo "$$out"; exit 1; }
	$(library) vet ./...
	@out=$$($(library) fix -diff ./... 2>&1); test -z "$$out" || { echo "go fix would change:"; echo "$$out"; exit 1; }
	$(library) run $(STATICCHECK) ./...
	@out=$$($(library) run $(GOVULNCHECK) ./... 2>&1) && echo "$$out" || case "$$out" in \
	*"fetching vulnerabilities"*) echo "govulncheck: skipped, vuln.go.dev cannot be reached";; \
	*) echo "$$out"; exit 1;; esac

deps: ## imports point down, and the library needs four modules only
	$(library) run ./internal/check

# What follows is used by the targets above.

nested: needs node
	@set -e; for m in $(nested); do echo "$$m:"; (cd $$m && go vet ./... && go test -shuffle=on -timeout 5m ./...); done

sdks: node # runs every SDK against a loopback vendor and compares docs/sdks.md
	@go run ./internal/cmd/sdktable -check

node: # Node.js, for the client of examples/npm-openai
	@command -v npm >/dev/null || { test "$$(id -u)" = 0 && root= || root="sudo -n"; export DEBIAN_FRONTEND=noninteractive; \
	{ $$root apt-get update -qq && $$root apt-get install -qq -y --no-install-recommends nodejs npm; } >/dev/null 2>&1 || \
	{ echo "install node and npm first, for instance: apt-get install nodejs npm"; exit 1; }; }

needs: # a redis-server, and a C compiler for the race detector
	@command -v redis-server >/dev/null && command -v gcc >/dev/null || { \
	test "$$(id -u)" = 0 && root= || root="sudo -n"; export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
	{ $$root apt-get update -qq && $$root apt-get install -qq -y --no-install-recommends redis-server gcc libc6-dev; } >/dev/null 2>&1 || \
	{ echo "install redis-server and gcc first, for instance: apt-get install redis-server gcc libc6-dev"; exit 1; }; }
