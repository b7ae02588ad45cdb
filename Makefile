# The two commands of the README are `make demo` and `make test`; both set up .venv first, once.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
OUT ?= runs
# --no-compile: modules are compiled when first imported, which most of torch's never are
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# One thread a process: the tests run two processes, and small operations gain nothing from a second.
export OMP_NUM_THREADS ?= 1
# Compiled modules are kept even where the environment says not to: else every process that a test starts
# compiles torch, scipy and matplotlib again, 5 s each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo verify test test-all any-cpu lint bench docs ledger clean

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e .
	touch $@

$(DEV): $(INSTALLED)
	$(PIP) -e '.[dev]'
	touch $@

# the 2024 paper's central experiment, with the pictures that explain it
demo: $(INSTALLED)
	$(BIN)/tacit run min2024.fig2 min2024.fig1 min2025.alpha0 --out $(OUT)

# every exhibit there is
verify: $(INSTALLED)
	$(BIN)/tacit verify --out $(OUT)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ''

# the tests and the demo's verdicts with other CPUs' instructions; ONLY="--only avx2" for a part
any-cpu: $(DEV)
	$(BIN)/python -m benchmarks.any_cpu $(ONLY)

bench: $(DEV)
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks

docs: $(DEV)
	$(PIP) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# every exhibit at the two seeds that follow from the hash of the commit that froze the code, then the ledger
ledger: $(INSTALLED)
	for seed in $$($(BIN)/python -m ledger seeds); do $(BIN)/tacit verify --seed $$seed --out $(OUT)/seed-$$seed; done
	$(BIN)/python -m ledger write $$($(BIN)/python -m ledger seeds | sed 's|\([0-9]*\) *|$(OUT)/seed-\1 |g')

clean:
	rm -rf $(VENV) site runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
