"""Steps in the kernel weights inside the SMO: no machine is ever solved to the end.

Problem. ℓp-norm MKL with p in [1, ∞], any loss with a quadratic dual.

Algorithm (Kloft et al. 2011, algorithm 2). Keep (K_mα)_i for all kernels and samples; a
pair of coordinates moves as in the machine on Σθ_mK_m, which takes two rows of every
kernel; after some moves the weights take their analytic step. For p = 1, where that
step is slow, the weights come from the cuts collected so far (cutting_planes.py), the
interleaved semi-infinite program of Sonnenburg et al. (2006).

Guarantee. With p > 1 and exact machines the limit is optimal. Here a machine is pushed
to a tenth of the gap that is left, and further when that does not move it: the higher
precision, if needed, of section 4.3 of the paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float64, int64

from ..problem import Problem
from ..util.compiled import STACK, VECTOR, compiled
from .base import Iterate, Steps, solver
from .machines.smo import FIVE, machine_gap, moved, pair, room, single
from .start import beginning
from .steps.cutting_planes import Cuts


@solver(
    "interleaved",
    needs={"ball"},
    losses={"quadratic"},
    accuracy=1e-6,
    reference="kloft2011",
    guarantee="limit points are optimal for p > 1",
)
def interleaved(problem: Problem, *, start: Any = None) -> Steps:
    grams = problem.grams.full()
    K, n = grams.dense(), problem.grams.n
    dual = problem.loss.quadratic(problem.y, problem.costs)
    assert dual is not None
    theta, alpha = beginning(problem, start)
    alpha = problem.feasible(np.zeros(n) if alpha is None else alpha).copy()
    images = grams.matvec(alpha)  # (K_mα)_i
    tol, sharpness, cuts = 0.0, 0.1, Cuts(len(K), problem.formulation.ball)
    while True:
        before = (K, theta, *dual, problem.bias, alpha, images)
        moves = _moves(*before, grams.diag().T @ theta, tol, at_once(K))
        grams.count_rows((3 if problem.bias else 1) * moves)
        quad = np.maximum(np.sum(images * alpha, axis=1), 0.0)
        certificate = yield Iterate(problem.feasible(alpha), theta)
        if moves == 0:  # the machine was good enough already: ask for more
            sharpness = max(0.3 * sharpness, 1e-8)
        tol = sharpness * max(certificate.gap, 0.0)
        if problem.formulation.ball == 1:
            cuts.add(alpha, problem.dual_loss(alpha), np.sqrt(quad))
            theta = cuts.minimum()
            yield Iterate(problem.feasible(cuts.mixture()), theta)
        else:
            theta = problem.formulation.weights(theta * np.sqrt(quad))


def at_once(K: np.ndarray) -> int:
    """So many moves take about a tenth of a second."""
    M, n = K.shape[:2]
    return max(20, min(n, 20_000_000 // (M * n)))


@compiled(
    int64(
        STACK,
        VECTOR,
        *FIVE,
        boolean,
        float64[::1],
        float64[:, ::1],
        VECTOR,
        float64,
        int64,
    )
)
def _moves(
    K, theta, linear, kink, ridge, low, high, bias, alpha, images, diag, tol, most
):
    """Moves of the machine at fixed θ, in place, all K_mα kept up to date."""
    M, n = images.shape
    g = ridge * alpha - linear
    for m in range(M):
        for k in range(n):
            g[k] += theta[m] * images[m, k]
    row = np.empty(n)
    for moves in range(most):
        if moves % (n // 2 + 1) == 0:
            gap, _ = machine_gap(linear, kink, ridge, low, high, bias, alpha, g)
            if gap <= tol:
                return moves
        if bias:
            i, j, fall, bend = pair(
                K, theta, g, kink, ridge, alpha, low, high, row, diag
            )
            if j < 0:
                return moves
            step = min(fall / bend, room(alpha[i], 1.0, kink[i], low[i], high[i]))
            step = min(step, room(alpha[j], -1.0, kink[j], low[j], high[j]))
            alpha[i] = moved(alpha[i], step, low[i], high[i])
            alpha[j] = moved(alpha[j], -step, low[j], high[j])
            for m in range(M):
                t, first, second, image = theta[m], K[m, i], K[m, j], images[m]
                for k in range(n):
                    change = step * (first[k] - second[k])
                    image[k] += change
                    g[k] += t * change
            g[i] += step * ridge[i]
            g[j] -= step * ridge[j]
        else:
            i, way, fall = single(g, kink, ridge, alpha, low, high, diag)
            if i < 0:
                return moves
            step = fall / max(diag[i] + ridge[i], 1e-300)
            step = way * min(step, room(alpha[i], way, kink[i], low[i], high[i]))
            alpha[i] = moved(alpha[i], step, low[i], high[i])
            for m in range(M):
                t, first, image = theta[m], K[m, i], images[m]
                for k in range(n):
                    change = step * first[k]
                    image[k] += change
                    g[k] += t * change
            g[i] += step * ridge[i]
    return most
