"""What section 5.5 of the paper measures: seconds against samples and kernels.

The setting is that of the authors' scripts (copies of them are public, with SHOGUN 3.2
in github.com/xinwangliu/Radius-incorporated-MKL-algorithm): n of the 60,000 digits of
MNIST drawn anew for each seed, pixels divided by 255, odd against even, K_m(x, z) =
exp(−‖x − z‖²/1.2^(m−1)), no normalization, C = 1; methods and sizes are theirs, too. A
run ends at a certified relative gap of 1e-3, the same for all methods.

All methods share one SVM solver, one stack of kernels and one clock. In the paper they
were different programs: SHOGUN in C++, SimpleMKL and HessianMKL in Matlab. Kernels that
are stored are made before the clock starts, also the copy in full storage that methods
by rows read; the SVM gets the sum of the kernels, as in the scripts. `seconds_cpu` are
seconds of one thread; `seconds` is the clock, which other programs slow down. The first
call of each method, which compiles, is not counted. A run that does not reach the gap
in MOST_ITERATES has a status that says so, and its seconds are a lower bound.

Where 1.2^(m−1) exceeds 1e19 a kernel is 1 in double precision for all digits: from the
240th kernel on nothing is added but constants, which a bias makes useless. The exponent
is bounded by MOST_EXPONENT; numbers beyond it would not be finite.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import mklopt
from mklopt import data, kernels
from mklopt.claims.items import Scale, study
from mklopt.formulations import LpNorm

from . import rivals

Array = np.ndarray
INF = np.inf
GAP = 1e-3  # as in the paper
BASE, MOST_EXPONENT = 1.2, 3000
MOST_ITERATES, MOST_SHOWN = 2000, 50  # of one run; of chunking, 40 n rows each
WARM = 60  # samples of the run that compiles


class Method(NamedTuple):
    """A solver with a norm, and the name that it has in figure 6."""

    label: str
    solver: Any
    p: float
    options: dict[str, Any] = {}  # noqa: RUF012
    fly: bool = False  # kernels computed on the fly


CUTS = {"cuts": True}
SVM, ANALYTIC, SILP = "SVM", "interleaved analytic, ℓ4/3", "interleaved SILP, ℓ1"
SIMPLE, HESSIAN, WRAPPER = "SimpleMKL", "HessianMKL", "SILP wrapper, ℓ1"
METHODS = (
    Method(SVM, "analytic", INF),
    Method("interleaved analytic, ℓ1", rivals.chunking, 1.0),
    Method(ANALYTIC, rivals.chunking, 4 / 3),
    Method("interleaved analytic, ℓ2", rivals.chunking, 2.0),
    Method("interleaved analytic, ℓ3", rivals.chunking, 3.0),
    Method(SILP, rivals.chunking, 1.0, CUTS),
    Method("interleaved SIP, ℓ2", rivals.chunking, 2.0, CUTS),
    Method(HESSIAN, "hessian", 1.0),
    Method(SIMPLE, rivals.simple_mkl, 1.0),
    Method(WRAPPER, rivals.silp, 1.0),
    Method("algorithm 1, ℓ4/3", rivals.wrapper, 4 / 3),
    Method("SILP on the fly, ℓ1", rivals.chunking, 1.0, CUTS, True),
    Method("SIP on the fly, ℓ2", rivals.chunking, 2.0, CUTS, True),
    Method("analytic on the fly, ℓ2", rivals.chunking, 2.0, {}, True),
    Method("SVM on the fly", rivals.chunking, INF, {}, True),
)
STORED = tuple(m for m in METHODS if not m.fly)


def digits(n: int, seed: int) -> tuple[Array, Array]:
    """n digits of MNIST, drawn without replacement; odd ones are +1."""
    given = data.load("mnist")
    which = np.random.default_rng(seed).permutation(len(given.y))[:n]
    odd = np.asarray(given.y)[which].astype(int) % 2 == 1
    return np.asarray(given.X[which], float) / 255, np.where(odd, 1.0, -1.0)


def gaussians(M: int) -> Any:
    """2σ² = 1.2^0 … 1.2^(M−1)."""
    exponents = np.minimum(np.arange(M), MOST_EXPONENT)
    return kernels.gaussians([float(np.sqrt(BASE**m / 2)) for m in exponents])


def stack(method: Method, fitted: Any, stored: Any) -> Any:
    """The kernels as a method gets them."""
    if method.fly:
        return fitted.lazy(cache="0MB")
    if method.label == SVM:
        return mklopt.GramStack(stored.combine(np.ones(stored.M))[None])
    return stored


def timed(grams: Any, y: Array, method: Method) -> dict[str, Any]:
    """Seconds and work to the gap."""
    grams.forget()
    problem = mklopt.Problem(grams, y, "hinge", LpNorm(method.p), 1.0)
    chunks = method.solver is rivals.chunking
    options = {"tol": GAP, "max_iter": MOST_SHOWN if chunks else MOST_ITERATES}
    begun, cpu, before = time.perf_counter(), time.process_time(), grams.passes
    found = mklopt.solve(problem, method.solver, **options, **method.options)  # type: ignore[arg-type]
    row = {"seconds": time.perf_counter() - begun}
    row["seconds_cpu"] = time.process_time() - cpu
    used = found.weights > 1e-6 * np.max(found.weights)
    row |= {"passes": grams.passes - before, "kernels": int(np.sum(used))}
    row |= {"svms": found.trace.last("svm_solves"), "gap": found.relative_gap}
    return {**row, "support": int(np.count_nonzero(found.dual)), "status": found.status}


@cache
def warmed(label: str) -> bool:
    """Compile what a method needs, on a few samples."""
    (method,) = (m for m in METHODS if m.label == label)
    X, y = digits(WARM, 0)
    fitted = gaussians(3).fit(X)
    timed(stack(method, fitted, fitted.grams()), y, method)
    return True


def race(n: int, M: int, seed: int, methods: tuple[Method, ...]) -> list[dict]:
    """All methods on one draw of digits."""
    X, y = digits(n, seed)
    fitted = gaussians(M).fit(X)
    stored, rows = fitted.grams(), []
    stored.full()
    for method in methods:
        warmed(method.label)
        row = {"n": n, "M": M, "method": method.label, "p": method.p}
        rows.append({**row, **timed(stack(method, fitted, stored), y, method)})
    return rows


# ---- figure 6 -----------------------------------------------------------------------

SAMPLES = (100, 250, 500, 1000, 2000)


def _samples(scale: Scale) -> list[dict]:
    return [{"n": n} for n in scale.of((60, 90), SAMPLES[:4], SAMPLES)]


@study("kloft2011", parts=_samples, timed=True)
def times_by_samples(scale: Scale, n: int) -> list[dict]:
    """Seconds and work to a gap of 1e-3 against n, 50 kernels (10 in tests)."""
    return race(n, scale.of(10, 50, 50), scale.seed, METHODS)


def _kernels(scale: Scale) -> list[dict]:
    return [{"M": M} for M in scale.of((5, 10), (10, 50, 200), (10, 20, 50, 100, 200))]


@study("kloft2011", parts=_kernels, timed=True)
def times_by_kernels(scale: Scale, M: int) -> list[dict]:
    """The same against M, with 1000 samples (500 in quick runs)."""
    return race(scale.of(60, 500, 1000), M, scale.seed, METHODS)


# ---- what does not fit in memory ----------------------------------------------------


def _both(scale: Scale) -> list[dict]:
    return [{"p": 1.0}, {"p": 2.0}]


def at_scale(n: int, M: int, p: float, seed: int) -> list[dict]:
    """Algorithm 2 on the fly, as in the paper, and the solver that we would take."""
    X, y = digits(n, seed)
    fitted, rows = gaussians(M).fit(X), []
    own = Method("chunks on the fly", rivals.chunking, p, {"cuts": p == 1}, True)
    for method in (own, Method("auto", "auto", p, {}, True)):
        small = gaussians(3).fit(X[:WARM])
        timed(small.lazy(cache="0MB"), y[:WARM], method)
        grams = fitted.lazy(cache="1GB")
        grams.verify_psd()
        row = {"n": n, "M": M, "method": method.label, "p": p}
        rows.append({**row, **timed(grams, y, method)})
    return rows


@study("kloft2011", parts=_both, timed=True)
def many_samples(scale: Scale, p: float) -> list[dict]:
    """20,000 samples, 50 kernels on the fly: 149 GB if they were stored."""
    return at_scale(scale.of(60, 2000, 20_000), scale.of(5, 50, 50), p, scale.seed)


@study("kloft2011", parts=_both, timed=True)
def many_kernels(scale: Scale, p: float) -> list[dict]:
    """10,000 kernels of 1000 samples on the fly: 74 GB if they were stored."""
    return at_scale(scale.of(60, 500, 1000), scale.of(10, 1000, 10_000), p, scale.seed)


@study("kloft2011", timed=True)
def thousand(scale: Scale) -> list[dict]:
    """1000 stored kernels of 1000 samples (float32, packed), SILP around SVMs."""
    X, y = digits(scale.of(60, 500, 1000), scale.seed)
    fitted, M = gaussians(scale.of(20, 1000, 1000)).fit(X), scale.of(20, 1000, 1000)
    warmed(WRAPPER)
    (method,) = (m for m in METHODS if m.label == WRAPPER)
    row = {"n": len(y), "M": M, "method": WRAPPER, "p": 1.0}
    return [{**row, **timed(fitted.grams(dtype="float32"), y, method)}]
