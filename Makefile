# Everything runs in .venv, made here from pinned versions (constraints.txt).
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin

.PHONY: demo test benchmark clean

demo: $(VENV)/ready
	$(RUN)/python -m farthing.cli.demo

test: $(VENV)/ready-test
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/python -m pytest -n 2

benchmark: $(VENV)/ready-test
	$(RUN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[engine]"
	$(RUN)/python -m farthing.numerics.warm
	touch $@

$(VENV)/ready-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,peers,spark]"
	$(RUN)/python -m farthing.numerics.warm
	touch $(VENV)/ready $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
