"""Problems, results and certificate files that the tests of certificates share."""

from __future__ import annotations

import hashlib
import json

import numpy as np

import mklopt
from mklopt import GramStack, Problem
from mklopt.certificates import checker, portable, reading
from mklopt.formulations import GroupLasso, LpNorm

SMOOTH = LpNorm(4 / 3)


def random_problem(seed, loss="hinge", formulation=None, C=1.0, n=12, M=3, exact=True):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(M, n, 4))
    grams = (
        GramStack.from_factors(np.rint(L * 2**10) / 2**10)
        if exact
        else GramStack(L @ L.transpose(0, 2, 1))
    )
    score = L[0, :, 0] + 0.3 * rng.normal(size=n)
    y = np.where(score > np.median(score), 1.0, -1.0)
    return Problem(grams, y, loss, formulation or GroupLasso(), C)


def stack(kind, n=8, M=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, M))
    if kind == "factors":
        return mklopt.GramStack.from_factors([X[:, : m + 1] for m in range(M)]), X
    distances = (X[:, None] - X[None]) ** 2
    K = np.stack([np.exp(-distances[:, :, m]) for m in range(M)])
    K[0] = np.outer(X[:, 0], X[:, 0])  # singular: its proof needs a shift
    return mklopt.GramStack(K), X


def solved(kind="gram", loss="hinge", formulation=SMOOTH, C=2.0, **more):
    grams, X = stack(kind, **more)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    y[0] = -y[0]
    if loss in ("squared", "eps_insensitive"):
        y = y + X[:, 1]
    problem = mklopt.Problem(grams, y, loss, formulation, C)
    return mklopt.solve(problem, tol=1e-7)


def sealed(body):
    """An honest hash around any bytes."""
    return reading.FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def resigned(claim, **changes):
    """Everything hashed anew, the problem too: another problem, the same points."""
    claim = {**claim, **changes}
    claim["problem"] = checker.Claim(claim).digest()
    return sealed(json.dumps(claim).encode())


def tiny(L=(1.0, 0.0), y=(1.0, -1.0), C=2.0, alpha=(1, -1), theta=2.0, b=-1.0, **more):
    """A claim written by hand: one kernel LLᵀ, the hinge, Σ‖w‖, a bias.

    As it stands, f* = 2: w = 2 and b = −1 have f = y, and α = (1, −1) has αᵀKα = 1.
    """
    claim = {
        "problem": "",
        "loss": ["hinge", {}],
        "formulation": ["GroupLasso", {}],
        "bias": True,
        "factors": True,
        "kernels": [portable._text(L)],
        "shift": portable._text([0.0]),
        "y": portable._text(y),
        "C": portable._text(np.broadcast_to(np.asarray(C, float), len(y))),
        "lower": float(np.nextafter(2.0, 0)),
        "upper": float(np.nextafter(2.0, 3)),
        "dual": {"integers": list(alpha), "exponent": 0, "shrink": 1.0},
        "primal": {"bias": b, "stretch": 1.0, "weights": portable._text([theta])},
    }
    return {**claim, **more}


def written(tmp_path, **given):
    found = solved(**given)
    found.save_certificate(tmp_path / "file.cert")
    return found, (tmp_path / "file.cert").read_bytes()
