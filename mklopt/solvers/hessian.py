"""HessianMKL: Newton's method in the kernel weights on the simplex.

Problem. Sparse MKL, ½(Σ‖w_m‖)² or LpNorm(1): min of J(θ) over θ ≥ 0, Σθ = 1.

Algorithm (Chapelle and Rakotomamonjy 2008). J has the gradient −½v² and a Hessian that
costs one product with the kernels at stake (wrapper.py); the step is the minimum of the
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
from .wrapper import Machine

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
    theta = theta / np.sum(theta)
    machine = Machine(problem, alpha)
    machine.solve(theta)
    while True:
        certificate = yield machine.iterate()
        machine.heed(certificate)
        value, slope = machine.J, -0.5 * machine.v**2
        at_stake = (theta > 0) | (slope < 0.9 * np.min(slope))
        which = np.flatnonzero(at_stake)
        model = machine.hessian(which)
        model[np.diag_indices_from(model)] += 1e-9 * np.trace(model) / len(which)
        target = np.zeros_like(theta)
        target[which] = simplex_minimum(model, slope[which], theta[which])
        step, t = target - theta, 1.0
        falls = float(slope @ step)
        for _ in range(30):
            trial = _clean(theta + t * step)
            machine.solve(trial)
            if value + 1e-4 * t * falls + machine.tol >= machine.J:
                break
            certificate = yield machine.iterate()
            machine.heed(certificate)
            t *= 0.3
        theta = trial


def _clean(theta: Array) -> Array:
    theta = np.where(theta < 1e-10 * np.max(theta), 0.0, theta)
    return np.asarray(theta / np.sum(theta))


def simplex_minimum(H: Array, slope: Array, theta: Array) -> Array:
    """argmin over z in the simplex of ⟨slope, z − θ⟩ + ½ (z − θ)ᵀH(z − θ)."""
    import clarabel

    M = len(theta)
    scale = float(np.max(np.abs(slope))) or 1.0
    P = sp.csc_matrix(np.triu(H) / scale)
    linear = (slope - H @ theta) / scale
    A = sp.vstack([np.ones((1, M)), -sp.eye(M)], format="csc")
    b = np.append(1.0, np.zeros(M))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(M)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.max_threads = 1
    found = clarabel.DefaultSolver(P, linear, A, b, cones, settings).solve()
    z = np.maximum(np.array(found.x), 0.0)
    if not np.all(np.isfinite(z)) or not np.any(z):
        return theta
    z[z < 1e-9] = 0.0
    return np.asarray(z / np.sum(z))
