# The two commands of the README are `make demo` and `make test`; both set up .venv first, once.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= runs
# One thread a process: the tests run two processes, and small operations gain nothing from a second.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all lint bench docs ledger clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tacit verify --out $(OUT)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2

test-all: lint
	$(BIN)/python -m pytest -n 2 -m ''

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m mkdocs build --strict

# the pages that show what `make demo` measured
ledger: demo
	$(BIN)/python docs/write_ledger.py $(OUT)
	cp $(OUT)/min2025.robust/figure.png docs/assets/robust.png

clean:
	rm -rf $(VENV) site runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
