# Each target sets up what it needs by itself, from a fresh clone: Python 3.10 or later, g++ and PyPI are enough.
# Another interpreter: make test PYTHON=/path/to/python3.11

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
DEMO := hls,sim,cli,import
DEV := all,docs,dev
PYNQ := pynq pynqmetadata pynqutils
# A worker a processor, at most 8. Each begins with neighbouring tests, which share what they build; idle ones take over from others.
WORKERS := -n auto --maxprocesses=8 --dist=worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

# One line that is true for a Python that can make the environment; old Pythons must be able to read it.
SUITS := import sys, venv, ensurepip; sys.exit(sys.version_info[:2] < (3, 10))

.PHONY: help demo test test-slow lint notebooks docs clean compiler
.NOTPARALLEL:
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: compiler $(VENV)/.ready-demo ## simulate a network on generated hardware and compare with golden
	@$(BIN)/bitloom demo

test: compiler $(VENV)/.ready-dev ## the tests: default tier
	@$(BIN)/python -m pytest $(WORKERS)

test-slow: compiler $(VENV)/.ready-dev ## the tests: long runs
	@$(BIN)/python -m pytest $(WORKERS) -m "slow and not board and not vivado and not gpu"

lint: $(VENV)/.ready-dev ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

notebooks: compiler $(VENV)/.ready-dev ## the notebooks, in JupyterLab
	@$(PIP) install -c constraints.txt jupyterlab
	@$(BIN)/jupyter lab --ServerApp.root_dir=notebooks

docs: $(VENV)/.ready-dev ## the documentation site: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean: ## remove the environment, builds and caches
	@rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

compiler:
	@command -v g++ >/dev/null || { echo "bitloom: g++ is missing and simulation needs it: install g++ (Debian, Ubuntu: sudo apt install g++; Fedora: sudo dnf install gcc-c++; macOS: xcode-select --install)" >&2; exit 1; }

# The stamps make a second call instant; a change in what is installed installs anew.
$(VENV)/.ready-demo: pyproject.toml constraints.txt
	@$(environment)
	@$(call install,$(DEMO))
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt
	@$(environment)
	@$(call install,$(DEV))
	@touch $(VENV)/.ready-demo $@

# Keeps an environment that suits, else makes one with the first interpreter that can.
define environment
if $(BIN)/python -c '$(SUITS)' 2>/dev/null; then exit 0; fi; \
for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python3.10 python); do \
  if $$python -c '$(SUITS)' 2>/dev/null; then exec $$python -m venv --clear $(VENV); fi; \
done; \
echo "bitloom: Python 3.10 or later with venv is needed, none found$(if $(PYTHON), at $(PYTHON)): install one (Debian, Ubuntu: sudo apt install python3-venv) or say make PYTHON=/path/to/python3.11" >&2; exit 1
endef

# The build tools come first and pinned: several dependencies have no wheel, and the newest setuptools need not build them.
# pynq comes last and without what it asks for, which the extra "sim" has: pip would find no numpy 1 for Python 3.13 and later.
define install
echo "bitloom: installing [$(1)] into $(VENV) (minutes the first time)" && \
$(PIP) install -c constraints.txt setuptools wheel && \
$(PIP) install -c constraints.txt --no-build-isolation --use-pep517 -e '.[$(1)]' && \
$(PIP) install -c constraints.txt --no-build-isolation --use-pep517 --no-deps $(PYNQ)
endef
