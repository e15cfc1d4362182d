"""Other people's solvers on our problems, each at the gap it reaches.

A competitor is a generator of attempts, from loose to tight tolerances. What counts is
the first attempt whose gap is at most 1e-3, and the time of that attempt alone. It runs
in a forked process that shares the kernels and is ended at a time limit. Gaps are those
of our certificate:

    SVC analytic   α of libsvm and its weights; hinge, what ½Σu²/θ majorizes
    SVC SILP       its weights, the α of the linear program's multipliers; hinge, ℓ1
    conic solvers  the program of reference/programs.py and its multipliers; n ≤ 200
    skglm, celer   group lasso on Cholesky factors, no bias; α = −C V'(f), since neither
                   returns a dual point (celer has no logistic group lasso; skglm: block
                   coordinate descent, proximal Newton for the logistic loss)
    EasyMKL        another problem: the value of the SVM at its weights, above the lower
                   bound of the optimum of ours; hinge, weights on the simplex
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from mklopt.certificates.certificate import Certificate, certify, relative
from mklopt.formulations.base import Formulation
from mklopt.formulations.block_norm import BlockL1
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.run.loop import solve

Array = np.ndarray
GOOD = 1e-3  # the gap that a competitor has to reach
MAX_CONIC_SAMPLES = 200
MAX_FACTOR_BYTES = 1e9  # beside the kernels


class Attempt(NamedTuple):
    """What one run of a competitor costs and reaches."""

    seconds: float
    gap: float
    apart: float = 0.0  # seconds for factors, not counted
    note: str = ""


class Arena(NamedTuple):
    """A problem, its kernels in full storage, and a lower bound of its optimum."""

    problem: Problem
    K: Array
    lower: float


@dataclass(frozen=True)
class Competitor:
    """A solver, the package it comes from, and how it is run."""

    name: str
    package: str
    why_not: Callable[[Problem], str]  # empty, or why it does not take a problem
    attempts: Callable[[Arena], Iterator[Attempt]]

    @property
    def installed(self) -> bool:
        """Whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None


# ---- libsvm ------------------------------------------------------------------


def svc_dual(K: Array, y: Array, C: float, tol: float = 1e-3) -> Array:
    """α of scikit-learn's SVC."""
    from sklearn.svm import SVC

    found = SVC(C=C, kernel="precomputed", tol=tol).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[found.support_] = found.dual_coef_[0]
    return alpha


def squares(K: Array, alpha: Array) -> Array:
    """αᵀK_mα for all kernels."""
    M, n = K.shape[:2]
    return np.asarray((K.reshape(M * n, n) @ alpha).reshape(M, n) @ alpha)


def svc_wrapper(
    K: Array, y: Array, formulation: Formulation, C: float, stop: float = 1e-3
) -> tuple[Array, Array]:
    """MKL around libsvm: solve, reweight, until the weights change by 1e-3."""
    theta = formulation.weights(np.ones(len(K)))
    while True:
        alpha = svc_dual(np.tensordot(theta, K, axes=1), y, C, min(stop, 1e-3))
        v = np.sqrt(np.maximum(squares(K, alpha), 0.0))
        new = formulation.reweight(theta, v)
        if np.linalg.norm(new - theta) <= stop * np.linalg.norm(theta):
            return theta, alpha
        theta = new


def svc_silp(K: Array, y: Array, C: float, stop: float) -> tuple[Array, Array, Array]:
    """ℓ1-MKL by cutting planes: θ, the last α, and the mean α of the last program.

    Reference: Sonnenburg et al. (2006), algorithm 1.
    """
    M, floor = len(K), -np.inf
    theta, points, cuts = np.full(M, 1 / M), [], []
    mean = np.zeros(len(y))
    sums = np.append(np.ones(M), 0.0)[None]
    while True:
        alpha = svc_dual(np.tensordot(theta, K, axes=1), y, C, min(stop, 1e-3))
        cut = np.sum(np.abs(alpha)) - 0.5 * squares(K, alpha)
        if theta @ cut - floor <= stop * abs(theta @ cut):
            return theta, alpha, mean
        points.append(alpha)
        cuts.append(np.append(cut, -1.0))
        program = {"A_ub": np.array(cuts), "b_ub": np.zeros(len(cuts))}
        limits = [(0.0, None)] * M + [(None, None)]
        found = scipy.optimize.linprog(
            np.append(np.zeros(M), 1.0), **program, A_eq=sums, b_eq=[1.0], bounds=limits
        )
        theta, floor = found.x[:M], found.x[M]
        mean = -found.ineqlin.marginals @ np.array(points)


def _analytic_attempts(arena: Arena) -> Iterator[Attempt]:
    problem, K, _ = arena
    for stop in (1e-2, 1e-3, 1e-4):
        begun = time.perf_counter()
        theta, alpha = svc_wrapper(K, problem.y, problem.formulation, _C(problem), stop)
        took = time.perf_counter() - begun
        yield Attempt(took, certify(problem, alpha, theta).relative_gap)


def _silp_attempts(arena: Arena) -> Iterator[Attempt]:
    problem, K, _ = arena
    for stop in (1e-2, 1e-3, 1e-4):
        begun = time.perf_counter()
        theta, alpha, mean = svc_silp(K, problem.y, _C(problem), stop)
        took = time.perf_counter() - begun
        found = certify(problem, alpha, theta).best_of(certify(problem, mean, theta))
        yield Attempt(took, found.relative_gap)


def _C(problem: Problem) -> float:
    return float(np.asarray(problem.C))


def _hinge(problem: Problem) -> str:
    return "" if problem.loss.name == "hinge" and problem.bias else "hinge with a bias"


def _reweighted(problem: Problem) -> str:
    majorized = "reweighted" in problem.formulation.traits
    return _hinge(problem) or ("" if majorized else "no weights that majorize")


def _simplex(problem: Problem) -> str:
    simplex = "simplex" in problem.formulation.traits
    return _hinge(problem) or ("" if simplex else "weights on a simplex only")


# ---- conic solvers -----------------------------------------------------------

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "CLARABEL": [dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-5), {}],
    "ECOS": [dict.fromkeys(("abstol", "reltol", "feastol"), 1e-5), {}],
    "SCS": [{}, {"eps_abs": 1e-6, "eps_rel": 1e-6}],
}


def _conic_attempts(name: str, arena: Arena) -> Iterator[Attempt]:
    from mklopt.reference.exact import candidates, run
    from mklopt.reference.programs import factors, primal

    begun = time.perf_counter()
    parts = factors(arena.problem.grams)
    apart = time.perf_counter() - begun
    for options in OPTIONS[name]:
        begun = time.perf_counter()
        program = primal(arena.problem, parts)
        value = run(program, name, options)
        took = time.perf_counter() - begun
        if value is None:
            yield Attempt(np.nan, np.inf, apart, "refuses the problem")
            continue
        found = candidates(arena.problem, program, parts)
        yield Attempt(took, min(c.relative_gap for c in found), apart)


def _small(problem: Problem) -> str:
    return (
        "" if problem.grams.n <= MAX_CONIC_SAMPLES else f"n ≤ {MAX_CONIC_SAMPLES} only"
    )


# ---- group lasso on factors --------------------------------------------------


def design(K: Array) -> Array:
    """X = (L_1, …, L_M), column-major, with K_m + 1e-10 I = L_m L_mᵀ."""
    M, n = K.shape[:2]
    X = np.empty((M, n, n))
    for m in range(M):
        X[m] = np.linalg.cholesky(K[m] + 1e-10 * np.eye(n)).T
    return X.reshape(M * n, n).T


def lasso_certificate(problem: Problem, X: Array, w: Array) -> Certificate:
    """Of w in the coordinates of X, with α = −C V'(f); two primal points, the better.

    The point w itself, β_m = L_m⁻ᵀ w_m, and the one with its weights ‖w_m‖/‖α‖_K.
    """
    M, n = problem.grams.M, problem.grams.n
    W, L = w.reshape(M, n), X.T.reshape(M, n, n)  # L[m] is L_mᵀ
    alpha = -problem.costs * problem.loss.gradient(X @ w, problem.y)
    B, u = np.zeros((M, n)), np.linalg.norm(W, axis=1)
    for m in np.flatnonzero(u):
        B[m] = scipy.linalg.solve_triangular(L[m], W[m])
    v = np.sqrt(np.maximum(problem.grams.quad(alpha), 1e-300))
    found = certify(problem, alpha, u / v)
    return found.best_of(certify(problem, alpha, coefficients=B))


def skglm_lasso(X: Array, y: Array, loss: str, M: int, C: float, tol: float) -> Array:
    """w of skglm's group lasso."""
    from skglm.datafits import group
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD, GroupProxNewton
    from skglm.utils.data import grp_converter

    methods = {  # GroupBCD takes steps of single features for its logistic datafit
        "squared": (group.QuadraticGroup, GroupBCD, {"max_epochs": 10_000}),
        "logistic": (group.LogisticGroup, GroupProxNewton, {}),
    }
    datafit, method, more = methods[loss]
    members, ends = grp_converter(X.shape[1] // M, X.shape[1])
    penalty = WeightedGroupL2(1 / (C * len(y)), np.ones(M), ends, members)
    run = method(tol=tol, fit_intercept=False, max_iter=1000, **more)
    return np.asarray(run.solve(X, y, datafit(ends, members), penalty)[0])


def celer_lasso(X: Array, y: Array, loss: str, M: int, C: float, tol: float) -> Array:
    """w of celer's group lasso."""
    import celer

    alpha, size = 1 / (C * len(y)), X.shape[1] // M
    model = celer.GroupLasso(
        size, alpha, tol=tol, fit_intercept=False, max_epochs=10_000
    )
    return np.asarray(model.fit(X, y).coef_)


def _lasso_attempts(fit: Callable[..., Array], arena: Arena) -> Iterator[Attempt]:
    problem, K, _ = arena
    begun = time.perf_counter()
    X = design(K)
    apart = time.perf_counter() - begun
    for tol in 10.0 ** -np.arange(3, 11):
        begun = time.perf_counter()
        w = fit(X, problem.y, problem.loss.name, len(K), _C(problem), float(tol))
        took = time.perf_counter() - begun
        yield Attempt(took, lasso_certificate(problem, X, w).relative_gap, apart)


def _group_lasso(losses: tuple[str, ...], problem: Problem) -> str:
    if problem.formulation.name != "GroupLasso" or problem.bias:
        return "group lasso without a bias only"
    if problem.loss.name not in losses:
        return f"no group lasso for the {problem.loss.name} loss"
    size = 8.0 * problem.grams.M * problem.grams.n**2
    return (
        "" if size <= MAX_FACTOR_BYTES else f"its factors take {size / 1e9:.1f} GB more"
    )


# ---- EasyMKL -----------------------------------------------------------------


def easy_weights(K: Array, y: Array) -> Array:
    """Weights of MKLpy's EasyMKL, on the simplex."""
    import torch
    from MKLpy.algorithms import EasyMKL

    stack = [torch.from_numpy(kernel) for kernel in K]
    found = EasyMKL(lam=0.1).combine_kernels(stack, torch.from_numpy(y))
    return np.array(found.weights, float)


def _easy_attempts(arena: Arena) -> Iterator[Attempt]:
    problem, K, lower = arena
    begun = time.perf_counter()
    theta = easy_weights(K, problem.y)
    took = time.perf_counter() - begun
    there = problem.with_(formulation=FixedWeights(theta))
    value = solve(there, tol=1e-6, time_limit=60.0).certificate.primal
    note = "another problem: distance from the optimum"
    yield Attempt(took, relative(value - lower, value), note=note)


# ---- all of them, and the clock ----------------------------------------------

EVERYONE = (
    Competitor("SVC analytic", "sklearn", _reweighted, _analytic_attempts),
    Competitor("SVC SILP", "sklearn", _simplex, _silp_attempts),
    *(
        Competitor(name, name.lower(), _small, partial(_conic_attempts, name))
        for name in OPTIONS
    ),
    Competitor(
        "skglm",
        "skglm",
        partial(_group_lasso, ("squared", "logistic")),
        partial(_lasso_attempts, skglm_lasso),
    ),
    Competitor(
        "celer",
        "celer",
        partial(_group_lasso, ("squared",)),
        partial(_lasso_attempts, celer_lasso),
    ),
    Competitor("EasyMKL", "MKLpy", _simplex, _easy_attempts),
)


def measure(competitor: Competitor, arena: Arena, limit: float) -> Attempt:
    """Its first good attempt, or the best there was; each has `limit` seconds."""
    warm(competitor)
    found, why = [], ""
    try:
        for attempt in in_a_child(partial(competitor.attempts, arena), limit):
            found.append(attempt)
            if attempt.gap <= GOOD:
                return attempt
    except (TimeoutError, RuntimeError) as error:
        why = str(error)
    if not found:
        return Attempt(limit, np.inf, note=why)
    best = min(found, key=lambda attempt: attempt.gap)
    return best._replace(note="; ".join(filter(None, (best.note, why))))


@lru_cache
def warm(competitor: Competitor) -> None:
    """Let it import and compile before it is timed, on problems with six samples."""
    rng = np.random.default_rng(0)
    L = rng.normal(size=(2, 6, 6))
    K, y = L @ L.transpose(0, 2, 1), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    whole = Problem(GramStack(K), y, "hinge", BlockL1())
    lasso = whole.with_(loss="squared", formulation=GroupLasso(), bias=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for toy in (whole, lasso, lasso.with_(loss="logistic")):
            if not competitor.why_not(toy):
                list(islice(competitor.attempts(Arena(toy, K, 0.0)), 4))


def in_a_child(work: Callable[[], Iterator[Any]], limit: float) -> Iterator[Any]:
    """What work() yields, computed in a forked process: memory is shared, not copied.

    TimeoutError after `limit` seconds without an item, RuntimeError when it raised.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_tell, args=(work, there), daemon=True)
    child.start()
    there.close()
    try:
        while True:
            if not here.poll(limit):
                raise TimeoutError(f"ended after {limit:.0f} s")
            item = here.recv()
            if isinstance(item, Exception):
                raise item
            yield item
    except EOFError:
        return
    finally:
        child.kill()
        child.join()
        here.close()


def _tell(work: Callable[[], Iterator[Any]], pipe: Any) -> None:
    warnings.simplefilter("ignore")  # remarks on convergence: we measure it
    try:
        for item in work():
            pipe.send(item)
    except Exception as error:
        pipe.send(RuntimeError(f"{type(error).__name__}: {error}"[:200]))
    pipe.close()
