"""Better dual points for exact kernels: block steps on rows that are computed once.

At weights θ the dual of the SVM with K(θ) = Σθ_mK_m is improved block by block:

    B    the coordinates that violate optimality most, BLOCK or n/FEWEST of them
    α_B  solved with K(θ)_BB by SMO (solvers/machines/smo.py), all others fixed
    K_mα updated at all points with the columns B of every kernel; then θ follows: the
         weights that majorize Ω at u_m = θ_m‖α‖_{K_m}

A pass is as many steps as blocks fill n: every kernel entry is computed about once.
Nothing of size n² is stored. Losses with a quadratic dual (hinge, squared,
ε-insensitive, …) have such passes.
"""

from __future__ import annotations

import numpy as np

from ..certificates.enclosure import exact_point
from ..formulations.losses.base import Quadratic
from ..problem import Problem, quadratic_dual
from ..solvers.machines.smo import smo
from .exact_values import Images

Array = np.ndarray
BLOCK = 2000  # coordinates of a step
FEWEST = 4  # steps of a pass
MOVES = 30  # of SMO, times BLOCK
ACCURACY = 0.02  # a block is solved to this share of its gap


def improved(
    problem: Problem, alpha: Array, theta: Array, images: Images
) -> tuple[Array, Array]:
    """α and θ after one pass; `images` are those of the new α, which is feasible."""
    dual, given = quadratic_dual(problem), alpha
    alpha, n = alpha.copy(), len(alpha)
    size = min(BLOCK, max(n // FEWEST, 2))
    for _ in range(-(-n // size)):
        theta = _followed(problem, alpha, theta, images)
        f = np.tensordot(theta, images.values, axes=1)[:, 0]
        g = f + dual.ridge * alpha - dual.linear
        which = violators(dual, problem.bias, alpha, g, size)
        change = _block_step(problem, dual, images, theta, alpha, g, which)
        if change is None:
            break
        moved = change != 0
        alpha[which] += change
        images.move(which[moved], change[moved], alpha)
    feasible = exact_point(problem, alpha)
    images.drift(alpha, feasible)
    return (feasible, theta) if np.all(np.isfinite(feasible)) else (given, theta)


def _followed(problem: Problem, alpha: Array, theta: Array, images: Images) -> Array:
    """The weights that majorize Ω at the primal point θ ⊗ α; θ where there are none."""
    with np.errstate(all="ignore"):
        u = theta * images.norms_above(alpha)
        if not np.all(np.isfinite(u)):
            return theta
        found = problem.formulation.weights(u)
    good = np.all(np.isfinite(found)) and np.any(found > 0)
    return np.asarray(found) if good else theta


def _block_step(
    problem: Problem,
    dual: Quadratic,
    images: Images,
    theta: Array,
    alpha: Array,
    g: Array,
    which: Array,
) -> Array | None:
    """The change of α on a block; None where nothing can move."""
    if len(which) < 2:
        return None
    K = images.entries.combined(theta, which)
    part = [np.ascontiguousarray(one[which]) for one in dual]
    a, slope = alpha[which].copy(), g[which].copy()
    state = (K, *part, problem.bias, a, slope)
    gap = smo(*state, 0.0, 0)[1]
    smo(*state, ACCURACY * gap, MOVES * len(which))
    change = a - alpha[which]
    return change if np.any(change) else None


def violators(dual: Quadratic, bias: bool, alpha: Array, g: Array, size: int) -> Array:
    """The coordinates that violate optimality most: half of them rise, half fall."""
    up = -(g + np.where(alpha >= 0, dual.kink, -dual.kink))
    down = g + np.where(alpha > 0, dual.kink, -dual.kink)
    up = np.where(alpha < dual.high, up, -np.inf)
    down = np.where(alpha > dual.low, down, -np.inf)
    if not bias:
        gain = np.maximum(up, down)
        order = np.argsort(-gain, kind="stable")[:size]
        return np.sort(order[gain[order] > 0])
    order = np.argsort(-up, kind="stable")[: size // 2]
    rising = order[np.isfinite(up[order])]
    rest = down.copy()
    rest[rising] = -np.inf
    order = np.argsort(-rest, kind="stable")[: size - len(rising)]
    falling = order[np.isfinite(rest[order])]
    return np.sort(np.concatenate([rising, falling]))
