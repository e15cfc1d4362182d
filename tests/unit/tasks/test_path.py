"""Paths: where they begin, that every point is certified, and bad input."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mklopt
from mklopt import Problem, reference
from mklopt import formulations as F
from mklopt.reference.contract_problems import load

SMALL, TARGETS = load("small")


def problem(loss, formulation) -> Problem:
    return Problem(SMALL, TARGETS["binary"], loss, formulation)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_path_starts_at_zero_and_every_point_is_certified(loss):
    p = problem(loss, F.GroupLasso())
    path = mklopt.path(p, points=6, span=30.0, tol=1e-6)
    assert path.converged and len(path) == 6
    assert path.C[0] == pytest.approx(mklopt.C_zero(p), rel=1e-9)
    assert np.max(path[0].certificate.norms) == 0.0
    assert np.max(path[1].certificate.norms) > 1e-3
    for result in path:
        truth = reference.solve(result.problem, tol=1e-7)
        assert truth.lower <= result.certificate.primal * (1 + 1e-12)
        assert result.certificate.dual <= truth.upper * (1 + 1e-12)
    frame = path.to_frame()
    assert list(frame["gap"] <= 1e-6) == [True] * 6
    assert frame["active"].iloc[0] == 0 and path.weights.shape == (6, 6)
    assert "6 points" in repr(path)


def test_a_path_of_given_values_for_any_formulation():
    p = problem("hinge", F.LpNorm(2.0))
    seen = []
    path = mklopt.path(p, [0.1, 1.0, 10.0], callback=lambda r: seen.append(r.problem.C))
    assert path.converged and seen == [0.1, 1.0, 10.0]
    ended = mklopt.path(p, [0.1, 1.0, 10.0], callback=lambda r: r.problem.C >= 1.0)
    assert len(ended) == 2


def test_one_C_per_sample_keeps_its_ratios_along_the_path():
    costs = np.linspace(1.0, 2.0, 40)
    p = problem("hinge", F.LpNorm(2.0)).with_(C=costs)
    path = mklopt.path(p, [1.0, 3.0], tol=1e-3)
    np.testing.assert_allclose(path.C, [1.0, 3.0])
    np.testing.assert_allclose(path[1].problem.C, 3 * costs / 2)


def test_each_point_starts_from_the_one_before_it(monkeypatch):
    starts = []
    module = sys.modules[mklopt.path.__module__]
    plain = module.solve

    def spy(*given, start, **options):
        starts.append(start)
        return plain(*given, start=start, **options)

    monkeypatch.setattr(module, "solve", spy)
    path = mklopt.path(problem("hinge", F.GroupLasso()), points=3, span=4.0, tol=1e-3)
    assert starts[1:] == path.results[:2]
    weights, alpha = starts[0]
    assert not np.any(weights) and np.any(alpha)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"Cs": [1.0, 0.5]}, "increasing order"),
        ({"Cs": []}, "increasing order"),
        ({"Cs": [-1.0, 2.0]}, "positive numbers"),
        ({"Cs": ["a"]}, "Cs must be"),
        ({"points": 1}, "points = 1"),
        ({"span": 0.5}, "span = 0.5"),
    ],
)
def test_wrong_arguments_give_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        mklopt.path(problem("hinge", F.GroupLasso()), **arguments)
    with pytest.raises(ValueError, match="no C gives zero weights"):
        mklopt.path(problem("hinge", F.LpNorm(2.0)))
    with pytest.raises(ValueError, match="takes a Problem"):
        mklopt.path("hinge")
