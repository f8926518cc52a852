# make report   set up if necessary, run the experiments, write build/report/falloff.{html,pdf}
# make test     the tests, some minutes  make lab        JupyterLab in the environment
# make test-all    these and the remaining cases: all that needs neither root nor a quiet machine
# make test-system   as root: real ssh servers, a real Slurm, two users, and a run that is killed again and again
# make test-campaigns   whole measured campaigns, on a machine that does nothing else
# make test-processors, make test-pythons   `make test` with another processor's rounding, and on later Pythons
# make fuzz     damaged outputs, folders and archives   make lint     format, unused names, types
# make bench    time the parts           make reference  run and pack the reference campaigns again
# make explore  the explorer in the browser
# make schemas  what editors check the files of data/ with, into build/schemas
# make setup    only set up              make lock       update the lock files from pyproject.toml
# make calibrate   the verdict's error rates in thousands of synthetic campaigns, kept in data/calibration
#
# PRESET=quick (default), full or stored: PRESET=full make report

PYTHON ?= python3
PRESET ?= quick
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip
# Each test file sets up its fixtures once; the files run in the order of tests/conftest.py.
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder
# If it were set, each of the many processes that start here would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# The classifiers' versions behind the first, which the locks are made for.
LATER_PYTHONS := $(shell sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml | tail -n +2)
LOCK_OPTIONS := --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
                --no-emit-find-links --no-annotate --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help report test test-all test-system test-campaigns test-processors test-pythons lint fuzz bench explore lab reference calibrate schemas setup packages tools lock clean
.DELETE_ON_ERROR:

# Print the lines at the top without their comment marks.
help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' $(firstword $(MAKEFILE_LIST))

report: setup
	@$(BIN)/falloff report --preset $(PRESET)

test: setup
	@packaging/install-packages packaging/debian-packages-browser.txt build/apt-browser.log
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -n 4 -m "not alone and not long and not more"

test-all: test
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -n 3 -m "more and not alone and not long"

# With the rules of pyproject.toml.
lint: $(VENV)/.installed
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

# The last digits of sums and products differ there: vectors are shorter, and sums run in another order.
test-processors:
	@OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" $(MAKE) test

# Each with its own environment. Shims of pyenv start only what is chosen, so its own folders are asked as well.
test-pythons: $(addprefix test-python,$(LATER_PYTHONS))

test-python%:
	@for python in python$* ~/.pyenv/versions/$*.*/bin/python3; do \
	  if $$python -c "" 2>/dev/null; then exec $(MAKE) test PYTHON=$$python VENV=build/python$*; fi; \
	done; echo "left out: Python $* is not here"

test-system: setup
	@tests/cluster/without-services packaging/install-packages packaging/debian-packages-cluster.txt build/apt-cluster.log
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -n 3 tests/cluster
	@FALLOFF_USERS=1 FALLOFF_KILLS=40 $(BIN)/python -m pytest tests/test_two_users.py tests/test_session.py

test-campaigns: setup
	@packaging/install-packages packaging/debian-packages-programs.txt build/apt-programs.log
	@$(BIN)/python -m pytest -m "alone or long"

# Damaged inputs for every parser and every reader of folders, descriptions and archives.
# FALLOFF_FUZZ=100000 make fuzz takes a night.
fuzz: setup
	@FALLOFF_FUZZ=$${FALLOFF_FUZZ:-2000} $(BIN)/python -m pytest $(SIDE_BY_SIDE) -n 2 tests/test_fuzz*.py

bench: setup
	@packaging/install-packages packaging/debian-packages-browser.txt build/apt-browser.log
	@PYTHONPATH=tests/support $(BIN)/python tests/bench.py

explore: setup
	@$(BIN)/falloff explore

lab: setup
	@$(BIN)/jupyter lab $$([ "$$(id -u)" = 0 ] && echo --allow-root) notebooks/00_start_here.ipynb

# Run again what is shipped: the full campaigns with their transcripts, and README's figure. To add a campaign:
# `falloff run CAMPAIGN --pack data/reference/CAMPAIGN-TESTBED`.
reference: setup
	@for packed in data/reference/*/; do \
	  name=$$(basename $$packed); \
	  $(BIN)/falloff run $${name%%-*} --testbed $${name#*-} --fresh --pack $$packed || exit 1; done
	@PYTHONPATH=.:tests/support $(BIN)/python tests/test_trust.py
	@PYTHONPATH=.:tests/support $(BIN)/python tests/test_references.py
	@$(BIN)/falloff report --preset stored
	@cp build/report/figures/share.svg docs/hpl_share.svg

# Makes data/calibration; the settings are in calibration.toml there.
calibrate: setup
	@PYTHONPATH=tests:tests/support $(BIN)/python -m calibration

# .taplo.toml names them.
schemas: $(VENV)/.installed
	@$(BIN)/python -m analysis.commands.schemas

setup: packages $(VENV)/.installed tools

# Install Debian packages if allowed; `falloff doctor` names what is missing.
packages:
	@mkdir -p build
	@packaging/install-packages packaging/debian-packages.txt build/apt.log

$(VENV)/.installed: packaging/requirements.lock packaging/requirements-uv.lock pyproject.toml | packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Falloff needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up the Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r packaging/requirements-uv.lock
	@$(UV) install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r packaging/requirements.lock
	@$(UV) install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# Build xhpl and the other programs once. If that is impossible, the stored reference is used.
tools: packages $(VENV)/.installed
	@$(BIN)/python -m runners.build || true

lock:
	@$(UV) compile pyproject.toml --all-extras $(LOCK_OPTIONS) --output-file packaging/requirements.lock
	@echo uv | $(UV) compile - $(LOCK_OPTIONS) --output-file packaging/requirements-uv.lock

clean:
	rm -rf build $(VENV)
