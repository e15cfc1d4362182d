"""C by its error on held-out samples, and by how much any C could be better.

Between two nodes of an ε-path take the certified point (ŵ, b̂) at a C_0 in the middle.
For every C between these nodes

    P_C(ŵ, b̂) − f*(C) ≤ G,     G the larger of tangent − chord at both nodes,

as both are linear in C. Where Ω is strongly convex, all minimizers w*(C) of these C are
in one ball around ŵ, and their biases in one interval (certificates/minimizer.py). So
f*_C(x) is in an interval for each held-out x: where its sign is wrong throughout, every
C between the nodes errs. The least number of such samples, over all pairs of nodes, is
a lower bound of the error that any C of the path can have:

    δ = error at the choice − that bound

Guarantee. The solution of no C of the path has an error on these samples that is
smaller by more than δ. Without strong convexity the bound is 0, and δ the error itself.

Reference: Shibagaki, Suzuki, Karasuyama and Takeuchi (2015).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.along_C import BoundsAlongC, cut_of
from ..certificates.minimizer import primal_ball
from ..run.result import Result
from ..util.arrays import Array, labels_array, real_array

if TYPE_CHECKING:
    from .epsilon_path import EpsilonPath


class Choice(NamedTuple):
    """A choice of C, and what is proved of all others.

    Parameters
    ----------
    C : float
        Of the point with the smallest error among all that were tried.
    error : float
        The part of the samples that it gets wrong.
    delta : float
        No solution for a C of the path has an error below error − delta.
    result : Result
        The point.
    bounds : array (pairs, 3)
        C of two neighbouring nodes, and a lower bound of the error between them.
    """

    C: float
    error: float
    delta: float
    result: Result
    bounds: Array


def choose_C(path: EpsilonPath, test_stack: Any, y: Any, diagonals: Any) -> Choice:
    """Choose C of a binary problem by its error; `EpsilonPath.choose` calls it.

    Parameters
    ----------
    path : EpsilonPath
        What `mklopt.path` returned with everywhere=ε.
    test_stack : array (M, n_test, n)
        As in `Result.decision`.
    y : array (n_test,)
        The labels −1/+1 of the held-out samples.
    diagonals : array (M, n_test)
        k_m(x, x) of every kernel at every held-out sample.

    Returns
    -------
    Choice

    """
    y, diagonals = _samples(path, y, diagonals)
    best, bounds = (np.inf, path.results[0]), []
    nodes = [cut.C for cut in path.bounds.ends if path.C[0] <= cut.C]
    for left, right in pairwise(nodes):
        result = path.at(float(np.sqrt(left * right)))
        f = result.decision(test_stack)
        error = float(np.mean(y * f <= 0))
        best = min(best, (error, result), key=lambda pair: pair[0])
        wrong = _wrong_throughout(path, result, (left, right), f, y, diagonals)
        bounds.append((left, right, float(np.mean(wrong))))
    error, result = best
    found = np.array(bounds).reshape(-1, 3)
    least = float(np.min(found[:, 2], initial=error))
    C = float(np.max(result.problem.costs))
    return Choice(C, error, error - least, result, found)


def _samples(path: EpsilonPath, y: Any, diagonals: Any) -> tuple[Array, Array]:
    y, M = labels_array(y), path.problem.grams.M
    if path.problem.loss.labels != "binary" or not np.all(np.abs(y) == 1):
        raise ValueError("choose is for labels −1/+1, of the problem and of y")
    found = real_array(diagonals, "diagonals", f"an array ({M}, {len(y)})")
    if found.shape != (M, len(y)):
        raise ValueError(f"diagonals has shape {found.shape}; expected ({M}, {len(y)})")
    return y.astype(float), found


def _wrong_throughout(
    path: EpsilonPath,
    result: Result,
    ends: tuple[float, float],
    f: Array,
    y: Array,
    diagonals: Array,
) -> Array:
    """Samples that the solution of every C between two nodes gets wrong."""
    C = float(np.max(result.problem.costs))
    line = BoundsAlongC([cut_of(result.certificate, C)])
    gap = max(line.upper(end) - path.lower(end) for end in ends)
    ball = primal_ball(result.certificate, gap, C / ends[0])
    low, high = ball.predictions_at(f - result.bias, diagonals)
    return np.where(y > 0, high <= 0, low >= 0)
