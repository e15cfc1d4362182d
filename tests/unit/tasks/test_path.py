"""C_zero and paths: where they begin, that every point is certified, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import Problem, certify, reference, solve
from mklopt import formulations as F
from mklopt.reference.c_zero import box_corner, longest, zero_point
from mklopt.reference.contract_problems import load

SMALL, TARGETS = load("small")
WDBC, WDBC_TARGETS = load("wdbc")
CASES = [
    ("hinge", F.GroupLasso()), ("hinge", F.ElasticNet(0.5)),
    ("logistic", F.GroupLasso()), ("logistic", F.ElasticNet(0.1)),
    ("squared", F.GroupLasso()),
    ("eps_insensitive", F.GroupLasso()), ("quantile", F.BlockPower(1.0)),
    ("huber", F.GroupLasso()), ("multinomial", F.GroupLasso()),
    ("multiclass_hinge", F.GroupLasso()), ("one_class", F.GroupLasso()),
]  # fmt: skip


def problem(loss, formulation, grams=WDBC, targets=WDBC_TARGETS, C=1.0) -> Problem:
    kind = F.losses_by_name()[loss]()
    y = targets[kind.labels]
    return Problem(grams, y, kind, formulation, C, bias=kind.bias_allowed)


@pytest.mark.parametrize("loss, formulation", CASES, ids=repr)
def test_weights_vanish_up_to_C_zero_and_not_beyond(loss, formulation):
    p = problem(loss, formulation)
    t, alpha = zero_point(p)
    at = p.with_(C=t)
    nothing = np.zeros(p.grams.M)
    assert 0 <= certify(at, alpha, nothing).relative_gap <= 1e-7
    beyond = reference.solve(p.with_(C=1.01 * t), tol=1e-7)
    assert np.max(beyond.norms) > 1e-3
    zero = certify(beyond.certificate.problem, alpha, nothing)
    assert zero.primal > beyond.upper  # w = 0 is not optimal there


@pytest.mark.parametrize("formulation", [F.GroupLasso(), F.ElasticNet(0.5)], ids=repr)
def test_unbalanced_classes_agree_with_the_conic_program(formulation):
    """The larger class lies on its margin: α is not unique, and matters."""
    y = WDBC_TARGETS["binary"]
    assert abs(np.sum(y)) >= 10
    p = problem("hinge", formulation)
    found, program = mklopt.C_zero(p), reference.C_zero(p)
    assert found == pytest.approx(program, rel=1e-6)
    naive = p.feasible(p.costs * y)  # every α on its bound, balanced by rescaling
    v = np.sqrt(p.grams.quad(naive))
    assert longest(formulation, v) < 0.99 * found


def test_formulations_without_a_kink_have_no_C_zero():
    for formulation in (F.LpNorm(2.0), F.BlockL1(), F.BlockPower(1.5)):
        assert mklopt.C_zero(problem("hinge", formulation)) == 0.0
        assert mklopt.C_zero(problem("squared", formulation)) == 0.0
    flat = Problem(WDBC, np.full(100, 3.0), "squared", F.GroupLasso())
    assert mklopt.C_zero(flat) == np.inf


def test_the_shape_of_the_subdifferential_is_found():
    assert box_corner(F.GroupLasso(), 4) == pytest.approx(1.0)
    assert box_corner(F.ElasticNet(0.3), 4) == pytest.approx(0.3)
    assert box_corner(F.BlockPower(1.0), 4) == pytest.approx(0.5)

    @mklopt.formulation
    def largest(u):
        import cvxpy as cp

        return cp.max(u)

    assert box_corner(largest, 4) is None  # ∂Ω(0) is a simplex
    uneven = F.Declared(lambda u: u[0] + 2 * u[1] + 3 * u[2])
    assert box_corner(uneven, 3) == pytest.approx([1.0, 2.0, 3.0], rel=1e-6)


def test_C_zero_with_one_C_per_sample_keeps_their_ratios():
    costs = np.linspace(1.0, 2.0, 100)
    p = problem("logistic", F.GroupLasso()).with_(C=costs)
    found = mklopt.C_zero(p)
    assert np.ptp(found / costs) <= 1e-12
    at = solve(p.with_(C=found * (1 - 1e-9)), "spicy", tol=1e-9)
    assert at.converged and np.max(at.certificate.norms) <= 1e-6


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_path_starts_at_zero_and_every_point_is_certified(loss):
    p = problem(loss, F.GroupLasso(), SMALL, TARGETS)
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
    p = problem("hinge", F.LpNorm(2.0), SMALL, TARGETS)
    seen = []
    path = mklopt.path(p, [0.1, 1.0, 10.0], callback=lambda r: seen.append(r.problem.C))
    assert path.converged and seen == [0.1, 1.0, 10.0]
    ended = mklopt.path(p, [0.1, 1.0, 10.0], callback=lambda r: r.problem.C >= 1.0)
    assert len(ended) == 2


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
