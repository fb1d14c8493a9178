# Two commands do everything on a fresh machine: `make demo` and `make test`. Both make the environment first.
PYTHON ?= python3
VENV := .venv
TEST_JOBS ?= 6
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests start hundreds of processes that import the same modules: they are compiled once, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
TESTS := $(BIN)/python -m pytest -m "not slow" --ignore tests/quality
SOURCES := $(filter-out %.pyc,$(wildcard src/headrace/*/_*.p* src/headrace/*/_b*.h src/headrace/schemas/columns/_*.p*)) setup.py pyproject.toml tools/compiled_texts.py

.PHONY: demo test long fuzz check docs bench wheel wheels clean help

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(READY)  ## The main job on the embedded broker: 336,776 flights through Kafka and Spark, totals checked
	$(BIN)/python -m headrace.cli demo $(DEMO_ARGS)

test: $(READY)  ## All tests but the long ones, real Kafka and real Spark included; in six processes, for many of them wait (TEST_JOBS=0: in one); those of form are in `make check`
	@$(BIN)/python -m tools.class_archives
	@$(TESTS) -n $(TEST_JOBS) --no-loadscope-reorder --durations=30 $(PYTEST_ARGS) || { test $$? = 1 && \
		printf '\nOnce more, one by one. What passes now is a fault of a test or of its time, to be mended all the same.\n\n' && \
		$(TESTS) -ra --last-failed --last-failed-no-failures none $(PYTEST_ARGS); }

long: $(READY)  ## The long tests: clusters of three brokers, older Kafkas, simulated schedules, a million hostile inputs, chaos
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)
	$(BIN)/python -m tests.integration.kafka.matrix
	$(BIN)/python -m tests.campaigns.sim.produce --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.divided --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.made_anew --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.transactions --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.membership --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.planned_membership --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.background_commits --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.handed_over --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.reading --schedules 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.whole --schedules 500000 --jobs 2
	$(BIN)/python -m tests.campaigns.sim.mutations --jobs 2
	$(BIN)/python -m tests.campaigns.hostile --frames 1000000 --jobs 2
	$(BIN)/python -m tests.campaigns.memory --records 10000000
	$(BIN)/python -m tests.campaigns.memory.reading --records 10000000
	$(BIN)/python -m tests.campaigns.leaks --producers 1000 --consumers 1000 --rebalances 10000
	$(BIN)/python -m tests.campaigns.leaks --share-consumers 1000 --rebalances 500 --kafka
	$(BIN)/python -m tests.campaigns.waits --seconds 600
	$(BIN)/python -m tests.campaigns.partitioners --keys 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.schemas --cases 100000 --jobs 2
	$(BIN)/python -m tests.campaigns.chaos --load idempotent transactional --minutes 3
	$(BIN)/python -m tests.campaigns.chaos --load etl --faults workers --minutes 1
	$(BIN)/python -m tests.campaigns.chaos --load etl --faults kill --records 500000 --rate 5000 --pause 4
	$(BIN)/python -m tests.campaigns.spark_once
	$(BIN)/python -m tests.campaigns.spark_once --kafka 3.9.2 --master 'local[2]'
	$(BIN)/python -m tests.campaigns.spark_once --foreach-batch
	$(BIN)/python -m tools.type_tutorial --until 'The same topic in Spark'

fuzz: $(READY)  ## Ten minutes of coverage-guided fuzzing for each of the native modules, message codecs and compression
	$(BIN)/python -m tests.campaigns.fuzz --seconds 600 --jobs 2 $(FUZZ_ARGS)

check: $(READY)  ## Lint, types, layers, docstrings
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/quality

docs: $(READY)  ## The site, in build/site: every page and the reference of the API; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html --conf-dir docs . build/site
	@echo "build/site/index.html"

bench: $(READY)  ## Side-by-side benchmarks against the peers on real Kafka (BENCH_ARGS=--full for all of them)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

wheel: $(READY)  ## Build the wheel into dist/
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

wheels: $(READY)  ## The sdist, and a wheel for each Python of this machine, installed and tried (WHEELS_ARGS=--tests)
	$(BIN)/python -m tools.wheels --without-compiler --sbom $(WHEELS_ARGS)

$(READY): $(SOURCES)
	@echo "Setting up $(VENV) (PySpark is large: a minute or two the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "headrace needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[spark,dev]'
	@touch $(READY)

clean:  ## Remove what was built
	rm -rf $(VENV) build dist src/*.egg-info src/headrace/*/_*.so src/headrace/*/_*.c
