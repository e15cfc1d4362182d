"""SMO on the dual of ℓp-norm MKL: the weights follow α in every move.

Problem. min over α of ½‖v(α)‖²_{q*} + C Σ V*(−α_i/C), v_m = ‖α‖_{K_m}, with 1 < p < ∞:
the dual is differentiable, its gradient is Σθ_m(α)K_mα with θ = ∂Ω*(v)/v.

Algorithm (Vishwanathan et al. 2010). Choose a pair by the gradient and the curvature at
fixed weights. Along the pair v_m² is quadratic in the step, so that a trial of the line
search costs O(M). K_mα is kept for all kernels.

Guarantee. The dual rises in every move. The closer p is to 1, the larger the curvature
of the norm, and the smaller the moves.
"""

import numpy as np

from ..formulations.norms import block_exponent, dual_exponent
from ..grams.rows import RowReader
from ..problem import Problem, quadratic_dual
from ..util.compiled import compiled
from .base import Iterate, Steps, solver
from .interleaved import moves_at_once
from .machines import smo
from .start import first_dual, first_weights


@solver(
    "smo_mkl",
    needs={"ball", "smooth_dual"},
    keeps="full",
    reference="kloft2011",
    guarantee="the dual rises in every move",
)
def smo_mkl(problem: Problem, *, start: object = None) -> Steps:
    """Moves of SMO on the dual with Ω*."""
    grams, formulation = problem.grams, problem.formulation
    reader, dual = RowReader(grams), quadratic_dual(problem)
    _, alpha = first_weights(problem, start)
    alpha = (first_dual(problem) if alpha is None else problem.feasible(alpha)).copy()
    d = dual_exponent(block_exponent(formulation.ball))
    columns = np.array(grams.diag().T, order="C")
    most = moves_at_once(grams.M, grams.n)
    while True:
        images = np.array(grams.matvec(alpha))  # anew: errors of many moves add up
        moves = reader(_moves, columns, d, *dual, problem.bias, alpha, images, most)
        v = np.sqrt(np.maximum(np.sum(images * alpha, axis=1), 0.0))
        yield Iterate(problem.feasible(alpha), formulation.dual_weights(v))
        if moves == 0:
            return


@compiled()
def _weights(quad, d, theta):
    """θ = (v/‖v‖_d)^{d−2} from v², scaled by the largest."""
    top, total = max(1e-300, np.max(quad)), 0.0
    for m in range(len(quad)):
        total += (max(quad[m], 0.0) / top) ** (0.5 * d)
    scale = max(total, 1e-300) ** ((2 - d) / d)
    for m in range(len(quad)):
        theta[m] = scale * (max(quad[m], 0.0) / top) ** (0.5 * d - 1)


@compiled()
def _slope(t, quad, cross, square, trial, theta, d, flat, bend):
    """The derivative along a pair at step t; flat + bend·t is its part without Ω*."""
    for m in range(len(quad)):
        trial[m] = quad[m] + t * (2 * cross[m] + t * square[m])
    _weights(trial, d, theta)
    total = flat + bend * t
    for m in range(len(quad)):
        total += theta[m] * (cross[m] + t * square[m])
    return total


@compiled()
def _search(fall, reach, quad, cross, square, trial, theta, d, flat, bend):
    """The root of the slope in [0, reach], by regula falsi (Illinois).

    Accepted is a slope of 1e-3 of the first one; else the lower end of the bracket.
    """
    low, high, at_low = 0.0, reach, -fall
    at_high = _slope(high, quad, cross, square, trial, theta, d, flat, bend)
    if at_high <= 0:
        return high
    side = 0
    for _ in range(40):
        t = (low * at_high - high * at_low) / (at_high - at_low)
        here = _slope(t, quad, cross, square, trial, theta, d, flat, bend)
        if abs(here) <= 1e-3 * fall:
            return t
        if here < 0:
            low, at_low = t, here
            if side == -1:
                at_high *= 0.5
            side = -1
        else:
            high, at_high = t, here
            if side == 1:
                at_low *= 0.5
            side = 1
    return low


@compiled()
def _moves(
    K, read, columns, d, linear, kink, ridge, low, high, bias, alpha, images, most
):
    """Moves along which θ follows α, in place, all K_mα kept up to date.

    Along a move by t, v_m² = quad + t (2 cross + t square).
    """
    M, n = images.shape
    g, row, diag = np.empty(n), np.empty(n), np.empty(n)
    quad, theta, trial = np.empty(M), np.empty(M), np.empty(M)
    cross, square = np.empty(M), np.empty(M)
    for m in range(M):
        quad[m] = np.sum(images[m] * alpha)
    for moves in range(most):
        _weights(quad, d, theta)
        g[:] = ridge * alpha - linear
        for m in range(M):
            t, image = theta[m], images[m]
            for k in range(n):
                g[k] += t * image[k]
        for k in range(n):
            diag[k] = np.sum(theta * columns[k])
        i, way, slope = smo.pick(g, kink, ridge, alpha, low, high, diag, bias)
        if i < 0:
            return moves
        if bias:
            smo.combined_row(K, read, theta, i, row)
        j, fall, bend = smo.mate(i, slope, g, kink, ridge, alpha, low, row, diag, bias)
        if j < 0:
            return moves
        reach = smo.longest(i, j, way, kink, low, high, alpha)
        reach = min(fall / bend, reach)
        flat, curve = -fall, ridge[i]
        if j != i:
            curve += ridge[j]
        for m in range(M):
            cross[m], square[m] = way * images[m, i], K[m, i, i]
            if j != i:
                cross[m] -= images[m, j]
                square[m] += K[m, j, j] - 2 * K[m, i, j]
            flat -= theta[m] * cross[m]
        step = _search(fall, reach, quad, cross, square, trial, theta, d, flat, curve)
        for m in range(M):
            quad[m] += step * (2 * cross[m] + step * square[m])
        smo.shift(i, j, way * step, low, high, alpha)
        smo.add_rows(K, read, theta, i, j, way * step, images, g)
    return most
