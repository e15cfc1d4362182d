"""SpicyMKL: the points it returns, and problems of all kinds."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify, reference, solve
from mklopt import formulations as F
from mklopt.formulations.losses.residual import EpsInsensitive
from mklopt.reference.contract_problems import load
from mklopt.solvers import solvers

SMALL, TARGETS = load("small")


def problem(loss: str, formulation=None, C: float = 1.0) -> Problem:
    labels = F.losses_by_name()[loss]().labels
    return Problem(SMALL, TARGETS[labels], loss, formulation or F.GroupLasso(), C)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_what_comes_back_is_what_was_certified(loss):
    found = solve(problem(loss), "spicy", tol=1e-7)
    assert found.point == "weights" and found.converged
    again = certify(found.problem, dual=found.dual, weights=found.weights)
    assert again.relative_gap == found.relative_gap


def test_scaling_before_centring_gives_no_bound():
    """The paper's recipe, ρ/max‖ρ‖ first and minus its mean last: 15 % above f*."""
    rng = np.random.default_rng(37)
    X = rng.normal(size=(12, 3)) + 3 * rng.normal(size=3)  # uncentred features
    y = np.sign(rng.normal(size=12) + 0.7)
    p = Problem(
        GramStack.from_factors([X[:, [j]] for j in range(3)]),
        y,
        "squared",
        F.GroupLasso(),
    )
    truth, steps = reference.solve(p), solvers()["spicy"].steps(p)
    iterate, theirs, ours = next(steps), [], []
    for _ in range(6):
        rho = iterate.dual / max(np.max(np.sqrt(p.grams.quad(iterate.dual))), 1.0)
        theirs.append(p.dual_loss(rho - np.mean(rho)))
        found = certify(p, dual=iterate.dual, coefficients=iterate.coefficients)
        ours.append(found.dual)
        iterate = steps.send(found)
    assert max(theirs) > 1.1 * truth.upper
    assert max(ours) <= truth.upper


def test_a_regularizer_and_a_loss_of_ones_own():
    @mklopt.formulation
    def capped(u):
        return cp.sum(u) + 0.5 * cp.square(cp.max(u))

    @mklopt.loss(labels="binary")
    def squared_hinge(f, y):
        return cp.square(cp.pos(1 - cp.multiply(y, f)))

    grams = GramStack.from_factors([L[:20] for L in SMALL.factors or []][:3])
    p = Problem(grams, TARGETS["binary"][:20], squared_hinge, capped)
    found = solve(p, "spicy", tol=1e-5, time_limit=18)
    assert found.converged
    truth = reference.solve(p, tol=1e-6)
    assert truth.lower - 1e-6 <= found.certificate.primal <= truth.upper * (1 + 2e-5)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_targets_of_any_size(size):
    y = size * TARGETS["real"]
    for loss in (EpsInsensitive(0.1 * size), "squared"):
        p = Problem(SMALL, y, loss, F.GroupLasso(), 1.0)
        assert solve(p, "spicy", tol=1e-7, time_limit=18).converged, loss
