"""HessianMKL: Newton's method in the kernel weights on the simplex.

Problem. Sparse MKL, ½(Σ‖w_m‖)² or LpNorm(1): min of J(θ) over θ ≥ 0, Σθ = 1. The same
steps on a product of simplices finish VSKL (mirror.py), with G of bca.py in place of J.

Algorithm (Chapelle and Rakotomamonjy 2008). J has the gradient −½v² and a Hessian that
costs one product with the kernels at stake (bca.py); the step is the minimum of the
quadratic model on the simplex, shortened until J falls enough. Kernels of weight 0 with
v_m well below the largest are left out of the model.

Guarantee. J falls in every step; quadratic convergence once the free coordinates of the
machine and the kernels in use no longer change. Own stop of the paper (predicted
decrease 1e-5) does not mean a gap of 1e-3; here the certificate decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem import Problem
from .base import Steps, beginning, solver
from .bca import Oracle

Array = np.ndarray


@solver(
    "hessian",
    needs={"simplex"},
    losses={"quadratic"},
    accuracy=1e-6,
    reference="kloft2011",
    guarantee="J falls in every step; quadratic convergence near the solution",
)
def hessian(problem: Problem, *, start: Any = None) -> Steps:
    theta, alpha = beginning(problem, start)
    everything = (tuple(range(problem.grams.M)),)
    yield from newton(Oracle(problem, everything, 1.0, alpha, 1e-5), theta)


def newton(oracle: Oracle, theta: Array) -> Steps:
    """Newton steps on a product of simplices, from θ on."""
    theta = _clean(theta, oracle)
    yield from oracle.solve(theta)
    while True:
        certificate = yield oracle.iterate()
        oracle.heed(certificate)
        value, slope = oracle.value, oracle.slope
        steepest = np.zeros(len(oracle.theta))
        np.minimum.at(steepest, oracle.owner, slope)
        which = np.flatnonzero((theta > 0) | (slope < 0.9 * steepest[oracle.owner]))
        model = oracle.hessian(which)
        model[np.diag_indices_from(model)] += 1e-9 * np.trace(model) / len(which)
        target = np.zeros_like(theta)
        target[which] = simplex_minimum(
            model, slope[which], theta[which], oracle.owner[which]
        )
        step, t = target - theta, 1.0
        falls = float(slope @ step)
        for _ in range(30):
            trial = _clean(theta + t * step, oracle)
            yield from oracle.solve(trial)
            if value + 1e-4 * t * falls + oracle.gap >= oracle.value:
                break
            certificate = yield oracle.iterate()
            oracle.heed(certificate)
            t *= 0.3
        theta = trial


def _clean(theta: Array, oracle: Oracle) -> Array:
    """Every group sums to 1, and what is next to nothing is nothing."""
    theta = np.where(theta < 1e-10 * np.max(theta), 0.0, theta)
    return np.asarray(theta / oracle.sums(theta)[oracle.owner])


def simplex_minimum(H: Array, slope: Array, theta: Array, owner: Array) -> Array:
    """argmin over z in a product of simplices of ⟨slope, z − θ⟩ + ½ (z − θ)ᵀH(z − θ).

    owner: the simplex that each coordinate belongs to
    """
    import clarabel

    M, J = len(theta), int(np.max(owner)) + 1
    member = sp.csc_matrix((np.ones(M), (owner, np.arange(M))), shape=(J, M))
    scale = float(np.max(np.abs(slope))) or 1.0
    P = sp.csc_matrix(np.triu(H) / scale)
    linear = (slope - H @ theta) / scale
    A = sp.vstack([member, -sp.eye(M)], format="csc")
    b = np.append(np.ones(J), np.zeros(M))
    cones = [clarabel.ZeroConeT(J), clarabel.NonnegativeConeT(M)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.max_threads = 1
    found = clarabel.DefaultSolver(P, linear, A, b, cones, settings).solve()
    z = np.maximum(np.array(found.x), 0.0)
    z[z < 1e-9] = 0.0
    sums = member @ z
    if not np.all(np.isfinite(sums) & (sums > 0)):
        return theta
    return np.asarray(z / sums[owner])
