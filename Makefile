# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# Two stages, so that the demonstration need not wait for the development tools; the second builds on the first.
DEMO_READY := .venv/.demo
READY := .venv/.ready

.PHONY: help setup demo test lint types layers docs check clean

help:  ## Show what can be made.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

setup: $(READY)  ## Set up .venv for development; does nothing if it is up to date.

$(DEMO_READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "dpmf needs Python 3.11 or newer: make PYTHON=/path/to/it")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[plot]'
	touch $@

$(READY): $(DEMO_READY)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	touch $@

demo: $(DEMO_READY)  ## Train on built-in synthetic ratings and show the result, with a picture.
	$(BIN)/dpmf demo --out demo-output

# Workers share the CPUs, so each leaves BLAS one thread.
test: $(READY)  ## Run all tests, on all CPUs.
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(READY)  ## Check style and formatting.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## Check types.
	$(BIN)/mypy

layers: $(READY)  ## Check that imports point downward.
	$(BIN)/lint-imports

# Not --quiet: it would keep warnings from --strict as well.
docs: $(READY)  ## Build the documentation into site/; any warning is an error.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

check: test lint types layers docs  ## Everything above.

clean:  ## Remove what was made.
	rm -rf .venv build dist site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
