# make install | test | test-all | certify | lint | bench | bench-wrappers | bench-spicy | bench-vskl | bench-spg |
#      bench-obscure | bench-lazy | bench-multiclass | contract
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
# One thread per worker: two workers with two BLAS threads each only fight.
ONE    := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 RAYON_NUM_THREADS=1

.PHONY: install test test-all certify lint bench bench-wrappers bench-spicy bench-vskl bench-spg bench-obscure \
        bench-lazy bench-multiclass contract clean
        bench-lazy contract clean
.PHONY: install test test-all certify lint bench bench-wrappers bench-spicy bench-vskl bench-spg bench-obscure \
        bench-lazy bench-multiclass contract clean

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

test: install
	$(ONE) $(BIN)/python -m pytest -q -n $(JOBS) -m "not full"

test-all: install
	$(ONE) $(BIN)/python -m pytest -q -n $(JOBS)

certify: install
	$(ONE) $(BIN)/mklopt certify --quick --jobs $(JOBS) $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	$(ONE) $(BIN)/python -m mklopt.bench

bench-wrappers: install
	$(ONE) $(BIN)/python -m mklopt.bench_wrappers

bench-spicy: install
	$(ONE) $(BIN)/python -m mklopt.bench_spicy $(ARGS)

bench-vskl: install
	$(ONE) $(BIN)/python -m mklopt.bench_vskl $(ARGS)

bench-spg: install
	$(ONE) $(BIN)/python -m mklopt.bench_spg $(ARGS)

bench-obscure: install
	$(ONE) $(BIN)/python -m mklopt.bench_obscure $(ARGS)

bench-lazy: install
	$(ONE) $(BIN)/python -m mklopt.bench_lazy $(ARGS)

bench-multiclass: install
	$(ONE) $(BIN)/python -m mklopt.bench_multiclass $(ARGS)

contract: install
	$(ONE) $(BIN)/python -c "from mklopt.reference.contract import main; main()"

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
