# make report   set up what is missing, run the experiments, write build/report/falloff.{html,pdf}
# make test     the tests                make lab    JupyterLab in the environment
# make bench    how fast the parts are   make lock   renew the lock file from pyproject.toml
#
# PRESET=quick (default) | full | stored     CAMPAIGN_FLAGS, e.g. PRESET=full make report

PYTHON ?= python3
PRESET ?= quick
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip
LOCK_OPTIONS := --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
                --no-emit-find-links --no-annotate --no-header --quiet

.PHONY: report test bench lab setup tools reference lock clean
.DELETE_ON_ERROR:

report: setup
	@$(BIN)/falloff report --preset $(PRESET)

test: setup
	@$(BIN)/python -m pytest

bench: setup
	@$(BIN)/python tests/bench.py

lab: setup
	@$(BIN)/jupyter lab notebooks

# The reference campaign that is shipped: every block at full size, packed with its transcripts.
reference: setup
	@$(BIN)/falloff run hpl_scaling --preset full --pack data/reference/hpl_scaling-emulated

setup: $(VENV)/.installed tools

# Debian packages where we may install them; what is missing is named by `falloff doctor`.
build/.packages: debian-packages.txt install-packages
	@mkdir -p build
	@./install-packages debian-packages.txt
	@touch $@

$(VENV)/.installed: requirements.lock requirements-uv.lock pyproject.toml | build/.packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Falloff needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up the Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@$(UV) install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(UV) install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# xhpl and dgemm, built once and cached; without a compiler or the source the stored reference serves.
tools: build/.packages $(VENV)/.installed
	@$(BIN)/python -m runners.build || true

lock:
	@$(BIN)/uv pip compile pyproject.toml --all-extras $(LOCK_OPTIONS) --output-file requirements.lock
	@echo uv | $(BIN)/uv pip compile - $(LOCK_OPTIONS) --output-file requirements-uv.lock

clean:
	rm -rf build $(VENV)
