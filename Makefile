# Needs python3 (3.11 or newer) and make; everything else is installed into .tools and .venv.
PYTHON ?= python3
READY := .venv/.ready
BIN := .venv/bin
# Some tests wait more than they compute, so there are more processes than cores. One thread each:
# the matrices of the tests are small. Bytecode is kept, also where the environment forbids it:
# the tests start hundreds of processes that would all compile the package.
TESTING := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(TESTING) $(BIN)/pytest
PARALLEL := -n 4 --dist worksteal
BENCHMARKS := matrices intervals choosing allocation expectations findings wallclock in_flight textclass family embedded search searches limits table_agreement strategic workers soak history harbor_environment harbor_comparison harbor_search harbor_trials projections dashboard ray_trials

.PHONY: help install demo test test-docker test-ray test-long check bench figures screenshots lock clean

help:
	@echo "make install     install everything into .venv; the command is .venv/bin/coevolve"
	@echo "make demo        run a real search with the embedded model on a fifth of the evaluations"
	@echo "make test        run the tests (about 5 minutes on two cores)"
	@echo "make test-long   run the tests with all repetitions; record the result (half an hour or more)"
	@echo "make test-docker run the tests of task environments in Docker; record the result (as root)"
	@echo "make test-ray    run the tests of Ray clusters; record the result (about 5 minutes)"
	@echo "make check       run ruff and mypy, check the imports, list the module sizes"
	@echo "make bench       measure speed and quality; results go to benchmarks/results"
	@echo "make bench-NAME  run one benchmark: $(BENCHMARKS)"
	@echo "make figures     draw the figures of the documentation"
	@echo "make screenshots take the screenshots of the documentation (needs chromium; half an hour)"
	@echo "make lock        update the pinned dependencies"
	@echo "make clean       remove .venv and .tools"

$(READY): requirements.lock pyproject.toml .python-version tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py
	@touch $@

install: $(READY)
	@echo "Installed; the command is .venv/bin/coevolve."
	@echo "Next: .venv/bin/coevolve demo (a real search), or .venv/bin/coevolve init in a folder of yours."

demo: $(READY)
	@$(BIN)/coevolve demo

test: $(READY)
	@$(PYTEST) $(PARALLEL)

# A private Docker engine is made of Debian's packages, which needs root on Debian.
test-docker: $(READY)
	@$(TESTING) $(BIN)/python tools/docker_tests.py $(PARALLEL)

# One after another: each test starts a cluster of several nodes.
test-ray: $(READY)
	@$(TESTING) $(BIN)/python tools/ray_tests.py

test-long: $(READY)
	@$(TESTING) $(BIN)/python tools/long_tests.py $(PARALLEL) $(AGAIN)

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/pytest tests/test_imports.py
	@$(BIN)/python tools/sizes.py


bench: $(READY)
	@$(BIN)/python benchmarks/core.py
	@$(BIN)/python benchmarks/coverage.py
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/lab.py
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/engine.py
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/faults.py
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/latency.py
	@$(BIN)/python benchmarks/harbor_environment.py
	@$(BIN)/python benchmarks/harbor_trials.py

# Each takes minutes to hours; the head of its file says what it measures.
bench-%: $(READY)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/$*.py

figures: $(READY)
	@$(BIN)/python docs/figures.py
	@$(BIN)/python docs/figures_choosing.py
	@$(BIN)/python docs/figures_wallclock.py
	@$(BIN)/python docs/figures_searches.py

screenshots: $(READY)
	@$(BIN)/python docs/screenshots.py

lock: $(READY)
	@uv=.tools/bin/uv; [ -x $$uv ] || uv=uv; $$uv pip compile pyproject.toml --group dev \
	  --universal --python-version 3.12 --generate-hashes --no-emit-index-url --upgrade \
	  --quiet --custom-compile-command "make lock" --output-file requirements.lock

clean:
	rm -rf .venv .tools
