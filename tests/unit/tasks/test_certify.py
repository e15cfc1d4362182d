"""Half a candidate is completed: near the optimum if it was, and the bounds hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify, kernels
from mklopt.certificates import certificate as core
from mklopt.formulations import BlockL1, GroupLasso, LpNorm

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 4))
Y = np.sign(X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * RNG.normal(size=40))
GRAMS = kernels.gaussians([0.5, 1, 2, 4]).fit(X).grams()
MAPS = [X, X[:, :2], X[:, 1:] ** 2]
LP = LpNorm(p=2)
TOL = 1e-8  # of the candidates; what completes them costs at most ten times as much


def problem(loss: str = "hinge", omega: Any = LP, bias: bool = True) -> Problem:
    y = (Y > 0).astype(int) if loss.startswith("multi") else Y
    return Problem(GRAMS, y, loss, omega, C=3.0, bias=bias)


CASES = [
    problem(),
    problem(bias=False),
    problem("logistic"),
    problem("squared", BlockL1()),
    problem("hinge", GroupLasso()),
    problem("multinomial"),
]


def optimum(given: Problem) -> dict[str, Any]:
    """All parts of the solution of a problem."""
    found = mklopt.solve(given, tol=TOL)
    B, u = found.certificate.expansion, found.certificate.norms
    f = given.grams.apply(B).sum(axis=0) + found.bias
    parts = {"dual": found.dual, "weights": found.weights, "coefficients": B}
    return {**parts, "f": f, "norms": u, "b": found.bias}


@pytest.mark.parametrize(
    "names",
    ["dual", "weights", "coefficients", "coefficients b", "f weights", "f norms"],
)
@pytest.mark.parametrize("given", CASES, ids=repr)
def test_a_part_of_the_optimum_is_completed_to_it(given, names):
    parts = optimum(given)
    exact = mklopt.reference.solve(given)
    found = certify(given, **{name: parts[name] for name in names.split()})
    assert found.relative_gap < 1e-6 and found.completed
    assert found.lower <= exact.upper and exact.lower <= found.upper
    assert "completed: " in str(found)


@pytest.mark.parametrize("names", ["dual", "weights", "coefficients", "f weights"])
@pytest.mark.parametrize("given", CASES[:4], ids=repr)
def test_bounds_hold_for_any_numbers(given, names):
    rng, exact = np.random.default_rng(5), mklopt.reference.solve(given)
    shapes = {"dual": given.shape, "weights": (4,), "coefficients": (4, *given.shape)}
    shapes["f"] = given.shape
    parts = {name: rng.normal(size=shapes[name]) for name in names.split()}
    parts = {k: np.abs(x) if k == "weights" else x for k, x in parts.items()}
    found = certify(given, **parts)
    assert found.lower <= exact.upper and exact.lower <= found.upper
    assert found.relative_gap > 1e-3


def test_rounded_predictions_cost_little():
    """Interpolating rounded numbers exactly would need a w of enormous norm."""
    grams = kernels.gaussians([5, 10, 20]).fit(X).grams()
    given = problem().with_(grams=grams)
    parts = optimum(given)
    f = np.round(parts["f"], 2)
    found = certify(given, f=f, weights=parts["weights"])
    assert found.relative_gap < 0.02
    assert "differ from those of f" in found.completed


def test_norms_that_cannot_be_are_refuted():
    parts = optimum(problem())
    u = 0.5 * parts["norms"]
    found = certify(problem(), f=parts["f"], norms=u)
    assert "no w has these predictions and norms" in found.completed
    fine = certify(problem(), f=parts["f"], norms=parts["norms"])
    assert "no w has" not in fine.completed


@pytest.mark.parametrize("stored", ["factors", "matrices"])
def test_feature_weights_are_certified(stored):
    grams = GramStack.from_factors(MAPS)
    if stored == "matrices":
        grams = GramStack([psi @ psi.T for psi in MAPS])
    given = Problem(grams, Y, "hinge", LpNorm(p=2), C=1.0)
    found = mklopt.solve(given, tol=TOL)
    w = [t * psi.T @ found.dual for t, psi in zip(found.weights, MAPS)]
    more: Any = {} if stored == "factors" else {"maps": MAPS}
    assert certify(given, w=w, b=found.bias, **more).relative_gap < 1e-6
    assert certify(given, w=np.concatenate(w), **more).relative_gap < 1e-6
    off = certify(given, w=w, b=found.bias + 1.0, **more)
    assert off.bias == found.bias + 1.0 and off.relative_gap > 0.01


def test_the_bias_that_is_given_is_the_one_of_the_point():
    parts = optimum(problem())
    pair = {"dual": parts["dual"], "weights": parts["weights"]}
    assert certify(problem(), **pair, b=5.0).bias == 5.0
    assert certify(problem(), **pair, b=5.0).primal > certify(problem(), **pair).primal
    with pytest.raises(ValueError, match="has no bias; leave it out"):
        certify(problem(bias=False), **pair, b=5.0)


def test_arguments_by_position_warn_and_work():
    parts = optimum(problem())
    with pytest.warns(DeprecationWarning, match="dual=…, weights=…"):
        found = certify(problem(), parts["dual"], parts["weights"])
    assert (
        found.primal == core.certify(problem(), parts["dual"], parts["weights"]).primal
    )


@pytest.mark.parametrize(
    "given, words",
    [
        ({}, "give dual= alone"),
        ({"f": Y}, "got f alone"),
        (
            {"f": Y, "weights": np.ones(4), "norms": np.ones(4)},
            "one of weights= and norms=",
        ),
        ({"norms": np.ones(4)}, "norms= belongs to f="),
        ({"w": np.ones(3)}, "give w= with maps="),
        ({"w": np.ones(3), "maps": MAPS}, "expected 4 of shape"),
        ({"weights": np.ones(4), "coefficients": np.ones((4, 40))}, "got weights and"),
        ({"dual": np.ones(3)}, "dual has shape"),
        ({"f": np.full(40, np.nan), "weights": np.ones(4)}, "NaN"),
    ],
)
def test_what_is_no_candidate_gets_one_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        certify(problem(), **given)
