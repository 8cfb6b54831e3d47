# Two commands do all the set-up: `make demo` and `make test`. They need Python 3.11 or later, make
# and a C compiler, and write only to .venv and to caches that git ignores.

SHELL := bash
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
# More arguments for pytest, e.g. make test ARGS="-k swap -x"
ARGS ?=
# Which golden draws to compare, as a regular expression, e.g. make golden BASE=main CASES=^pt
CASES ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
READY := $(VENV)/.ready
READY_ALL := $(VENV)/.ready-all

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types pytest test-slow bench studies docs reference golden venv constraints changelog clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: $(READY) ## sample two posteriors with two modes each, and write demo.html
	$(BIN)/temperance demo

test: lint types pytest ## lint, types and the default tests: what has to pass

lint: $(READY) ## style, formatting and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

types: $(READY) ## static types
	$(BIN)/basedpyright --pythonpath $(BIN)/python

pytest: $(READY) ## the default tests alone
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(READY) ## the tests that take longer
	$(BIN)/python -m pytest -n $(WORKERS) -m slow $(ARGS)

bench: $(READY_ALL) ## benchmarks, alone and beside other samplers
	$(BIN)/python -m pytest -W default benchmarks $(ARGS)
	$(BIN)/python benchmarks/overhead/run.py
	$(BIN)/python benchmarks/minibatch/run.py
	$(BIN)/python benchmarks/gaussian_process/run.py
	$(BIN)/python benchmarks/fast_gaussian_process/run.py
	$(BIN)/python benchmarks/crosscat/run.py
	$(BIN)/python benchmarks/peers/run.py
	$(BIN)/python benchmarks/trust/run.py

studies: $(READY_ALL) ## every paper's tables and figures again
	@set -e; shopt -s nullglob; for study in studies/*/run.py; do echo "== $$study"; $(BIN)/python $$study; done

docs: $(READY_ALL) ## the documentation, into site/
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet

reference: $(READY) ## write the methods' options into their reference page
	$(BIN)/python -m temperance.cli.method_tables docs/reference/methods.md

golden: $(READY) ## compare draws with those of a commit, bit for bit: make golden BASE=main
	@test -n "$(BASE)" || { echo "say which commit to compare with: make golden BASE=main"; exit 2; }
	@set -e; folder=$$(mktemp -d); \
	trap 'git worktree remove --force "$$folder/base"; rm -rf "$$folder"' EXIT; \
	git worktree add --quiet --detach "$$folder/base" "$(BASE)"; \
	golden="$(abspath $(BIN)/python) -m tests.golden"; \
	PYTHONPATH="$$folder/base/src:$$PWD" $$golden record "$$folder/old.json" "$(CASES)"; \
	PYTHONPATH="$$PWD/src:$$PWD" $$golden record "$$folder/new.json" "$(CASES)"; \
	$$golden compare "$$folder/old.json" "$$folder/new.json"

venv: $(READY_ALL) ## a .venv with every extra

constraints: $(READY) ## choose the newest versions that work together again
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --upgrade \
		--all-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		--no-emit-package temperance --output-file constraints.txt pyproject.toml

changelog: $(READY) ## gather news/ into CHANGELOG.md for a release
	$(BIN)/towncrier build --yes

clean: ## remove everything that make made
	rm -rf $(VENV) site dist .benchmarks .pytest_cache .ruff_cache demo.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; say which with PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# uv installs several times faster than pip; pip steps in where only pip knows the package index. Like pip it is
# told to compile what it installs: otherwise every process compiles it again where PYTHONDONTWRITEBYTECODE is set.
define install
	@echo "installing .[$(1)] into $(VENV)"
	@$(PIP) uv
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e ".[$(1)]" \
		|| $(PIP) -e ".[$(1)]"
endef

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(call install,dev)
	@touch $@

$(READY_ALL): pyproject.toml constraints.txt | $(BIN)/python
	$(call install,all)
	@touch $(READY) $@
