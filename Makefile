# `make demo` shows the product, `make test` runs all that CI runs. Both make their own virtual environment.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 3
NODE ?= yes
MITMPROXY ?= yes
AGENTS ?= yes

BIN := $(VENV)/bin
MITM := .venv-mitmproxy
CLIENTS := tests/support/node
INSTALLS := tests/support/real_agents/installs

# Without it every child process of a test would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check lint agents bench package constraints clean

help:
	@echo "make demo    record and replay a small agent; no key, no network"
	@echo "make test    everything CI runs: style, types, import rules, all tests"
	@echo "make test-all  the same, with every sweep run whole: about a quarter of an hour"
	@echo "make check   the quick part of it: no child processes, under a minute"
	@echo "make agents  record and replay every real agent, and print a table"
	@echo "make bench   measure against direct calls and mitmproxy"
	@echo "make clean   remove what the others made"

demo: $(VENV)/.ready
	@$(BIN)/rewind demo

# Everything that waits for something else (a child, a timeout) leaves a core free: one worker more than two cores.
PYTEST_ALL = $(if $(filter yes,$(NODE)),REWIND_TESTS_NEED_NODE=1) $(if $(filter yes,$(MITMPROXY)),REWIND_TESTS_NEED_MITMPROXY=1) \
	$(if $(filter yes,$(AGENTS)),REWIND_TESTS_NEED_AGENTS=1) $(BIN)/pytest -q -rs -n $(WORKERS) --dist worksteal
NEEDED = lint $(if $(filter yes,$(NODE)),$(CLIENTS)/node_modules/.package-lock.json) $(if $(filter yes,$(MITMPROXY)),$(MITM)/.ready)
# The real agents of every run, and those whose turn is `make test-all`: see tests/support/real_agents/table.py.
ROTA := clock.so python-sdks/.ready node-sdks/.ready claude-code/.ready codex/.ready small-model/.ready
EVERY := clock.so $(patsubst $(INSTALLS)/%,%/.ready,$(wildcard $(INSTALLS)/*))

test: $(NEEDED) $(if $(filter yes,$(AGENTS)),$(ROTA:%=.agents/%))
	$(PYTEST_ALL)

test-all: $(NEEDED) $(if $(filter yes,$(AGENTS)),$(EVERY:%=.agents/%))
	REWIND_TESTS_ALL=1 $(PYTEST_ALL)

check: lint
	REWIND_TESTS_QUICK=1 $(BIN)/pytest -q -n 2 --dist worksteal -m "not process and not e2e and not traffic and not torture" tests/unit tests/property

lint: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

agents: $(VENV)/.ready-dev $(EVERY:%=.agents/%)
	PYTHONPATH=tests $(BIN)/python -m support.real_agents

bench: $(VENV)/.ready-dev
	$(BIN)/python -m bench

package: $(VENV)/.ready-dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/check_package.py dist

# The versions that are installed now, for everybody: after `make test` was green with newer ones.
constraints: $(VENV)/.ready-dev
	@{ sed -n '/^#/p' requirements/constraints.txt; $(BIN)/pip freeze --exclude-editable; } > requirements/.new && mv requirements/.new requirements/constraints.txt

clean:
	rm -rf $(VENV) $(MITM) .agents $(CLIENTS)/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Rewind needs Python 3.11 or newer, and there is no $(PYTHON)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Rewind needs Python 3.11 or newer; this is %d.%d. Name another one: make PYTHON=python3.12" % sys.version_info[:2])'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.ready-dev: pyproject.toml requirements/constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c requirements/constraints.txt -e '.[dev]'
	@touch $@

# mitmproxy cannot live beside current SDKs (ADR 0001), so the tests that read its files have an environment of its
# own, with Rewind beside it. It comes first: resolved together, pip would go back to a mitmproxy of years ago.
$(MITM)/.ready: pyproject.toml requirements/mitmproxy.txt | $(BIN)/python
	@test -x $(MITM)/bin/python || $(PYTHON) -m venv $(MITM) || { rm -rf $(MITM); exit 1; }
	$(MITM)/bin/python -m pip install -q --disable-pip-version-check -c requirements/mitmproxy.txt mitmproxy
	$(MITM)/bin/python -m pip install -q --disable-pip-version-check --no-warn-conflicts -e .
	@touch $@

# $(call need,COMMAND,PACKAGES,WHO NEEDS IT,HOW TO LEAVE THAT OUT): the command is here, or can be installed.
need = command -v $(1) >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $(2) >/dev/null; } \
	|| { echo "$(3) need $(1). Install it, or leave those tests out: make test $(4)" >&2; exit 1; }
NEED_NPM = $(call need,npm,nodejs npm,The Node tests,NODE=no AGENTS=no)

# The lock files name no registry, so npm takes the one this machine is set up for.
$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package-lock.json
	@$(NEED_NPM)
	npm ci --prefix $(CLIENTS) --no-audit --no-fund --loglevel=error
	@touch $@

# Real agents live outside of our environment; what each needs is written down whole, so nothing is worked out here.
.agents/%/.ready: $(INSTALLS)/%/package-lock.json
	@$(NEED_NPM)
	@mkdir -p $(@D) && cp $(INSTALLS)/$*/package.json $(INSTALLS)/$*/package-lock.json $(@D)
	npm ci --prefix $(@D) --no-audit --no-fund --loglevel=error
	@touch $@

.agents/%/.ready: $(INSTALLS)/%/requirements.txt | $(BIN)/python
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D) || { rm -rf $(@D); exit 1; }
	$(@D)/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-compile -r $<
	@touch $@

.agents/clock.so: tests/support/real_agents/clock.c
	@$(call need,cc,gcc libc6-dev,The real agents,AGENTS=no)
	@mkdir -p $(@D)
	cc -shared -fPIC -O2 -o $@ $<
