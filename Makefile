# Everything runs in .venv, made here from pinned versions (constraints.txt).
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo serve test check peers benchmark scale docs dist clean

demo: $(VENV)/ready
	$(RUN)/python examples/demo.py

# the service and its console, from nothing: a made-up dataset, an owner, two analysts
serve: $(VENV)/ready-service
	$(RUN)/farthing serve

# lint, types, layers, and every test that needs no server and no patience
check: $(VENV)/ready-test lint
	$(RUN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not server"

test: $(VENV)/ready-test lint
	tests/bring.sh
	$(RUN)/python -m pytest -n 2 --dist worksteal

.PHONY: lint
lint: $(VENV)/ready-test
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports

# other libraries, each in an environment of its own from pinned versions
PEERS := $(patsubst benchmarks/peers/%.txt,.peers/%/ready,$(wildcard benchmarks/peers/*.txt))
peers: $(PEERS)

.peers/%/ready: benchmarks/peers/%.txt
	$(PYTHON) -m venv .peers/$*
	.peers/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# every number beside the peers; goes on where an earlier run stopped; docs/benchmarks.md
benchmark: $(VENV)/ready-test peers
	$(RUN)/python -m benchmarks

# how everything grows; docs/scale.md
scale: $(VENV)/ready-test
	$(RUN)/python -m benchmarks.scale

# the documentation as pages in site/, searchable and without a request to anywhere else
# (the variable silences a notice about the theme's end of life: see docs in pyproject.toml)
docs: $(VENV)/ready-test
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict

# a wheel and a source distribution in dist/
dist: $(VENV)/ready-test
	$(RUN)/python -m hatchling build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[engine]"
	$(RUN)/python -m farthing.numerics.compiled
	touch $@

$(VENV)/ready-service: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[service]"
	$(RUN)/python -m farthing.numerics.compiled
	touch $(VENV)/ready $@

$(VENV)/ready-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[test,docs,peers,spark,service]"
	$(RUN)/python -m farthing.numerics.compiled
	touch $(VENV)/ready $(VENV)/ready-service $@

clean:
	rm -rf $(VENV) .peers .benchmarks site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
