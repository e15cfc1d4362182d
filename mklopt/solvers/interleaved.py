"""Steps in the kernel weights between moves of SMO, before any SVM is solved.

Problem. ℓp-norm MKL with p in [1, ∞], any loss with a quadratic dual.

Algorithm (Kloft et al. 2011, algorithm 2). Keep (K_mα)_i for all kernels and samples.
A pair of coordinates moves as in SMO with the kernel Σθ_mK_m, which takes two rows of
every kernel; after some moves the weights take their analytic step. That step is slow
for p = 1; there the weights come from the cuts collected so far (cutting_planes.py),
as in the interleaved semi-infinite program of Sonnenburg et al. (2006).

Guarantee. With p > 1 and exact SVM solutions the limit is optimal. Here the SVM is
solved to a tenth of the remaining gap, and more precisely if α does not move: the
"higher precision, if needed" of section 4.3 of the paper.
"""

import numpy as np

from ..grams.rows import RowReader
from ..problem import Problem, quadratic_dual
from ..util.compiled import compiled
from .base import Iterate, Steps, solver
from .machines import smo
from .start import first_weights
from .steps.cutting_planes import Cuts

# The gap of the SVM relative to the whole gap: at first, and at least.
FIRST_SHARPNESS, SHARPEST = 0.1, 1e-8
# The moves of one call write about so many numbers: a tenth of a second.
NUMBERS_AT_ONCE, FEWEST_MOVES = 20_000_000, 20


@solver(
    "interleaved",
    needs={"ball"},
    keeps="full",
    reference="kloft2011",
    uses="highspy",
    guarantee="limit points are optimal for p > 1",
)
def interleaved(problem: Problem, *, start: object = None) -> Steps:
    """Moves of SMO, and a step in the weights after some of them."""
    reader, grams = RowReader(problem.grams), problem.grams
    dual = quadratic_dual(problem)
    theta, alpha = first_weights(problem, start)
    alpha = problem.feasible(np.zeros(grams.n) if alpha is None else alpha).copy()
    images = np.array(grams.matvec(alpha))  # (K_mα)_i
    tol, sharpness = 0.0, FIRST_SHARPNESS
    cuts = Cuts(grams.M, problem.formulation.ball)
    while True:
        state = (theta, *dual, problem.bias, alpha, images, grams.diag().T @ theta)
        moves = reader(_moves, *state, tol, moves_at_once(grams.M, grams.n))
        v = np.sqrt(np.maximum(np.sum(images * alpha, axis=1), 0.0))
        certificate = yield Iterate(problem.feasible(alpha), theta)
        if moves == 0:  # α was good enough already: ask for more precision
            sharpness = max(0.3 * sharpness, SHARPEST)
        tol = sharpness * max(certificate.gap, 0.0)
        if problem.formulation.ball == 1:
            cuts.add(alpha, problem.dual_loss(alpha), v)
            theta = cuts.minimum()
            yield Iterate(problem.feasible(cuts.mixture()), theta)
        else:
            theta = problem.formulation.weights(theta * v)


def moves_at_once(M: int, n: int) -> int:
    """The moves of one call, at most n."""
    return max(FEWEST_MOVES, min(n, NUMBERS_AT_ONCE // (M * n)))


@compiled()
def _moves(
    K, read, theta, linear, kink, ridge, low, high, bias, alpha, images, diag, tol, most
):
    """Moves of the SVM at fixed θ, in place, all K_mα kept up to date."""
    M, n = images.shape
    g = ridge * alpha - linear
    for m in range(M):
        g += theta[m] * images[m]
    row = np.empty(n)
    for moves in range(most):
        if moves % (n // 2 + 1) == 0:
            gap, _ = smo.inner_gap(linear, kink, ridge, low, high, bias, alpha, g)
            if gap <= tol:
                return moves
        i, way, slope = smo.pick(g, kink, ridge, alpha, low, high, diag, bias)
        if i < 0:
            return moves
        if bias:
            smo.combined_row(K, read, theta, i, row)
        j, fall, bend = smo.mate(i, slope, g, kink, ridge, alpha, low, row, diag, bias)
        if j < 0:
            return moves
        reach = smo.longest(i, j, way, kink, low, high, alpha)
        step = way * min(fall / bend, reach)
        smo.shift(i, j, step, low, high, alpha)
        smo.add_rows(K, read, theta, i, j, step, images, g)
        g[i] += step * ridge[i]
        if j != i:
            g[j] -= step * ridge[j]
    return most
