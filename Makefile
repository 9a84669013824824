PYTHON ?= python3
BIN := .venv/bin

# Without bytecode, each of the many processes would compile the packages again: half a second for boto3 alone.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check check-js conformance clients clients-smoke mosquitto clocks browser screenshots rie sam package container wheel stress deploy-local bench bench-smoke setup generate clean

setup:
	@$(PYTHON) infra/prepare.py

run: setup
	@exec $(BIN)/kho serve

test: setup
	@$(BIN)/pytest -n 3 --dist worksteal

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.wording
	$(BIN)/cfn-lint template.yaml infra/deploy/observability.yaml infra/deploy/logs.yaml
	$(BIN)/kho generate --check
	@$(MAKE) --no-print-directory check-js

# Format, lint, types and unit tests of the console's JavaScript, by tools of its package-lock.json, fetched into .venv.
check-js: setup
	@$(BIN)/python -m tests.suites.javascript

# The public MCP conformance suite and Inspector, from npm, against the MCP endpoint.
conformance: setup
	@$(BIN)/python -m tests.suites.conformance

# Real MCP clients with a model that plays a plan; writes the tables of docs/clients.md.
clients: setup
	@$(BIN)/python -m tests.suites.clients

# The clients that need less than two minutes.
clients-smoke: setup
	@$(BIN)/python -m tests.suites.clients --smoke

# Each function under Lambda's own runtime and its emulator, with its own layers, on the local stores.
rie: setup
	@$(BIN)/python -m tests.suites.rie

# SAM's own transform, validation and build of the template; the command line is fetched into .venv.
sam: setup
	@$(BIN)/python -m tests.suites.sam

# Compares Debian's mosquitto with the embedded broker; if it is not installed, it is fetched into .venv.
mosquitto: setup
	@$(BIN)/python -m tests.suites.mosquitto

# Servers whose clock is days wrong, by Debian's libfaketime, fetched into .venv; writes the table of docs/reliability.md.
clocks: setup
	@$(BIN)/python -m tests.suites.clocks

# The console in Debian's Chromium, with Playwright and axe-core; what is missing is fetched into .venv.
browser: setup
	@$(BIN)/python -m tests.suites.browser

# Builds the wheel, and uses it in clean environments outside the checkout.
package: setup
	@$(BIN)/python -m tests.suites.package

# Runs the Dockerfile's steps in a root of debootstrap; needs root, not Docker.
container: setup
	@$(BIN)/python -m tests.suites.container

# Builds the wheel in dist/.
wheel: setup
	@$(BIN)/python -m hatchling build -t wheel -d dist

# Pictures of the console's pages for docs/console/.
screenshots: setup
	@$(BIN)/python -m tests.suites.browser.screenshots

# Races, crashes and fuzzing at full size, for up to an hour; writes the table of docs/reliability.md.
stress: setup
	@$(BIN)/python -m tests.suites.stress

# Builds a fresh clone, deploys it by `sam deploy` to an emulator of AWS on this machine, and calls what came up.
# `make deploy-local FROM=<revision>` updates the stack of that revision instead, while a client goes on writing.
deploy-local: setup
	@$(BIN)/python -m tests.suites.deployment $(if $(FROM),--from $(FROM))

# Writes what follows from the functions and infra/template/: template.yaml, catalogues, sample events, tables, alarms.
generate: setup
	$(BIN)/kho generate

# Measures Kho against its peers and writes the tables of tests/suites/bench/README.md.
# `make bench bodies` measures one of them.
BENCHMARKS := $(if $(filter bench,$(firstword $(MAKECMDGOALS))),$(wordlist 2,99,$(MAKECMDGOALS)))
bench: setup
	@$(BIN)/python -m tests.suites.bench $(BENCHMARKS)
ifneq ($(BENCHMARKS),)
.PHONY: $(BENCHMARKS)
$(BENCHMARKS): ; @:
endif

# Runs every benchmark, or those that SMOKE names, at its smallest size, so that its code keeps working.
bench-smoke: setup
	@$(BIN)/python -m tests.suites.bench --smoke $(SMOKE)

clean:
	rm -rf .venv .kho .aws-sam infra/clients/console/vendor dist
