"""Formulas of sections 3.2 to 3.4 against independent computations, on small instances.

A step (3) by an interior-point method that knows no dual, derivatives by differences,
and the kernels that a line search meets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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


# ---- what section 3 says of φ and of the updates -------------------------------------


def lagrangian_step(step: Step, multipliers: bool = True) -> tuple[Array, float]:
    """α and b after a step of the augmented Lagrangian method on the dual of (P).

    min over ρ, u of f*(−ρ) + bΣρ + γ_b(Σρ)²/2 + Σ α_mᵀK_m(ρ − u_m) + γ_m‖ρ − u_m‖²/2
    with ‖u_m‖_{K_m} ≤ C; then α_m ← α_m + γ_m(ρ − u_m) and b ← b + γ_bΣρ.
    multipliers=False leaves α and b out of what is minimized: a penalty method.
    """
    import cvxpy as cp

    M, n = step.alpha.shape
    L = [np.linalg.cholesky(K) for K in step.K]
    rho, u = cp.Variable(n), [cp.Variable(n) for _ in range(M)]
    a, b = (step.alpha, step.b) if multipliers else (0 * step.alpha, 0.0)
    fit = _conjugate(step.loss, rho) + b * cp.sum(rho)
    fit += 0.5 * step.gamma_b * cp.square(cp.sum(rho))
    for m, A in enumerate(L):
        apart = A.T @ (rho - u[m])
        fit += (A.T @ a[m]) @ apart + 0.5 * step.gamma[m] * cp.sum_squares(apart)
    ball = [cp.norm(A.T @ v) <= step.C for A, v in zip(L, u, strict=True)]
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    cp.Problem(cp.Minimize(fit), ball).solve(solver=cp.CLARABEL, **tight)
    found = np.asarray(rho.value)
    v = np.array([np.asarray(part.value) for part in u])
    after = step.alpha + step.gamma[:, None] * (found - v)
    return after, step.b + step.gamma_b * float(np.sum(found))


def _conjugate(loss: Any, rho: Any) -> Any:
    """f*(−ρ) of the logistic and the squared loss, as a program."""
    import cvxpy as cp

    if isinstance(loss, Squared):
        return cp.sum_squares(rho) / 4 - loss.y @ rho
    a = cp.multiply(loss.y, rho)
    return -cp.sum(cp.entr(a)) - cp.sum(cp.entr(1 - a))


@study(KEY)
def lagrangian_steps(scale: Scale) -> pd.DataFrame:
    """(5) and (6) beside the augmented Lagrangian method on the dual, and beside a
    penalty method that has no multipliers; in units of ‖α‖."""
    rows = []
    for loss in ("logistic", "squared"):
        for trial in range(scale.of(2, 8, 20)):
            step = instance(scale.rng("lagrangian", loss, trial), loss)
            alpha, b = step.after(step.minimum())
            size = float(np.max(norms(step.K, alpha)))
            row: dict[str, Any] = {"loss": loss, "trial": trial}
            for name, kept in (("apart", True), ("penalty", False)):
                other, shift = lagrangian_step(step, kept)
                off = float(np.max(norms(step.K, other - alpha))) / size
                row |= {name: off, f"{name}_bias": abs(shift - b)}
            rows.append(row)
    return pd.DataFrame(rows)


@study(KEY)
def convexity(scale: Scale) -> pd.DataFrame:
    """φ(½(ρ + ρ')) − ½φ(ρ) − ½φ(ρ') and ⟨∇φ(ρ) − ∇φ(ρ'), ρ − ρ'⟩, in units of φ; and
    the former of φ with a hard threshold, which keeps blocks whole or sets them to 0.

    Far: random pairs. Near: about a point where a kernel becomes active.
    """
    rows = []
    for loss in ("logistic", "squared", "hinge"):
        for trial in range(scale.of(10, 200, 1000)):
            rng = scale.rng("convex", loss, trial)
            step = instance(rng, loss)
            y = step.loss.y
            one, two = (y * rng.uniform(0.01, 0.99, len(y)) for _ in range(2))
            pairs = {"far": (one, two)}
            if np.any(step.active(one) != step.active(two)):
                edge, d = _edge(step, one, two)
                pairs["near"] = (edge - d, edge + 3 * d)
            for where, (a, b) in pairs.items():
                size = abs(step.phi(a)) + abs(step.phi(b)) + 1
                slopes = float((step.gradient(a) - step.gradient(b)) @ (a - b))
                bent = [_bent(f, a, b) / size for f in (step.phi, partial(_hard, step))]
                rows.append((loss, trial, where, slopes / size, *bent))
    names = ["loss", "trial", "where", "slopes", "above", "hard"]
    return pd.DataFrame(rows, columns=names)


def _bent(f: Callable[[Array], float], a: Array, b: Array) -> float:
    """How far f at the middle is above the mean of the ends."""
    return f(0.5 * (a + b)) - 0.5 * (f(a) + f(b))


def _edge(step: Step, one: Array, two: Array) -> tuple[Array, Array]:
    """Where a kernel that is active at one end alone becomes active, and a short way
    from there into where it is."""
    m = int(np.argmax(step.active(one) != step.active(two)))
    if step.active(one)[m]:
        one, two = two, one
    short = 1e-3 * (two - one)
    for _ in range(40):
        middle = 0.5 * (one + two)
        one, two = (one, middle) if step.active(middle)[m] else (middle, two)
    return two, short


def _hard(step: Step, rho: Array) -> float:
    """φ with blocks that are kept whole where they are longer than γC."""
    v, size = step.v(rho), norms(step.K, step.v(rho))
    blocks = np.where(size > step.gamma * step.C, size**2 / (2 * step.gamma), 0.0)
    bias = (step.b + step.gamma_b * float(np.sum(rho))) ** 2 / (2 * step.gamma_b)
    assert v.shape == step.alpha.shape
    return float(step.loss.dual(rho)[0]) + float(np.sum(blocks)) + bias


@study(KEY)
def inner_minima(scale: Scale) -> pd.DataFrame:
    """Where φ is least: the distance of y_iρ_i to the ends of [0, 1] for the logistic
    loss, and for the hinge with its own conjugate, the box, and no slacks."""
    rows = []
    for loss in ("logistic", "hinge"):
        for trial in range(scale.of(5, 40, 200)):
            step = instance(scale.rng("inner", trial), loss)
            smooth = loss == "logistic"
            a = step.loss.y * step.minimum() if smooth else _boxed(step)
            nearest = float(np.min(np.minimum(a, 1 - a)))
            at_end = float(np.mean(np.minimum(a, 1 - a) < 1e-6))
            rows.append((loss, trial, nearest, at_end))
    return pd.DataFrame(rows, columns=["loss", "trial", "nearest", "at_end"])


def _boxed(step: Step) -> Array:
    """yρ at the minimum of −Σyρ and the other terms of φ over 0 ≤ yρ ≤ 1."""
    from scipy.optimize import minimize

    y, n = step.loss.y, len(step.loss.y)
    plain = Step(step.K, Linear(y), step.C, step.alpha, step.b, step.gamma,
                 step.gamma_b)  # fmt: skip

    def value(a: Array) -> tuple[float, Array]:
        return plain.phi(y * a), y * plain.gradient(y * a)

    start, tight = np.full(n, 0.5), {"ftol": 1e-14, "gtol": 1e-10, "maxiter": 5000}
    found = minimize(value, start, jac=True, bounds=[(0, 1)] * n, options=tight)
    return np.asarray(found.x)


class Linear:
    """f*(−ρ) = −Σyρ: the hinge inside its box."""

    def __init__(self, y: Array):
        self.y = y

    def dual(self, rho: Array) -> tuple[float, Array, Array]:
        return -float(self.y @ rho), -self.y, np.zeros(len(rho))
