# Every target sets up what it needs in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
RUN_STAMP := $(VENV)/.installed
WHEELS_STAMP := $(VENV)/.installed-wheels
WORKERS ?= 2
ARGS ?=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --native-tls

.PHONY: kubectl-plugin wheels try-wheels sbom lock run test check conformance e2e e2e-real release-check lowest nightly chaos bench screenshots docs reference promise format clean

# What running needs, and nothing else.
$(RUN_STAMP): pyproject.toml tools/version.py tools/build_kernels.py $(wildcard kubesched/scheduler/kernels/*.c)
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kubesched needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "setting up $(VENV), once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -rf kubesched.egg-info  # of an older way to install: it would be read for the version
	@$(if $(LOCKED),$(PIP) --require-hashes -r requirements/ci.txt && $(PIP) --no-deps --no-build-isolation -e .,$(PIP) -e '.[dra]')
	@touch $(RUN_STAMP)

# And what changing it needs. LOCKED=1 takes the versions that requirements/ci.txt locks by their hashes, as a release does.
$(STAMP): $(RUN_STAMP)
	@echo "adding the developer's tools to $(VENV), once"
	@$(if $(LOCKED),true,$(PIP) -e '.[dev]')
	@touch $(STAMP)

run: $(RUN_STAMP)
	@$(BIN)/kubesched demo $(ARGS)

test: $(STAMP)
	@tools/install_test_programs
	$(BIN)/lint-imports
	$(BIN)/python tools/run_tests.py -n $(WORKERS) --dist worksteal

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) tests/unit tests/contract

conformance: $(STAMP)
	$(BIN)/kubesched conformance tests/conformance

e2e: $(STAMP)
	$(BIN)/pytest tests/e2e

# make e2e-real RELEASES="DIR ...": those that want a real API server, with the binaries of one folder after the other.
e2e-real: $(STAMP)
	@test -n "$(RELEASES)" || { echo 'make e2e-real RELEASES="DIR ...": folders with etcd, kube-apiserver and kube-scheduler of a release each'; exit 2; }
	@failed=; for assets in $(RELEASES); do echo "with $$assets"; \
	  KUBEBUILDER_ASSETS=$$assets $(BIN)/pytest tests/e2e -m real || failed="$$failed $$assets"; \
	done; test -z "$$failed" || { echo "failed with$$failed"; exit 1; }

# The tests with the oldest versions that pyproject.toml allows of what kubesched needs; tools for tests are new.
lowest: $(STAMP)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 pyproject.toml \
	  --extra dra --extra oidc --extra experiments --extra gym --extra otel --extra serve -o build/lowest.txt
	$(BIN)/uv pip install --quiet --python build/lowest -e '.[dev]' -c build/lowest.txt
	build/lowest/bin/python -m pytest -n $(WORKERS) -m "not nightly" tests/unit tests/contract

nightly: $(STAMP)
	$(BIN)/pytest -n $(WORKERS) -m nightly
	$(MAKE) lowest

# make chaos SEEDS=200, SECONDS=3600, REPLAY=SEED [FAULTS=0,3], BUG=NAME|all [SEEDS=2000], PAGE=docs/explanation/testing.md; FIRST=1 is where seeds begin.
chaos: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m chaos --workers $(WORKERS) \
	  $(if $(SEEDS),--seeds $(SEEDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(FIRST),--first $(FIRST)) \
	  $(if $(REPLAY),--replay $(REPLAY)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(BUG),--bug $(BUG)) $(if $(PAGE),--page $(PAGE))

# The kubectl plugin for this platform in dist/kubectl-plugin: one archive, its checksum, and the manifest for krew.
# make kubectl-plugin PLUGIN_URL=https://HOST/PATH says where the archive will be downloaded from.
kubectl-plugin: $(STAMP)
	$(BIN)/python tools/build_kubectl_plugin.py $(if $(PLUGIN_URL),--url $(PLUGIN_URL))

# In dist: a wheel with compiled loops for each platform, the wheel for all others, and the sdist. The same bytes from the same commit.
wheels: $(WHEELS_STAMP)
	rm -rf dist/*.whl dist/*.tar.gz
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python tools/build_wheels.py

# Those of dist that run on this machine run, each in an environment of its own; the others are inspected.
try-wheels: $(WHEELS_STAMP)
	$(BIN)/python tools/try_wheels.py

$(WHEELS_STAMP): $(STAMP) requirements/wheels.txt
	@echo "adding a compiler for all platforms to $(VENV), once"
	@$(PIP) --require-hashes -r requirements/wheels.txt
	@touch $(WHEELS_STAMP)

# dist/kubesched.cdx.json: what the image is made of, by its lock (CycloneDX).
sbom: $(STAMP)
	$(BIN)/python tools/write_sbom.py

# All of a release that this machine can run, and what it cannot. STEPS="wheels uvx" takes those with these words in their names.
release-check: $(STAMP)
	@tools/install_test_programs
	@$(BIN)/python tools/release_check.py $(STEPS)

# Newer versions of everything, with their hashes: for the image, for CI and for what builds the package.
lock: $(STAMP)
	$(LOCK) --upgrade requirements/build.in -o requirements/build.txt
	$(LOCK) --upgrade pyproject.toml --extra dra --extra serve -o requirements/image.txt
	$(LOCK) --upgrade pyproject.toml requirements/build.in --extra dev -o requirements/ci.txt
	$(LOCK) --upgrade requirements/wheels.in -c requirements/ci.txt -o requirements/wheels.txt

bench: $(STAMP)
	$(BIN)/python bench/run.py
	$(BIN)/python bench/simulate.py
	$(BIN)/python bench/sweep.py

# docs/page.png and the other views, from a demo in Debian's chromium.
screenshots: $(STAMP)
	$(BIN)/python tools/screenshots.py

# The site, in build/site. Dead links and anchors end it.
docs: $(STAMP)
	$(BIN)/mkdocs build --quiet --strict

# What follows from the code: pages of plugins, of the configuration and of gates; the picture of a decision; the recording.
reference: $(STAMP)
	$(BIN)/python tools/generate_reference.py
	$(BIN)/python tools/draw_decision.py docs/examples/decision.yaml default/web-2 docs/decision.svg
	$(BIN)/python tools/record_terminal.py

# tests/unit/promise.txt: what 1.x promises to keep, as the code has it now.
promise: $(STAMP)
	$(BIN)/python tools/record_promise.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
