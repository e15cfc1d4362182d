"""What a certificate costs: `make bench-certificate`.

Ratios to one pass, K.reshape(M·n, n) @ α over the whole stack in float64, measured in
the same process, taking turns; medians of several rounds. The rounding width is
measured at points that are optimal to machine precision, where nothing else is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.linalg
from rich.console import Console

from mklopt.certificates.certificate import certify
from mklopt.certificates.enclosure import enclose
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.formulations.lp_norm import LpNorm
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.util.tables import plain_table

Array = np.ndarray


def subset_gaussians(n: int, M: int, seed: int = 0) -> tuple[Array, Array]:
    """Gaussian kernels on random subsets of 20 features, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    K = np.empty((M, n, n))
    for m in range(M):
        Z = X[:, rng.choice(20, size=5, replace=False)]
        square = np.sum(Z**2, axis=1)
        distance = np.maximum(square[:, None] + square - 2 * Z @ Z.T, 0.0)
        K[m] = np.exp(-distance / (2 * rng.uniform(0.5, 3.0) ** 2))
        K[m] = (K[m] + K[m].T) / 2
    return K, np.sign(X[:, 0] + 0.3 * rng.normal(size=n))


def ridge_point(K: Array, y: Array, C: float) -> Array:
    """The exact dual of the squared loss at fixed kernel K, with a bias."""
    n = len(y)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.eye(n) / C
    system[:n, n] = system[n, :n] = 1.0
    return np.asarray(scipy.linalg.solve(system, np.append(y, 0.0))[:n])


def hinge_point(K: Array, y: Array, C: float) -> Array:
    """The exact dual of the hinge at fixed kernel: libsvm's sets, a linear solve."""
    from sklearn.svm import SVC

    machine = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = machine.dual_coef_[0]
    size = np.abs(alpha)
    free = np.flatnonzero((size > 1e-7 * C) & (size < C * (1 - 1e-7)))
    alpha[size >= C * (1 - 1e-7)] = (C * y)[size >= C * (1 - 1e-7)]
    alpha[size <= 1e-7 * C] = 0.0
    bound = alpha.copy()
    bound[free] = 0.0
    k = len(free)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = K[np.ix_(free, free)]
    system[:k, k] = system[k, :k] = 1.0
    right = np.append(y[free] - K[free] @ bound, -np.sum(bound))
    alpha[free] = scipy.linalg.solve(system, right)[:k]
    return alpha


def medians(*functions: Callable[[], object], rounds: int = 15) -> list[float]:
    """Median times, the functions taking turns so that all see the same machine."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, record in zip(functions, seconds):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return [float(np.median(record)) for record in seconds]


def main() -> None:
    n, M = 500, 50
    K, y = subset_gaussians(n, M)
    grams = GramStack(K)
    theta = np.full(M, 1 / M)
    mixed = grams.combine(theta)
    flat = K.reshape(M * n, n)
    numbers = ("gap", "enclosed", "enclose", "certify")
    table = plain_table(f"n = {n}, M = {M}; costs in passes", ("problem",), numbers)
    for C in (1.0, 100.0):
        points = {
            "squared": ridge_point(mixed, y, C),
            "hinge": hinge_point(mixed, y, C),
        }
        for loss, formulation in (
            ("squared", FixedWeights(theta)),
            ("hinge", FixedWeights(theta)),
            ("hinge", LpNorm(2.0)),
            ("hinge", GroupLasso()),
        ):
            problem = Problem(grams, y, loss, formulation, C)
            alpha = points[loss]
            found = certify(problem, alpha, theta)
            one, cost, plain = medians(
                partial(np.matmul, flat, alpha),
                partial(enclose, found),
                partial(certify, problem, alpha, theta),
            )
            table.add_row(
                f"{loss}, {formulation.name}, C={C:g}",
                f"{found.relative_gap:.1e}",
                f"{found.width:.1e}",
                f"{cost / one:.2f}",
                f"{plain / one:.2f}",
            )
    console = Console()
    console.print(table)
    one, built = medians(partial(np.matmul, flat, alpha), partial(GramStack, K))
    start = time.perf_counter()
    delta = grams.verify_psd()
    proof = time.perf_counter() - start
    console.print(
        f"building the stack: {built / one:.0f} passes; proof of positive semi-"
        f"definiteness: {proof / one:.0f} passes, largest δ {np.max(delta):.1e}"
    )


if __name__ == "__main__":
    main()
