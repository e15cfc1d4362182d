"""Figures 1 and 2, table 1, and the complexity of Aflalo et al. (2011).

Figures 1 and 2: Gaussian kernels on single features of the four UCI sets, unit trace,
C = 1000, 70 % of the data. Mirror descent has the step of section 3.2.1, the last
iterate, and no polishing. All solvers are read off twice: where the paper stops (the
objective changes by less than 1e-4 of itself) and at a certified gap of 1e-2. SimpleMKL
and HessianMKL are ours: the first has conjugate directions, which help it. Seconds are
CPU seconds, certificates included (about one pass for each iterate).

Table 1: flowers17, the photographs of Oxford flowers with seven descriptors of our own
and random splits of the paper's sizes. In tests the quadrants of scikit-learn's digits.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mklopt import GramStack, Problem, data, kernels, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import VSKL, BlockNorm, LpNorm
from mklopt.solvers.mirror import softmax, step_length, width
from mklopt.tasks.one_vs_rest import OneVsRest, one_vs_rest

from .settings import problems
from .studies import (
    INF,
    KEY,
    digits,
    methods,
    oracle_of,
    settle,
    uniform,
    view_kernels,
    well_conditioned,
)

Array = np.ndarray
CHANGE = 1e-4  # of the objective, relative: where the paper stops
GAP = 1e-2  # certified, relative: the same for all solvers
SOLVERS: dict[str, dict[str, Any]] = {
    "mirror": {"iterate": "last", "polish": False},
    "simple": {},
    "hessian": {},
}


# ---- figures 1 and 2 -----------------------------------------------------------------


def cases(scale: Scale) -> list[dict[str, Any]]:
    """Sets and widths for each feature; sonar goes to 960 and 1920 kernels."""
    quick: dict[str, tuple[int, ...]] = {"liver": (4, 32), "sonar": (2, 8)}
    full: dict[str, tuple[int, ...]] = {
        "liver": (4, 16, 64, 160),
        "wpbc": (2, 8, 30),
        "ionosphere": (2, 8, 30),
        "sonar": (2, 8, 16, 32),
    }
    tiny: dict[str, tuple[int, ...]] = {"twonorm": (2, 5)}
    counts = scale.of(tiny, quick, full)
    return [{"name": name, "count": k} for name, ks in counts.items() for k in ks]


@study(KEY, parts=cases, timed=True)
def race(scale: Scale, name: str, count: int) -> list[dict[str, Any]]:
    """SVM calls and CPU seconds of three solvers of sparse MKL."""
    rows = []
    share = scale.of(0.3, 0.7, 0.7)
    for solver, problem in problems(name, count, scale.seed, share).items():
        options = SOLVERS[solver]
        solve(problem, solver, tol=0.5, max_iter=2, **options)  # compiles
        run = Run()
        # Time is given to SimpleMKL by iterates, which are at least one SVM each.
        found = solve(problem, solver, tol=0.0, max_iter=scale.of(50, 300, 3000),
                      callback=run, **options)  # fmt: skip
        M = problem.grams.M
        for where, at in run.ends().items():
            rows.append({"data": name, "kernels": M, "solver": solver, "where": where,
                         "reached": at >= 0, "svm_calls": run.calls[at],
                         "seconds": run.seconds[at], "gap": run.gaps[at],
                         "status": found.status})  # fmt: skip
    return rows


class Run:
    """A callback that notes what was spent, and stops where both ends are met."""

    def __init__(self) -> None:
        self.begun = time.process_time()
        self.seconds: list[float] = []
        self.calls: list[int] = []
        self.gaps: list[float] = []
        self.values: list[float] = []

    def __call__(self, certificate: Any, trace: Any) -> bool:
        self.seconds.append(time.process_time() - self.begun)
        self.calls.append(int(trace.last("svm_solves")))
        self.gaps.append(float(trace.last("gap")))
        self.values.append(float(trace.last("primal")))
        return min(self.ends().values()) >= 0

    def ends(self) -> dict[str, int]:
        """The iterate at which each end is met; −1: never, that is: what was spent."""
        f = np.array(self.values)
        still = np.abs(np.diff(f)) < CHANGE * np.abs(f[:-1])
        close = np.array(self.gaps) <= GAP
        return {"paper": int(np.argmax(still)) + 1 if np.any(still) else -1,
                "gap": int(np.argmax(close)) if np.any(close) else -1}  # fmt: skip


@study(KEY, timed=True, parts=lambda scale: [
    {"m": m} for m in scale.of((20, 40), (80, 160, 320), (250, 500, 1000, 2000))
])  # fmt: skip
def examples(scale: Scale, m: int) -> list[dict[str, Any]]:
    """Mirror descent and SimpleMKL with more and more samples of Adult, 20 kernels."""
    group = on_adult(scale, m, scale.of(5, 20, 20))
    rows = []
    for solver in ("mirror", "simple"):
        problem = group
        if solver == "simple":
            problem = group.with_(formulation=LpNorm(1.0))
        solve(problem, solver, tol=0.5, max_iter=2, **SOLVERS[solver])
        run = Run()
        solve(problem, solver, tol=0.0, max_iter=scale.of(50, 300, 3000), callback=run,
              **SOLVERS[solver])  # fmt: skip
        for where, at in run.ends().items():
            rows.append(
                {
                    "m": m,
                    "solver": solver,
                    "where": where,
                    "reached": at >= 0,
                    "svm_calls": run.calls[at],
                    "seconds": run.seconds[at],
                }
            )
    return rows


def on_adult(scale: Scale, m: int, M: int) -> Problem:
    """One group of Gaussians on random features of m samples of Adult, C = 10."""
    found = data.load("wdbc" if scale.mode == "tiny" else "a1a")
    train = found.split(m, seed=scale.seed)[0].standardized()
    family = kernels.subset_gaussians(M, seed=scale.seed)
    grams = family.fit(train.X, normalize="unit_trace").grams()
    return Problem(grams, train.y, "hinge", VSKL((range(M),), 1.0), 10.0)


# ---- the complexity O(m² n_tot log n_max / ε²) ---------------------------------------


def grown(scale: Scale) -> list[dict[str, Any]]:
    """What grows while the rest stays: samples, kernels; ε is read off each run."""
    ms = scale.of((20, 40), (80, 160, 320), (250, 500, 1000, 2000))
    Ms = scale.of((5, 20), (20, 80, 320), (20, 80, 320, 1280))
    m, M = scale.of((20, 5), (80, 20), (250, 20))
    return [{"along": "m", "m": k, "M": M} for k in ms] + [
        {"along": "n", "m": m, "M": k} for k in Ms
    ]


EPSILONS = (1e-1, 3e-2, 1e-2, 3e-3)  # of the optimum


@study(KEY, parts=grown, timed=True)
def complexity(scale: Scale, along: str, m: int, M: int) -> list[dict[str, Any]]:
    """Algorithm 1 (one group, A = 1): iterations and CPU seconds until the best G is
    within ε of the optimum."""
    problem = on_adult(scale, m, M)
    best = solve(problem, "auto", tol=1e-6).certificate.lower
    o, rows, left = oracle_of(problem, 1e-5 * best), [], list(EPSILONS)
    lam, size = uniform(o), float(np.sqrt(np.prod(width(o))))
    settle(o, lam)  # compiles
    begun, first = time.process_time(), 0.0
    for t in range(1, scale.of(60, 1000, 20_000) + 1):
        settle(o, lam)
        first = first or o.bounds.upper - best
        while left and o.bounds.upper - best <= left[0] * best:
            eps = left.pop(0)
            rows.append({"along": along, "m": m, "M": M, "eps": eps, "steps": t,
                         "seconds": time.process_time() - begun,
                         "first": first / best})  # fmt: skip
        if not left:
            break
        slope = o.slope
        s = step_length(t, size, slope, 0.0)
        lam = softmax(np.log(np.maximum(lam, 1e-300)) - s * slope, o)
    return rows


# ---- table 1 -------------------------------------------------------------------------

WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of exp(−χ²/width), in units of the mean χ²
COSTS = (1.0, 10.0, 100.0, 1000.0)


def flowers(scale: Scale) -> tuple[GramStack, Array, Array, Array, Array, Array, int]:
    """Kernels of the training images, kernels with held-out and test images, labels,
    and how many kernels a descriptor has.

    60 + 20 images of each of 17 flowers; 15 of the 60 are held out while C is chosen.
    """
    if scale.mode == "tiny":
        train, valid, test = digits(scale, scale.seed, 0)
        fitted = view_kernels(train)
        return (fitted.grams(), fitted.cross(valid.views), fitted.cross(test.views),
                train.y, valid.y, test.y, 5)  # fmt: skip
    found = data.load("flowers17")
    fit, held, new = scale.of((0, 0, 0), (8, 4, 10), (45, 15, 20))
    rng, parts = scale.rng("flowers"), ([], [], [])  # type: ignore[var-annotated]
    for c in range(17):
        rows = rng.permutation(np.flatnonzero(found.y == c))
        ends = np.cumsum([fit, held, new])
        for part, chosen in zip(parts, np.split(rows[: ends[-1]], ends[:-1])):
            part.extend(chosen)
    old, held_out, fresh = (np.array(part) for part in parts)
    stacks: list[list[Array]] = [[], [], []]
    for view in found.views.values():
        X = np.asarray(view, float)
        X = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-12)
        apart = [chi_square(X[rows], X[old]) for rows in (old, held_out, fresh)]
        mean = float(np.mean(apart[0]))
        for w in WIDTHS:
            for stack, D in zip(stacks, apart):
                stack.append(np.exp(-D / (w * mean)) / len(old))
    K, *cross = (np.stack(stack) for stack in stacks)
    y = np.asarray(found.y)
    return (GramStack(0.5 * (K + K.transpose(0, 2, 1))), cross[0], cross[1], y[old],
            y[held_out], y[fresh], len(WIDTHS))  # fmt: skip


def chi_square(A: Array, B: Array) -> Array:
    """½ Σ (a − b)²/(a + b) for all pairs of rows."""
    D = np.zeros((len(A), len(B)))
    for k in range(A.shape[1]):
        a, b = A[:, k, None], B[None, :, k]
        D += 0.5 * (a - b) ** 2 / np.maximum(a + b, 1e-12)
    return D


@study(KEY)
def accuracy(scale: Scale) -> list[dict[str, Any]]:
    """Test accuracy and SVM calls of the methods of table 1, C chosen on held-out data.

    One against the rest, certified gap 1e-2 for each class; calls are at the C chosen.
    """
    grams, held, new, y, valid, test, size = flowers(scale)
    groups = tuple(range(j, j + size) for j in range(0, grams.M, size))
    costs = scale.of((100.0,), (10.0, 1000.0), COSTS)
    base = Problem(grams, y, "multiclass_hinge", BlockNorm(2.0), 1.0)
    rows = []
    for name, (form, solver) in methods(groups).items():
        tried = []
        for C in costs:
            found = one_vs_rest(base.with_(formulation=form, C=C), solver, tol=1e-2,
                                max_iter=300)  # fmt: skip
            tried.append((_hits(found, held, valid), -C, found))
        valued, C, found = max(tried, key=lambda row: row[:2])
        calls = sum(int(r.trace.last("svm_solves")) for r in found.results)
        rows.append({"method": name, "C": -C, "validation": valued,
                     "accuracy": _hits(found, new, test), "svm_calls": calls,
                     "converged": found.converged})  # fmt: skip
    return rows


def _hits(found: OneVsRest, new: Array, y: Array) -> float:
    return float(np.mean(found.predict(new) == y))


# ---- interior points -----------------------------------------------------------------


@study(KEY)
def cones(scale: Scale) -> list[dict[str, Any]]:
    """(P) for rational q with second-order cones alone, and (13) for q = ∞.

    Second-order cones are what standard software had in 2011; `other` counts cones of
    any other kind (power, exponential, semidefinite) in the program. Values are beside
    certified intervals: of the optimum of (P), of G(λ) for (13).
    """
    rows = [_primal(scale, q) for q in (1.5, 2.0, 3.0)]
    return rows + [_oracle_13(scale, factor) for factor in (2.0, 1.0)]


def _primal(scale: Scale, q: float) -> dict[str, Any]:
    import cvxpy as cp

    problem: Any = well_conditioned(scale, q)
    n, M = problem.grams.n, problem.grams.M
    roots = [np.linalg.cholesky(K) for K in problem.grams.dense()]
    w, b = [cp.Variable(n) for _ in range(M)], cp.Variable()
    f = cp.sum([L @ v for L, v in zip(roots, w)]) + b
    sums = [
        cp.sum([cp.norm(w[k], 2) for k in group])
        for group in problem.formulation.groups
    ]
    power: Any = 2 * q
    omega = 0.5 * cp.square(cp.pnorm(cp.hstack(sums), power, approx=True))
    loss = cp.sum(cp.pos(1 - cp.multiply(problem.y, f)))
    program = cp.Problem(cp.Minimize(float(problem.costs[0]) * loss + omega))
    exact = solve(problem, "auto", tol=1e-8).certificate
    return {"q": q, "factor": 0.0, **_solved(program), "lower": exact.lower,
            "upper": exact.upper}  # fmt: skip


def _solved(program: Any) -> dict[str, Any]:
    """The value by an interior-point method, and cones that are not of second order."""
    import cvxpy as cp

    dims = program.get_problem_data(cp.CLARABEL)[0]["dims"]
    other = int(dims.exp) + len(dims.p3d) + len(dims.psd)
    program.solve(solver=cp.CLARABEL, tol_gap_rel=1e-8, tol_gap_abs=1e-8,
                  tol_feas=1e-8)  # fmt: skip
    return {"value": float(program.value), "other": other}


def _oracle_13(scale: Scale, factor: float) -> dict[str, Any]:
    """The maximum of (13) at a random λ; factor: that of γ_jv_j, 2 in the paper."""
    import cvxpy as cp

    problem = well_conditioned(scale, INF, 10.0)
    o = oracle_of(problem, 1e-10)
    lam = softmax(scale.rng("cones").normal(size=len(o.owner)), o)
    bounds = settle(o, lam).bounds
    K, y, C = problem.grams.dense(), problem.y, float(problem.costs[0])
    alpha = cp.Variable(len(y))
    gamma, v = (cp.Variable(len(o.groups), nonneg=True) for _ in range(2))
    limits = [alpha >= 0, alpha <= C, y @ alpha == 0, cp.sum(gamma) <= 1]
    for j, group in enumerate(o.groups):
        Q = sum(lam[k] * K[k] for k in group)
        half = np.linalg.cholesky(Q).T @ (y[:, None] * np.eye(len(y)))
        ends = cp.hstack([half @ alpha, (gamma[j] - v[j]) * np.sqrt(factor / 4)])
        limits.append(cp.norm(ends, 2) <= (gamma[j] + v[j]) * np.sqrt(factor / 4))
    program = cp.Problem(cp.Maximize(cp.sum(alpha) - cp.sum(v)), limits)
    return {"q": INF, "factor": factor, **_solved(program), "lower": bounds.lower,
            "upper": bounds.upper}  # fmt: skip
