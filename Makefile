# The two commands: `make demo` runs the product here, `make test` proves it. `make help` lists the rest.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
# Nothing here tells anybody outside that it ran.
export DO_NOT_TRACK := 1
export DBT_SEND_ANONYMOUS_USAGE_STATS := false
export GX_ANALYTICS_ENABLED := false
BIN := .venv/bin
DBT := $(BIN)/dbt --quiet
DBT_PLACES := --project-dir . --profiles-dir infra/dbt --target-path build/dbt --log-path build/dbt

.PHONY: help setup demo demo-night test tests proof bench check fix lock airflow clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## .venv from the hash lock, Java 17 or newer, the JARs; run again, it does nothing
	@infra/python/setup.sh

demo: demo-night ## everything set up, then the product runs here: at most 10 minutes on two cores

demo-night: setup ## the nightly job on sample bills: from delivery to finance answer
	@infra/demo/night.sh

test: setup check tests ## everything set up, every check and every test: at most 20 minutes on two cores

# pytest's own closing line is the last one, so what to look at comes before it.
tests:
	@echo "tests: two workers side by side with one Spark session each, long files first. To look at next:"
	@echo "tests:   one kind alone: $(BIN)/pytest tests/unit    one test: $(BIN)/pytest -k WORDS    long ones: make proof"
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=5

proof: setup ## what takes longer: kills at every step, long runs; writes docs/proof.md
	$(BIN)/pytest -m proof tests
	@echo "proof: see docs/proof.md"

bench: setup ## what is measured: CPU-seconds and memory beside their floors; writes docs/bench.md
	$(BIN)/python tests/bench/run.py
	@echo "bench: see docs/bench.md"

check: setup ## ruff, mypy, import contracts, sqlfluff, dbt parse
	@step() { echo "check: $$*" >&2; "$$@"; }
	step $(BIN)/ruff check .
	step $(BIN)/ruff format --check .
	step $(BIN)/mypy
	step $(BIN)/lint-imports --no-logo
	step $(BIN)/sqlfluff lint models tests/dbt
	step $(BIN)/sqlfluff lint --templater placeholder sql/queries
	step $(DBT) parse $(DBT_PLACES)
	echo "check: all fine; 'make fix' mends what a tool can mend" >&2

fix: setup ## mend what a tool can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix models tests/dbt
	$(BIN)/sqlfluff fix --templater placeholder sql/queries

lock: setup ## newest packages that infra/python/*.in allow, with hashes and without addresses
	cd infra/python
	lock() { ../../$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header "$$@"; }
	lock requirements-dev.in -o ../../requirements.lock
	lock bootstrap.in -o bootstrap.lock

airflow: setup ## the DAGs on a real scheduler, with address and login; Ctrl-C stops all of it
	@infra/airflow/start

clean: ## remove what was made here, .venv too
	rm -rf .venv .demo .airflow build dist target logs spark-warehouse metastore_db derby.log .hypothesis
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
