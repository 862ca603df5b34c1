# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: help setup demo test lint types layers docs check clean

help:  ## Show what can be made.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

setup: $(STAMP)  ## Make .venv with everything needed; does nothing if it is up to date.

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "dpmf needs Python 3.11 or newer: make PYTHON=/path/to/it")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

demo: setup  ## Train on built-in synthetic ratings and show the result, with a picture.
	$(BIN)/dpmf demo --out demo-output

test: setup  ## Run all tests.
	$(BIN)/python -m pytest

lint: setup  ## Check style and formatting.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## Check types.
	$(BIN)/mypy

layers: setup  ## Check that imports point downward.
	$(BIN)/lint-imports

# Not --quiet: it would keep warnings from --strict as well.
docs: setup  ## Build the documentation into site/; any warning is an error.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

check: test lint types layers docs  ## Everything above.

clean:  ## Remove what was made.
	rm -rf .venv build dist site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
