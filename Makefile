# make demo    the whole system on this machine, and what it does with a small cast of jobs
# make up      the same, left running for you to send events to
# make test    lint, types and tests
# make lint    lint and types alone
# make build   the functions and layers as they are deployed, in build/
# make setup   the environment for all of these, in .venv; they begin with it
# make guarantees   search every schedule of the protocol, and write docs/guarantees.md
# make explore      search deeper; takes a while and writes nothing
# make clean   remove what was built; make distclean: the environment too

PYTHON ?= python3
ENVIRONMENT ?= production
BIN = .venv/bin
READY = .venv/.ready
VERSION = -c 'import sys; print(sys.version_info[:2])'
# make PYTHON=python3.13 ...: made anew where the environment is of another version
ifeq ($(origin PYTHON),command line)
$(shell V="$$($(PYTHON) $(VERSION))" && { [ "$$V" = "$$($(BIN)/python $(VERSION) 2>&1)" ] || rm -f $(READY); })
endif
SOURCES = $(wildcard layers/notices/notices functions scripts demo cli)

.PHONY: setup demo up test lint build guarantees explore clean distclean

setup: $(READY)

# pip reads [dependency-groups] from 25.1 on, and many a Python still brings an older one: hence its upgrade. ministack
# gets an environment of its own, since it pins another botocore than the functions run on.
$(READY): pyproject.toml demo/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, not %s: make PYTHON=..." % sys.version)'
	@echo "Setting up .venv; this takes about a minute."
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	$(BIN)/python -m venv .venv/ministack
	.venv/ministack/bin/python -m pip install --quiet --disable-pip-version-check --requirement demo/requirements.txt
	@touch $@

demo: setup
	$(BIN)/python -m demo --environment "$(ENVIRONMENT)"

up: setup
	$(BIN)/python -m demo.up --environment "$(ENVIRONMENT)" $(if $(PORT),--port $(PORT)) $(if $(BIND),--bind $(BIND))

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/cfn-lint template.yaml

test: lint
	$(BIN)/python -m pytest -n auto

build: setup
	$(BIN)/python -m scripts.build

guarantees: setup
	PYTHONPATH=tests $(BIN)/python -m explorer.page

explore: setup
	PYTHONPATH=tests $(BIN)/python -m explorer.page --deep

clean:
	rm -rf build .aws-sam dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	rm -rf .venv layers/notices/*.egg-info
