# The commands of the project. Needs Python 3.11 to 3.14 and PyPI; no GPU, no torch.
#
#   make demo    set up, translate two kernels for gfx950, compile, compare with Triton, validate, show
#   make test    set up, run the tests (one target per fixture)
#   make help    the rest

PYTHON ?= python3
VENV ?= .venv
TARGET ?= gfx950
PYTEST_ARGS ?=

BIN := $(VENV)/bin
# Renewed when the dependencies change.
STAMP := $(VENV)/.installed
DEMO := .demo

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help:
	@echo 'make demo      set up and do the main job on fixtures/matmul and fixtures/softmax'
	@echo 'make test      set up and run the tests, about 6 minutes on two idle cores'
	@echo 'make test-slow the slow tests: every command of the documentation, mutants of every golden'
	@echo 'make test-versions  the compatibility part with Triton 3.8, in an environment of its own; doctor says the same of yours'
	@echo 'make test-all  all tests, each fixture compiled for every target'
	@echo 'make golden    rewrite fixtures/*/golden and show what changed'
	@echo 'make bench-cluster  what a cluster costs, and whether trouble changes a byte; five minutes on two idle cores'
	@echo 'make docs      build the documentation site into build/site'
	@echo 'make lint      check formatting, and the direction of imports (make imports)'
	@echo 'make setup     only set up $(VENV)'
	@echo 'make clean     remove $(VENV) and the demo output'
	@echo 'PYTHON=... picks the interpreter, TARGET=... the target of the demo, PYTEST_ARGS=... goes to pytest'

.PHONY: setup
setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
	  { echo '$(PYTHON) is not Python 3.11 to 3.14; choose one with: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo '$(PYTHON) has no venv module; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: demo
demo: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH" ./docs/tutorial/demo.sh $(TARGET) $(DEMO)

# Two workers where pytest-xdist is there; each takes neighbours, which share what their modules set up.
WORKERS = $$($(BIN)/python -c 'import xdist' 2>/dev/null && echo '-n 2 --dist worksteal')

.PHONY: test
test: $(STAMP)
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: $(STAMP)
	$(BIN)/python -m pytest $(WORKERS) -m slow $(PYTEST_ARGS)

# The releases of Triton beside that of $(VENV) with which the compatibility part is run, each in an environment of its own.
OTHER_TRITONS ?= 3.8

.PHONY: test-versions
test-versions: $(OTHER_TRITONS:%=$(VENV)-triton-%/.installed)
	for release in $(OTHER_TRITONS); do \
	  $(VENV)-triton-$$release/bin/python -m pytest -n 2 --dist worksteal -m versions $(PYTEST_ARGS) || exit 1; \
	done

$(VENV)-triton-%/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 'triton==$*.*'
	@touch $@

.PHONY: test-all
test-all: $(STAMP)
	$(BIN)/python -m pytest $(WORKERS) -m 'slow or not slow' --all-targets $(PYTEST_ARGS)

.PHONY: bench-cluster
bench-cluster: $(STAMP)
	$(BIN)/python bench/cluster_overhead.py
	$(BIN)/python bench/cluster_faults.py

.PHONY: docs
docs: $(STAMP)
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo 'the site is in build/site: open build/site/index.html'

# The tree as it is installed: the rules lie within the package.
INSTALLED := build/installed

.PHONY: imports
imports: $(STAMP)
	@rm -rf $(INSTALLED) && mkdir -p $(INSTALLED) && cp -r translator $(INSTALLED)/gluonize && cp -r rules $(INSTALLED)/gluonize/rules
	PYTHONPATH=$(INSTALLED) $(BIN)/lint-imports --no-cache

.PHONY: lint
lint: $(STAMP) imports
	$(BIN)/python -m black --check --quiet translator rules bench tests fixtures/*/reference.py || \
	  { $(BIN)/python -m black --check translator rules bench tests fixtures/*/reference.py; exit 1; }

.PHONY: golden
golden: $(STAMP)
	$(BIN)/python tests/golden/refresh.py $(FIXTURES)

.PHONY: clean
clean:
	rm -rf $(VENV) $(VENV)-triton-* $(DEMO)
