# make demo       the whole system on this machine, and what it does with a small cast of jobs
# make up         the same, left running for you to send events to
# make test       lint, types and tests
# make lint       lint and types alone
# make fuzz       100,000 hostile inputs and what must hold whatever arrives; REPLAY=file runs a saved one again
# make soak       2,000 notices through the whole system while everything that can go wrong does
# make guarantees search every schedule of the protocol, and write docs/guarantees.md; make explore: deeper, writes nothing
# make scan       the template by the rules of an infrastructure scanner; the exceptions are in security/exceptions.toml
# make audit      the dependencies against the vulnerabilities that PyPI knows of
# make sam-local  every function in Lambda's own image, where there is a container engine and sam
# make deploy     onto AWS: STAGE=staging or production; ARGS='--set Name=value' changes a parameter
# make kinds      whether every kind of message is right; make gallery: a page of them all, build/gallery.html
# make bench   the function as built against what one would otherwise write: figures, targets, picture
# make flood   a hundred thousand jobs at once, in simulated time
# make build      the functions and layers as they are deployed, in build/
# make setup      the environment for all of these, in .venv; they begin with it
# make clean      remove what was built; make distclean: the environment too

PYTHON ?= python3
# not from the shell's own variables of these names
ENVIRONMENT = production
PORT =
BIND =
REPLAY =
BIN = .venv/bin
READY = .venv/.ready
VERSION = -c 'import sys; print(sys.version_info[:2])'
# make PYTHON=python3.13 ...: made anew where the environment is of another version
ifeq ($(origin PYTHON),command line)
$(shell V="$$($(PYTHON) $(VERSION))" && { [ "$$V" = "$$($(BIN)/python $(VERSION) 2>&1)" ] || rm -f $(READY); })
endif
NOTICES_KIND = $(BIN)/notices kind
SOURCES = $(wildcard layers/notices/notices functions scripts demo cli bench)

.PHONY: bench flood setup demo up sam-local deploy test lint kinds gallery browser build fuzz soak guarantees explore scan audit clean distclean

setup: $(READY)

# pip reads [dependency-groups] from 25.1 on, and many a Python still brings an older one: hence its upgrade. ministack
# gets an environment of its own, since it pins another botocore than the functions run on.
# An editable install of two folders has setuptools warn at length of what does not happen here: hence PYTHONWARNINGS.
$(READY): pyproject.toml demo/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, not %s: make PYTHON=..." % sys.version)'
	@echo "Setting up .venv; this takes about a minute."
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable '.[cli]'
	$(BIN)/python -m venv .venv/ministack
	.venv/ministack/bin/python -m pip install --quiet --disable-pip-version-check --requirement demo/requirements.txt
	@touch $@

demo: setup
	$(BIN)/python -m demo --environment "$(ENVIRONMENT)"

up: setup
	$(BIN)/python -m demo.up --environment "$(ENVIRONMENT)" $(if $(PORT),--port $(PORT)) $(if $(BIND),--bind $(BIND))

sam-local: setup
	$(BIN)/python -m demo.sam_local

# sam build alone does not render a kind's examples.
deploy: kinds
	$(BIN)/python -m scripts.deploy "$(STAGE)" $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/cfn-lint template.yaml

# What the browser checks need, where there is a npm to bring it; without, they are skipped and say so.
browser: setup
	@if command -v npm >/dev/null; then cd tests/browser && { cmp -s package-lock.json node_modules/.lock || \
		{ npm ci --silent && cp package-lock.json node_modules/.lock; } || echo "npm could not bring what the browser checks need"; }; fi

kinds: setup
	$(NOTICES_KIND) check

gallery: setup
	$(NOTICES_KIND) gallery

test: lint kinds browser
	$(BIN)/python -m pytest -n auto

bench: setup
	$(BIN)/python -m bench

flood: setup
	$(BIN)/python -m bench.flood --out build/bench/flood.json

build: setup
	$(BIN)/python -m scripts.build

# ARGS='--inputs 20000 --minutes 5 --seed 1', say
fuzz: .venv/.fuzz
	PYTHONPATH=.:tests $(BIN)/python -m hostile.fuzz $(if $(REPLAY),--replay "$(REPLAY)") $(ARGS)

.venv/.fuzz: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group fuzz
	@touch $@

# ARGS='--notices 500 --minutes 5 --seed 1', say
soak: setup
	$(BIN)/python -m demo.soak $(ARGS)

# checkov and pip-audit pin much that others pin otherwise: an environment of their own each, made when first asked for
scan: setup .venv/checkov/.ready
	$(BIN)/python -m scripts.scan

audit: .venv/pip-audit/.ready
	.venv/pip-audit/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off \
		--requirement layers/dependencies/requirements.txt --requirement demo/requirements.txt

.venv/%/.ready: security/%.txt $(READY)
	$(BIN)/python -m venv --clear .venv/$*
	.venv/$*/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

guarantees: setup
	PYTHONPATH=tests $(BIN)/python -m explorer.page

explore: setup
	PYTHONPATH=tests $(BIN)/python -m explorer.page --deep

clean:
	rm -rf build .aws-sam dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	rm -rf .venv layers/notices/*.egg-info tests/browser/node_modules
