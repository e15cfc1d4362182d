# make install | test | test-all | test-lowest | test-latest | certify | lint | bench | contract | papers | registry | docs | checker
#      make bench NAME=spicy ARGS="--largest 1000": one of the files in benchmarks/
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
RIVALS := .venv-bench
PAGES  := .venv-docs
JOBS   ?= 2
# One thread per worker: two workers with two BLAS threads each only fight.
ONE    := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 RAYON_NUM_THREADS=1

.PHONY: install test test-all test-lowest test-latest certify lint bench contract papers registry docs checker clean

install: $(STAMP)

# compat: the folder on the path, so that a script beside a clone called mklopt imports the package, not the clone.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
           --config-settings editable_mode=compat -e .

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python $(INSTALL)
	-$(BIN)/mklopt warmup
	@touch $(STAMP)

test: install
	$(ONE) $(BIN)/python -m pytest -q -n $(JOBS) -m "not full"

test-all: install
	$(ONE) $(BIN)/python -m pytest -q -n $(JOBS)

# The same tests with the oldest versions that pyproject.toml allows, and with the newest
# there are; PYTHON=python3.13 takes another Python. Each in an environment of its own.
# Old packages have remarks about each other, which are no errors.
test-lowest: .venv-lowest/.installed
	$(ONE) .venv-lowest/bin/python -m pytest -q -n $(JOBS) -m "not full" -W ignore::DeprecationWarning

test-latest: .venv-latest/.installed
	$(ONE) .venv-latest/bin/python -m pytest -q -n $(JOBS) -m "not full"

.venv-%/.installed: pyproject.toml tests/requirements.py
	$(PYTHON) -m venv .venv-$*
	$(PYTHON) tests/requirements.py $* > .venv-$*/requirements.txt
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -r .venv-$*/requirements.txt
	.venv-$*/bin/python $(INSTALL)
	@touch $@

certify: install
	$(ONE) $(BIN)/mklopt certify --quick --jobs $(JOBS) $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# NAME is a file of benchmarks/. Those with other people's solvers run in an environment of their own.
NAME   := flagship
BENCH  := $(if $(filter flagship estimators,$(NAME)),$(RIVALS),$(VENV))
ALL_CORES := flagship from_x million disk cluster digits exact features many_samples

bench: $(BENCH)/.installed
	$(if $(filter $(ALL_CORES),$(NAME)),,$(ONE)) $(BENCH)/bin/python -m benchmarks $(NAME) $(ARGS)

# Competitors that cannot be installed are left out.
$(RIVALS)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(RIVALS)/bin/python $(INSTALL)
	-$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock skglm celer
	-$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock --no-build-isolation torch==2.13.0 MKLpy
	@touch $@

# Claims checked and figures redrawn, all five papers; pages in papers/<key>/README.md. ARGS=--full: their sizes.
papers: install
	$(ONE) $(BIN)/mklopt paper all --jobs $(JOBS) $(ARGS)

# Does git's history have the rule of every measured claim before its result?
registry: install
	$(BIN)/mklopt paper all --registry

# Runs the code on every page, and every notebook; warnings and dead links are errors. Needs no network once
# its environment is there. Open docs-out/index.html. ARGS="-D run_blocks=0 -D plot_gallery=0" only formats.
docs: $(PAGES)/.installed
	rm -rf docs-out
	$(ONE) $(PAGES)/bin/python docs/notebooks.py
	$(ONE) $(PAGES)/bin/python -m sphinx -q -E -W --keep-going $(ARGS) docs docs-out
	$(PAGES)/bin/python docs/links.py docs-out

$(PAGES)/.installed: requirements.lock docs/requirements.lock pyproject.toml
	$(PYTHON) -m venv $(PAGES)
	$(PAGES)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock -r docs/requirements.lock
	$(PAGES)/bin/python $(INSTALL)
	@touch $@

contract: install
	$(ONE) $(BIN)/python tests/contract/make_references.py $(ARGS)

# The second checker of certificate files. Needs g++, GMP and MPFR (Debian: libgmp-dev, libmpfr-dev).
CHECKER := checker-cpp/certificate-checker

checker: $(CHECKER)

$(CHECKER): $(wildcard checker-cpp/*.cpp checker-cpp/*.hpp)
	$(CXX) -std=c++17 -O2 -Wall -Wextra -o $@ checker-cpp/main.cpp -lmpfr -lgmpxx -lgmp

clean:
	rm -rf $(CHECKER) $(VENV) $(RIVALS) $(PAGES) .venv-lowest .venv-latest docs-out docs/generated build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
