# The commands of the project; each sets up .venv first if it has to.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/pytest
INSTALL := $(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable
# Where bytecode is not kept, every process of a test compiles torch anew, which takes it seconds.
export PYTHONDONTWRITEBYTECODE :=
# Processes of one thread, one more than cores because some tests wait; one that has nothing left takes from another.
CORES = getattr(os, 'sched_getaffinity', lambda _: range(os.cpu_count()))(0)
PARALLEL = -n $(shell $(PYTHON) -c "import os; print(min(8, len($(CORES)) + 1))") --dist worksteal

# The tables and figures of the paper; OPTIONS go to the command, such as OPTIONS=--quick.
PAPER := table-1 table-3 fig-2-left fig-2-middle fig-2-right n-query gset ood fig-3-left fig-3-right

.PHONY: solve test coverage test-slow check format fuzz dist docs gpu bench reproduce $(PAPER) clean

solve: $(BIN)/diffuco  ## solve a bundled graph with a bundled model, print the result, write a picture
	$(BIN)/diffuco solve mis examples/rb-small.clq --model mis-rb-small --plot solution.png

test: .venv/installed  ## all tests and doctests that need neither a GPU nor much patience
	OMP_NUM_THREADS=1 $(PYTEST) -m "not gpu and not slow" $(PARALLEL) $(COVERAGE)

coverage: COVERAGE := --cov=diffuco --cov-report=term:skip-covered
coverage: test  ## the same, and which lines no test reaches; a third as long again

test-slow: .venv/installed  ## the rest that runs on a CPU
	$(PYTEST) -m slow

check: .venv/installed  ## what a change has to pass: format, lint, types, import contract, tests, doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

format: .venv/installed  ## put the code in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: .venv/installed  ## new random examples; mutated files, answers on random graphs, for SECONDS each (600 if not told)
	HYPOTHESIS_PROFILE=default $(PYTEST) -q -m "not gpu and not slow" -k "not web_schema" $$(grep -l "^from hypothesis" tests/test_*.py)
	$(BIN)/python tests/fuzz_files.py --seconds $(or $(SECONDS),600) --seed $(or $(SEED),0)
	$(BIN)/python tests/fuzz_answers.py --seconds $(or $(SECONDS),600) --seed $(or $(SEED),0)

dist: .venv/installed  ## wheel and sdist, built in an environment of their own, checked and tried
	rm -rf dist build/dist-env
	$(PYTHON) -m venv build/dist-env
	build/dist-env/bin/pip install --quiet --disable-pip-version-check build twine
	build/dist-env/bin/python -m build --outdir dist
	build/dist-env/bin/twine check --strict dist/*
	$(BIN)/python tests/check_dist.py dist

docs: .venv/installed  ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

gpu:  ## tests that need a CUDA device, with whatever python3 has torch there
	PYTHONPATH=src $(PYTHON) -m pytest -m gpu $$(grep -l "mark.gpu" tests/*.py)

bench: .venv/installed  ## speed on this machine
	$(BIN)/python benchmarks/generate.py
	$(BIN)/python benchmarks/decode.py
	$(BIN)/python benchmarks/train_step.py mis-tiny

reproduce: $(PAPER)  ## all tables and figures of the paper: hours, most of them on a GPU

$(PAPER): .venv/installed  ## one of them, such as `make table-1`
	$(BIN)/python -m experiments.reproduce $@ $(OPTIONS)

.venv/installed: pyproject.toml constraints.txt
	@echo "installing diffuco and all that tests need into .venv: a few minutes"
	$(INSTALL) '.[dev]'
	touch $@

$(BIN)/diffuco: pyproject.toml constraints.txt
	@echo "installing diffuco into .venv: a minute or two"
	$(INSTALL) '.[plot]'
	touch $@

clean:
	rm -rf .venv build solution.png
