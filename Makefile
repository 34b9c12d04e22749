# Every target sets up what it needs in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
ARGS ?=

.PHONY: run test check conformance e2e nightly bench format clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kubesched needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "setting up $(VENV), once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

run: $(STAMP)
	@$(BIN)/kubesched demo $(ARGS)

test: $(STAMP)
	$(BIN)/lint-imports
	@# End-to-end tests start processes and share the cores with the rest: what fails among them is tried once more, alone.
	$(BIN)/pytest -n $(WORKERS) -m 'not nightly' || $(BIN)/pytest --last-failed --last-failed-no-failures none -m 'not nightly'

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) tests/unit tests/contract

conformance: $(STAMP)
	$(BIN)/kubesched conformance tests/conformance

e2e: $(STAMP)
	$(BIN)/pytest tests/e2e

nightly: $(STAMP)
	$(BIN)/pytest -n $(WORKERS) -m nightly

bench: $(STAMP)
	$(BIN)/python bench/run.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
