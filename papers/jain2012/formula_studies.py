"""Formulas of Jain et al. (2012), measured on small random problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mklopt import gmkl, solve
from mklopt.certificates.certificate import certify
from mklopt.claims.items import Scale, study
from mklopt.formulations import Tikhonov
from mklopt.gmkl.families import Product, Sum
from mklopt.gmkl.problem import Envelope, KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm, Total
from mklopt.reference.envelope import envelope_value

from .settings import KEY

Array = np.ndarray


def distances(A: Array, B: Array, groups: int) -> Array:
    """(M, |A|, |B|): squared distances on so many groups of features."""
    parts = np.array_split(np.arange(A.shape[1]), min(groups, A.shape[1]))
    squares = [(A[:, None, g] - B[None, :, g]) ** 2 for g in parts]
    return np.stack([s.sum(axis=2) for s in squares])


def families(scale: Scale) -> dict[str, KernelFamilyProblem]:
    """Small problems on which formulas are checked, sums and products."""
    n, rng = scale.of(24, 40, 80), scale.rng("families")
    X = rng.normal(size=(n, 4))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n))
    D = distances(X, X, 4)
    made: dict[str, Any] = {"sum": Sum(np.exp(-D)), "product": Product(D)}
    prices = {"Σd": Total(), "½‖d‖²": SquaredNorm(2.0), "½‖d‖²_1.33": SquaredNorm(1.33)}
    return {
        f"{kind}, {name}": KernelFamilyProblem(family, y, "hinge", price, 1.0)
        for kind, family in made.items()
        for name, price in prices.items()
    }


@study(KEY)
def gradients(scale: Scale) -> pd.DataFrame:
    """The two terms of ∇W at random d, and differences of W as OSQP finds it."""
    rows = []
    for name, problem in families(scale).items():
        d = scale.rng("gradients", name).uniform(0.2, 1.5, problem.family.M)
        envelope = Envelope(problem, tune=False)
        value = envelope.precisely(d)[0]
        bend = problem.family.gradient(d, np.asarray(envelope.alpha))
        price = problem.regularizer.gradient(d)
        machine = certify(problem.machine(d), np.asarray(envelope.alpha), np.ones(1))
        r, K = problem.regularizer.value(d), problem.family.combine(d)
        energy = float(envelope.alpha @ K @ envelope.alpha)
        for m in range(scale.of(2, 4, 4)):
            h = 1e-3 * d[m] * (np.arange(len(d)) == m)
            up, down = (envelope_value(problem, d + s * h) for s in (1, -1))
            rows.append({
                "problem": name, "m": m, "price": price[m], "bend": bend[m],
                "measured": (up - down) / (2 * h[m]), "T": r + machine.primal,
                "W": value, "energy": energy,
            })  # fmt: skip
    return pd.DataFrame(rows)


@study(KEY)
def segments(scale: Scale) -> pd.DataFrame:
    """W at two random d and at their middle."""
    rows = []
    for name, problem in families(scale).items():
        rng = scale.rng("segments", name)
        envelope = Envelope(problem, tune=False)
        for k in range(scale.of(40, 60, 200)):
            a, b = 10 ** rng.uniform(-1.5, 1.5, size=(2, problem.family.M))
            at = [envelope.precisely(d)[0] for d in (a, 0.5 * (a + b), b)]
            above = at[1] - 0.5 * (at[0] + at[2])
            rows.append({"problem": name, "k": k, "above": above, "W": at[1]})
    return pd.DataFrame(rows)


@study(KEY)
def maps(scale: Scale) -> pd.DataFrame:
    """min W over sums, and the interval of the convex problem it is said to be."""
    rows = []
    sums = {k: v for k, v in families(scale).items() if k.startswith("sum")}
    for name, problem in sums.items():
        found = gmkl.solve(problem, tol=1e-6, max_iter=5000)
        right = problem.as_problem()
        price, unit = problem.regularizer, 1.0
        other = right.with_(C=problem.C)  # C as it was, not divided by √2
        if isinstance(price, Total):
            unit = float(np.sqrt(2))
        else:
            other = right.with_(formulation=Tikhonov(price.p, 1.0))  # not ½
        for which, convex in (("right", right), ("other", other)):
            end = solve(convex, "auto", tol=1e-8).certificate
            rows.append({"problem": name, "which": which, "W": found.value,
                         "lower": unit * end.lower, "upper": unit * end.upper,
                         "left": found.stationarity})  # fmt: skip
    return pd.DataFrame(rows)
