PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check bench setup generate clean

setup:
	@$(PYTHON) infra/prepare.py

run: setup
	@exec $(BIN)/kho serve

test: setup
	@$(BIN)/pytest -n 2

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports --no-cache
	$(BIN)/cfn-lint template.yaml
	$(BIN)/kho generate --check

# What is made from the catalogue of methods: shared/rpc/catalogue.json and the README's table.
generate: setup
	$(BIN)/kho generate

bench: setup
	$(BIN)/python -m tests.bench

clean:
	rm -rf .venv .kho .aws-sam
