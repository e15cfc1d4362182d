"""Larger sets and many kernels: tables 3 and 11, figures 1 and 2, and the headlines.

Adult, Web and Covertype are cut to n samples where K(d), an n × n matrix, would not fit
into memory; the sizes are in the rows. Kernels are computed on the fly.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mklopt import Problem, certify, kernels, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import FixedWeights, Tikhonov
from mklopt.gmkl.families import Product

from . import authors
from .authors import ABLATION, METHODS, SPG, Inner, Price
from .settings import KEY, LARGE, Sums, cost_of_products, large, pair

Array = np.ndarray


def sets(scale: Scale, names: tuple[str, ...] = LARGE) -> tuple[str, ...]:
    """Covertype at full size only."""
    return names[: scale.of(1, 2, 3)]


def samples(scale: Scale) -> int:
    """Training samples of the larger sets."""
    return scale.of(60, 300, 8000)


def many(scale: Scale) -> int:
    """Kernels on Sonar in table 3 and figure 1: 20,000 in the paper."""
    return scale.of(40, 500, 20_000)


def larger(scale: Scale) -> list[dict[str, Any]]:
    """A part for each set and p; Sonar stands for very many kernels."""
    return [{"name": name, "p": p} for name in (*sets(scale), "sonar")
            for p in (1.33, 2.0)]  # fmt: skip


def task(scale: Scale, name: str) -> tuple[Sums, Array, float]:
    """Sums of a larger set, or of many kernels on Sonar."""
    if name == "sonar":
        return large(scale, name, scale.of(60, 187, 187), many(scale))
    return large(scale, name, samples(scale), scale.of(10, 50, 50))


# ---- table 3, table 11, figure 1 -------------------------------------------------


@study(KEY, parts=larger, timed=True)
def large_sums(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Sums on larger sets and with many kernels, to the paper's end."""
    family, y, C = task(scale, name)
    about = {"set": name, "p": p, "n": family.n, "M": family.M, "C": C}
    rows = []
    for method, rules in METHODS.items():
        inner = Inner(family, Price(p), y, C, rules.precision)
        found = authors.run(inner, rules, scale.of(40, 120, 1000))[1]
        rows.append({**about, "method": method, **found})
    return rows


@study(KEY, parts=larger, timed=True)
def large_components(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """PGD, then S and N together, then P; SVMs and what they cost."""
    family, y, C = task(scale, name)
    rows = []
    for method in ("PGD", "+N+S", "SPG"):
        rules = ABLATION[method]
        inner = Inner(family, Price(p), y, C, rules.precision)
        found = authors.run(inner, rules, scale.of(40, 120, 1000))[1]
        rows.append({"set": name, "p": p, "n": family.n, "M": family.M,
                     "method": method, **found})  # fmt: skip
    return rows


@study(KEY, parts=lambda scale: [{"name": name} for name in ("w7a", "sonar")],
       timed=True)  # fmt: skip
def paths(scale: Scale, name: str) -> list[dict[str, Any]]:
    """Step by step: W as reported, CPU seconds; p = 1.33."""
    family, y, C = task(scale, name)
    problem = Problem(family.stack, y, "hinge", Tikhonov(1.33, 0.5), C)
    exact, rows = solve(problem, "auto", tol=1e-7).certificate, []
    for method in ("SPG", "PGD"):
        rules = METHODS[method]
        inner = Inner(family, Price(1.33), y, C, rules.precision)
        start = np.full(family.M, 1 / family.M)
        authors.warm_up()
        for state in authors.descend(inner, start, rules):
            rows.append({"set": name, "method": method, "seconds": state.seconds,
                         "svm": state.svms, "W": state.value, "gap": state.gap,
                         "low": exact.lower, "high": exact.upper})  # fmt: skip
            if state.ends or state.svms >= scale.of(40, 120, 1000):
                break
    return rows


# ---- tables 8 and 10 --------------------------------------------------------------


@study(KEY, parts=lambda scale: [{"name": name, "p": p} for name in sets(scale)
                                 for p in (1.0, 1.33)], timed=True)  # fmt: skip
def large_products(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Products on larger sets: features in 42 groups, one Gaussian for each."""
    n, most = scale.of(60, 200, 4000), scale.of(8, 42, 42)
    train = pair(scale, name, n)[0]
    C = cost_of_products(pair(scale, name, min(n, 300))[0], scale.seed)
    parts = np.array_split(np.arange(train.X.shape[1]), min(most, train.X.shape[1]))
    family = Product(squares(train.X[:, part]) for part in parts)
    rows = []
    for method, rules in METHODS.items():
        inner = Inner(family, Price(p), train.y, C, rules.precision)
        found = authors.run(inner, rules, scale.of(40, 300, 1000))[1]
        rows.append({"set": name, "p": p, "n": n, "M": family.M, "C": C,
                     "method": method, **found})  # fmt: skip
    return rows


def squares(X: Array) -> Array:
    """Squared distances, with a diagonal of zeros."""
    size = np.sum(X**2, axis=1)
    D = np.maximum(size[:, None] + size - 2 * X @ X.T, 0.0)
    np.fill_diagonal(D, 0.0)
    return 0.5 * (D + D.T)


# ---- figure 2 -----------------------------------------------------------------------


def growing(scale: Scale) -> list[dict[str, Any]]:
    """What grows, on which set, and how far: samples of Adult and Web, kernels of
    Sonar."""
    ns = scale.of((30, 60), (100, 200, 400), (1000, 2000, 4000, 8000))
    Ms = scale.of((10, 40), (100, 400, 1600), (1000, 10_000, 100_000))
    found = [{"name": name, "along": "n", "size": n}
             for name in sets(scale, ("a8a", "w7a")) for n in ns]  # fmt: skip
    return found + [{"name": "sonar", "along": "M", "size": M} for M in Ms]


@study(KEY, parts=growing, timed=True)
def scaling(scale: Scale, name: str, along: str, size: int) -> list[dict[str, Any]]:
    """CPU seconds of SPG over samples and over kernels, and of PGD for p = 2; C = 10.

    C is the same for all sizes, so that one thing grows at a time.
    """
    few, most = scale.of((60, 10), (145, 50), (145, 50))
    n, M = (size, most) if along == "n" else (few, size)
    family, y, _ = large(scale, name, n, M)
    rows = []
    for method, p in (("SPG", 1.33), ("SPG", 1.66), ("SPG", 2.0), ("PGD", 2.0)):
        rules = METHODS[method]
        inner = Inner(family, Price(p), y, 10.0, rules.precision)
        found = authors.run(inner, rules, scale.of(40, 100, 300))[1]
        rows.append({"along": along, "set": name, "n": n, "M": M, "method": method,
                     "p": p, **found})  # fmt: skip
    return rows


# ---- headlines -----------------------------------------------------------------------


@study(KEY, parts=lambda scale: [{"M": scale.of(200, 10_000, 1_000_000)}], timed=True)
def a_million(scale: Scale, M: int) -> dict[str, Any]:
    """SPG on Sonar with very many kernels, p = 1.33, to the paper's end; one sweep."""
    family, y, C = large(scale, "sonar", scale.of(60, 187, 187), M)
    begun, d = time.process_time(), np.full(M, 1 / M)
    family.gradient(d, 0.5 * y)
    sweep = time.process_time() - begun
    inner = Inner(family, Price(1.33), y, C, SPG.precision)
    state, found = authors.run(inner, SPG, scale.of(40, 200, 200))
    problem = Problem(family.stack, y, "hinge", Tikhonov(1.33, 0.5), C)
    end = certify(problem, dual=inner.alpha, weights=state.d).relative_gap
    return {"n": family.n, "M": M, "C": C, "sweep": sweep, "certified": end, **found}


WIDTHS, LANDMARKS = (1.0, 2.0, 4.0, 8.0, 16.0), 200
PENALTIES = (1e4, 1e6, 1e8)  # nC, from which the best of a small part is taken


def five(scale: Scale, X: Array) -> Any:
    """Five Gaussians by landmarks."""
    rank = scale.of(10, LANDMARKS, LANDMARKS)
    family = kernels.nystroem(kernels.gaussians(WIDTHS), rank, seed=scale.seed)
    return family.fit(X, normalize="spherical")


def penalty(scale: Scale) -> float:
    """nC with the fewest errors on as many samples again as it is found on."""
    train, held = pair(scale, "covtype", scale.of(40, 2000, 20_000))
    fitted, wrong = five(scale, train.X), {}
    held_X, held_y = held.X[: len(train.y)], held.y[: len(train.y)]
    for nC in PENALTIES:
        problem = Problem(fitted.grams(), train.y, "hinge", Tikhonov(1.33, 0.5),
                          nC / len(train.y))  # fmt: skip
        f = solve(problem, "auto", tol=1e-2).decision(fitted.cross_features(held_X))
        wrong[nC] = float(np.mean(np.sign(f) != held_y))
    return min(wrong, key=lambda nC: (wrong[nC], nC))


@study(KEY, parts=lambda scale: [{"n": scale.of(50, 5000, 464_809)}], timed=True)
def covertype(scale: Scale, n: int) -> dict[str, Any]:
    """Five Gaussians on Covertype by landmarks: SPG beside one SVM on the uniform sum.

    The printed rules of SPG (mklopt's spg with λ_max = 10 and no metric of ours), with
    an SVM solver in feature space; p = 1.33. Both to a certified gap of 1e-3 of the
    approximate problem. `exact` is the gap that the same α proves of the exact kernels.
    """
    train, test = pair(scale, "covtype", n)
    fitted = five(scale, train.X)
    grams = fitted.grams("float32")
    problem = Problem(grams, train.y, "hinge", Tikhonov(1.33, 0.5), penalty(scale) / n)
    found: dict[str, Any] = {"n": n, "C": float(problem.costs[0])}
    one = problem.with_(formulation=FixedWeights(np.full(len(WIDTHS), 1.0)))
    solve(one, "auto", tol=0.5)  # compiles
    begun = time.process_time()
    single = solve(one, "auto", tol=1e-3)
    found |= {"single": time.process_time() - begun, "single_gap": single.relative_gap}
    begun = time.process_time()
    end = solve(problem, "spg", tol=1e-3, scaled=False, longest=10.0, max_iter=200)
    found |= {"seconds": time.process_time() - begun, "gap": end.relative_gap}
    found |= {"svm": int(end.trace.last("svm_solves")), "there": end.converged}
    f = end.decision(fitted.cross_features(test.X[:5000]))
    return found | {"error": float(np.mean(np.sign(f) != test.y[:5000]))}
