# `make demo` and `make test` need nothing but python3 (3.11 or later), git and make: the first call sets up .venv.
VENV   ?= .venv
PYTHON ?= python3
ARGS   ?=

# Bytecode is kept even where the environment says otherwise (images of containers often do): without it each process that a test
# starts compiles NumPy, PyTorch and Tilewright again.
unexport PYTHONDONTWRITEBYTECODE

BIN  := $(VENV)/bin
BASE := $(VENV)/.tilewright-base
DEV  := $(VENV)/.tilewright-dev

# Pyodide, for the explorer: its version stands in tilewright/explorer/site.py.
RUNTIME = test -f build/explorer/node_modules/pyodide/pyodide.mjs || npm install --silent --no-fund --no-audit --prefix build/explorer \
  $$(sed -n 's/^PYODIDE = "\(.*\)"/pyodide@\1/p' tilewright/explorer/site.py)

.DEFAULT_GOAL := help
.PHONY: help demo test lint site explorer bench clean setup

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(BASE)  ## a product, a race that the checker finds, a timeline and a swizzled tile
	@$(BIN)/tilewright demo --pictures docs/pictures $(ARGS)

# Programs under mypy and pyright: each takes some seconds, which `make lint` spends beside the site in continuous integration.
CHECKERS = tests/types/test_checkers.py

test: $(DEV)  ## all tests (those marked gpu only where a GPU is present); ARGS="-k swizzle" narrows
	@$(BIN)/python -m pytest -n auto --dist worksteal --ignore=$(CHECKERS) $(ARGS)

lint: $(DEV)  ## ruff, mypy, the order of imports between packages, programs under mypy and pyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q $(CHECKERS)

explorer: $(BASE)  ## explore layouts, swizzles, TMA, Stream-K and kernels in the browser (needs npm, for Pyodide)
	@$(RUNTIME)
	@$(BIN)/tilewright explore $(ARGS)

site: $(DEV)  ## the documentation as a site, in build/site; warnings and broken links are errors
	@if command -v npm >/dev/null; then $(RUNTIME); fi
	@$(BIN)/python -m tools.website

bench: $(DEV)  ## time the layout algebra, the simulator and, where there is one, the GPU
	@$(BIN)/python bench/layout.py $(ARGS)
	@$(BIN)/python bench/laptop.py $(ARGS)
	@if $(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then \
	  $(BIN)/python bench/gemm_gpu.py && $(BIN)/python bench/launch.py; \
	else echo "bench: no CUDA PyTorch here; the GPU benchmarks are left out"; fi

setup: $(DEV)  ## the development environment alone
	@echo "$(VENV) is ready"

clean:  ## remove caches and build products; the environment stays
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find tilewright tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE): pyproject.toml tools/venv.sh
	@PYTHON="$(PYTHON)" bash tools/venv.sh "$(VENV)" base
	@touch $@

$(DEV): pyproject.toml tools/venv.sh
	@PYTHON="$(PYTHON)" bash tools/venv.sh "$(VENV)" dev
	@touch $@ $(BASE)
