"""Formulas of sections 3.2 to 3.4 against independent computations, on small instances.

A step (3) by an interior-point method that knows no dual, derivatives by differences,
and the kernels that a line search meets.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mklopt.claims.items import Scale, study

from .formulas import Array, Logistic, Slacks, Squared, Step, norms

KEY = "suzuki2009"


def instance(rng: np.random.Generator, loss: str, n: int = 14, M: int = 6) -> Step:
    """A proximal step from a random sparse α, with every part of it at work."""
    X = rng.normal(size=(M, n, 4))
    K = X @ X.transpose(0, 2, 1) / 4 + 1e-2 * np.eye(n)
    y = np.sign(X[0, :, 0] + X[-1, :, 0] + 0.5 * rng.normal(size=n))
    alpha = 0.5 * rng.normal(size=(M, n)) * (np.arange(M) % 2 == 0)[:, None]
    xi, zeta = rng.exponential(size=(2, n)) * (rng.random(n) < 0.5)
    side = {
        "logistic": Logistic(y),
        "squared": Squared(y),
        "hinge": Slacks(y, xi, zeta, 1.5),
    }[loss]
    b = float(rng.normal())
    return Step(K, side, 1.5, alpha, b, rng.uniform(0.5, 2.0, M), 0.7)


def conic_step(step: Step) -> tuple[Array, float, float]:
    """α, b and the value of (3) from an interior-point method that knows no dual."""
    import cvxpy as cp

    L = [np.linalg.cholesky(K) for K in step.K]
    W = [cp.Variable(len(K)) for K in step.K]  # Lᵀα
    b = cp.Variable()
    z = sum(A @ w for A, w in zip(L, W, strict=True)) + b
    y, loss, constraints = step.loss.y, step.loss, []
    if isinstance(loss, Slacks):
        xi, zeta = cp.Variable(len(y), nonneg=True), cp.Variable(len(y), nonneg=True)
        constraints = [cp.multiply(y, z) == 1 - xi + zeta]
        fit = cp.sum(xi) + cp.sum_squares(xi - loss.xi) / (2 * loss.gamma)
        fit += cp.sum_squares(zeta - loss.zeta) / (2 * loss.gamma)
    elif isinstance(loss, Logistic):
        fit = cp.sum(cp.logistic(cp.multiply(-y, z)))
    else:
        fit = cp.sum_squares(y - z)
    for A, w, old, gamma in zip(L, W, step.alpha, step.gamma, strict=True):
        fit += step.C * cp.norm(w) + cp.sum_squares(w - A.T @ old) / (2 * gamma)
    fit += cp.square(b - step.b) / (2 * step.gamma_b)
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-8)
    program = cp.Problem(cp.Minimize(fit), constraints)
    program.solve(solver=cp.CLARABEL, **tight)
    alpha = [
        np.linalg.solve(A.T, np.asarray(w.value)) for A, w in zip(L, W, strict=True)
    ]
    return np.array(alpha), float(np.asarray(b.value)), float(program.value)


@study(KEY)
def proximal_steps(scale: Scale) -> pd.DataFrame:
    """Steps by eqs. (5)–(7) and (10)–(12) against those of a conic solver on (3).

    `twice`: the same with the threshold C in place of γC in the update.
    """
    rows = []
    for loss in ("logistic", "squared", "hinge"):
        for trial in range(scale.of(2, 4, 20)):
            step = instance(scale.rng("steps", loss, trial), loss)
            rho = step.minimum()
            alpha, b, value = conic_step(step)
            found, shift = step.after(rho)
            other = step.alpha + step.gamma[:, None] * rho
            short = np.maximum(norms(step.K, other) - step.C, 0.0)
            other = other * (short / norms(step.K, other))[:, None]
            start = np.sum(norms(step.K, step.alpha) ** 2 / (2 * step.gamma))
            start += step.b**2 / (2 * step.gamma_b)
            if isinstance(step.loss, Slacks):
                old = step.loss.xi**2 + step.loss.zeta**2
                start += np.sum(old) / (2 * step.loss.gamma)
            rows.append(
                {
                    "loss": loss,
                    "trial": trial,
                    "apart": float(np.max(norms(step.K, found - alpha))),
                    "bias": abs(shift - b),
                    "value": abs(start - step.phi(rho) - value) / abs(value),
                    "twice": float(np.max(norms(step.K, other - alpha))),
                    "size": float(np.max(norms(step.K, alpha))),
                    "active": int(np.sum(norms(step.K, alpha) > 1e-6)),
                }
            )
    return pd.DataFrame(rows)


@study(KEY)
def derivatives(scale: Scale) -> pd.DataFrame:
    """Eqs. (8) and (9) against central differences of (7), relative errors."""
    rows, h = [], 1e-5
    for loss in ("logistic", "squared"):
        for trial in range(scale.of(4, 20, 100)):
            rng = scale.rng("derivatives", loss, trial)
            step = instance(rng, loss)
            rho = step.loss.y * rng.uniform(0.2, 0.8, len(step.loss.y))
            d = rng.normal(size=len(rho))
            up, down = rho + h * d, rho - h * d
            slope = (step.phi(up) - step.phi(down)) / (2 * h)
            bend = (step.gradient(up) - step.gradient(down)) / (2 * h)
            scale_of = float(np.linalg.norm(bend))
            off = {
                name: float(np.linalg.norm(H @ d - bend)) / scale_of
                for name, H in (
                    ("hessian", step.hessian(rho)),
                    ("swapped", step.hessian(rho, swapped=True)),
                )
            }
            gradient = abs(float(step.gradient(rho) @ d) - slope) / abs(slope)
            used = int(np.sum(step.active(rho)))
            rows.append(
                {"loss": loss, "trial": trial, "gradient": gradient, **off,
                 "active": used}
            )  # fmt: skip
    return pd.DataFrame(rows)


@study(KEY)
def at_the_threshold(scale: Scale) -> pd.DataFrame:
    """Jumps of slope and curvature of φ where a kernel becomes active, as shares."""
    rows, h = [], 1e-6
    for trial in range(scale.of(4, 20, 100)):
        rng = scale.rng("threshold", trial)
        step = instance(rng, "squared", M=1)
        step = step.moved(0 * step.alpha, step.b)
        d = rng.normal(size=len(step.loss.y))
        rho = d * step.C / float(norms(step.K, d)[0])  # ‖γρ‖ = γC: on the edge
        d = rho / np.linalg.norm(rho)
        slopes = [float(step.gradient(rho + t * d) @ d) for t in (-h, 0.0, h)]
        bends = [(slopes[1] - slopes[0]) / h, (slopes[2] - slopes[1]) / h]
        jump = abs(slopes[2] - slopes[0]) / max(abs(slopes[1]), 1.0)
        rows.append(
            {
                "trial": trial,
                "slope": jump,
                "curvature": abs(bends[1] - bends[0]) / max(map(abs, bends)),
                "inside": bends[0],
                "outside": bends[1],
            }
        )
    return pd.DataFrame(rows)


@study(KEY)
def line_search_sets(scale: Scale) -> pd.DataFrame:
    """Kernels active somewhere on a step ρ … ρ + Δρ, and those that a set misses."""
    rows = []
    for trial in range(scale.of(20, 100, 1000)):
        rng = scale.rng("line", trial)
        step = instance(rng, "squared", M=20)
        rho, move = rng.normal(size=(2, len(step.loss.y)))
        size = 2 * float(np.median(norms(step.K, rho))) / step.C
        rho, move = rho / size, move / size

        def over(shift: Array, at: Array, step: Step = step) -> Array:
            """‖ρ + shift/γ_m‖ > C."""
            v = at + shift / step.gamma[:, None]
            return norms(step.K, v) > step.C

        grid = np.linspace(0.0, 1.0, 21)
        ever = np.any([step.active(rho + c * move) for c in grid], axis=0)
        ends = step.active(rho) | step.active(rho + move)
        missed = 0
        for c in grid[1:]:
            here = step.active(rho + c * move)
            shift = np.broadcast_to(c * move, step.alpha.shape)
            printed = over(shift, rho) | over(shift, rho + move)
            missed = max(missed, int(np.sum(here & ~printed)))
        rows.append(
            {
                "trial": trial,
                "kernels": len(step.K),
                "active": int(np.sum(ever)),
                "ends_miss": int(np.sum(ever & ~ends)),
                "printed_misses": missed,
            }
        )
    return pd.DataFrame(rows)
