# Needs python3 (3.11 or newer, any) and make; everything else is fetched into .tools and .venv.
PYTHON ?= python3
READY := .venv/.ready
BIN := .venv/bin

.PHONY: help install demo test check bench bench-matrices bench-choosing bench-findings bench-wallclock bench-textclass bench-family bench-embedded bench-search figures lock clean

help:
	@echo "make install  all that is needed, into .venv; the command is .venv/bin/coevolve"
	@echo "make demo     a real search: embedded model, embedded data, a fifth of the evaluations"
	@echo "make test     run the tests"
	@echo "make check    ruff, formatting, mypy, import direction, module sizes"
	@echo "make bench    speed and quality benchmarks; results go to benchmarks/results"
	@echo "make bench-matrices  selection quality on real outcome matrices (half an hour)"
	@echo "make bench-choosing  budgets, costs and stopping rules in synthetic worlds"
	@echo "make bench-findings  the paper's findings in synthetic worlds"
	@echo "make bench-wallclock  orders of trials and overlap, in simulated hours"
	@echo "make bench-textclass  the built-in harnesses with the embedded model (an hour)"
	@echo "make bench-family  a family of harnesses in full, and protocols searching them"
	@echo "make bench-embedded  speed of the embedded model"
	@echo "make bench-search  the paper's main table: real searches, offline (hours; may be stopped)"
	@echo "make figures  draw the figures of the documentation"
	@echo "make lock     pin the dependencies anew"
	@echo "make clean    remove .venv and .tools"

$(READY): requirements.lock pyproject.toml .python-version tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py
	@touch $@

install: $(READY)

demo: $(READY)
	@$(BIN)/coevolve demo

test: $(READY)
	@$(BIN)/pytest -n 3

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

bench-matrices bench-choosing bench-findings bench-wallclock bench-textclass bench-family bench-embedded bench-search: $(READY)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/$(@:bench-%=%).py

figures: $(READY)
	@$(BIN)/python docs/figures.py
	@$(BIN)/python docs/figures_choosing.py
	@$(BIN)/python docs/figures_wallclock.py

lock: $(READY)
	@uv=.tools/bin/uv; [ -x $$uv ] || uv=uv; $$uv pip compile pyproject.toml --group dev \
	  --universal --python-version 3.12 --generate-hashes --no-emit-index-url --upgrade \
	  --quiet --custom-compile-command "make lock" --output-file requirements.lock

clean:
	rm -rf .venv .tools
