"""Rates of proximal minimization, by table 1 as printed (formulas.py) on a toy set.

f* is an interval that another solver's run has certified; distances are to a point
whose objective lies in it, reached by proximal steps with large penalties.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from mklopt import GramStack, Problem, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import GroupLasso
from mklopt.reference.equivalences import suzuki_C

from .algebra_studies import instance
from .formulas import Array, Logistic, Slacks, Squared, Step, norms

KEY = "suzuki2009"


def toy(scale: Scale, loss: str, gamma: float = 1.0) -> Step:
    """Where proximal minimization begins: α = 0 and b = 0, ξ = 1 and ζ = 0."""
    n, M = 40, 8
    found = instance(scale.rng("toy"), loss, n, M)
    side, one = found.loss, np.ones(n)
    if isinstance(side, Slacks):
        side = Slacks(side.y, one, 0 * one, gamma)
    zero, many = np.zeros((M, n)), np.full(M, gamma)
    return Step(found.K, side, found.C, zero, 0.0, many, gamma)


def interval(step: Step) -> tuple[float, float]:
    """Certified bounds of the minimum of (2), in the paper's units."""
    loss = {Logistic: "logistic", Squared: "squared", Slacks: "hinge"}[type(step.loss)]
    C = suzuki_C(step.C, half_squared=loss != "squared")
    at = Problem(GramStack(step.K), step.loss.y, loss, GroupLasso(), C)
    found = solve(at, "auto", tol=1e-11, max_iter=300).certificate
    return step.C * found.lower, step.C * found.upper


def optimum(step: Step) -> tuple[Array, float]:
    """(α, b) after proximal steps with growing penalties, until nothing moves."""
    rho = step.minimum()
    for _ in range(20):
        step = step.moved(*step.after(rho), growth=2.0 if step.gamma_b < 1e3 else 1.0)
        rho = step.minimum(rho)
    return step.after(rho)


def distance(step: Step, alpha: Array, b: float, best: tuple[Array, float]) -> float:
    away = np.sum(norms(step.K, alpha - best[0]) ** 2) + (b - best[1]) ** 2
    return float(np.sqrt(away))


@study(KEY)
def contraction(scale: Scale) -> pd.DataFrame:
    """By which factor a proximal step shortens the distance, for fixed penalties.

    Both penalties γ, or that of the kernels alone with that of the bias held at 0.1.
    """
    rows = []
    for loss in ("logistic", "squared"):
        begin = toy(scale, loss)
        best, (_, upper) = optimum(begin), interval(begin)
        for held in (False, True):
            for gamma in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
                many = np.full(len(begin.K), gamma)
                step = replace(begin, gamma=many, gamma_b=0.1 if held else gamma)
                away = [distance(step, step.alpha, step.b, best)]
                rho = None
                for _ in range(60):
                    rho = step.minimum(rho)
                    step = step.moved(*step.after(rho))
                    away.append(distance(step, step.alpha, step.b, best))
                    if away[-1] < 1e-5 * away[0]:
                        break
                rows.append(
                    {
                        "loss": loss,
                        "held": held,
                        "gamma": gamma,
                        "steps": len(away) - 1,
                        "factor": away[-1] / away[-2],
                        "distance": away[-1],
                        "above": begin.objective(*best) - upper,
                    }
                )
    return pd.DataFrame(rows)


@study(KEY)
def superlinear(scale: Scale) -> pd.DataFrame:
    """The objective along table 1 as printed, γ growing by 3 with each step or held.

    f* lies between `lower` and `upper`, certified from another solver's run.
    """
    rows = []
    for loss in ("logistic", "squared", "hinge"):
        begin = toy(scale, loss, gamma=0.1)
        lower, upper = interval(begin)
        for growth in (3.0, 1.0):
            step, rho = begin, None
            for t in range(scale.of(10, 12, 12)):
                value = step.objective(step.alpha, step.b)
                rows.append(
                    {"loss": loss, "growth": growth, "t": t, "gamma": step.gamma_b,
                     "primal": value, "lower": lower, "upper": upper}
                )  # fmt: skip
                rho = step.minimum(rho)
                step = step.moved(*step.after(rho), growth, rho)
    return pd.DataFrame(rows)


@study(KEY)
def exact_and_linearized(scale: Scale) -> pd.DataFrame:
    """The objective along exact proximal steps and along those of section 4.1.

    γ in units of 1/L, L = Lip(ℓ') λ_max(ΣK_m + 11ᵀ); lower ≤ f* ≤ upper.
    """
    rows = []
    for loss, steepness in (("logistic", 0.25), ("squared", 2.0)):
        begin = toy(scale, loss)
        lower, upper = interval(begin)
        n = len(begin.loss.y)
        top = np.linalg.eigvalsh(np.sum(begin.K, axis=0) + np.ones((n, n)))[-1]
        for times in (1.0, 3.0, 10.0, 100.0):
            gamma = times / (steepness * float(top))
            many = np.full(len(begin.K), gamma)
            for exact in (True, False):
                step, rho = replace(begin, gamma=many, gamma_b=gamma), None
                for t in range(scale.of(60, 200, 400)):
                    value = step.objective(step.alpha, step.b)
                    rows.append(
                        {"loss": loss, "exact": exact, "gamma": times, "t": t,
                         "primal": value, "lower": lower, "upper": upper}
                    )  # fmt: skip
                    if value > 1e9:  # linearized steps that are too long
                        break
                    if exact:
                        rho = step.minimum(rho)
                    to = step.after(rho) if rho is not None else step.linearized()
                    step = step.moved(*to)
    return pd.DataFrame(rows)
