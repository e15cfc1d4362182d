"""C_zero: weights vanish up to it and not beyond, and both ways to it agree."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt import Problem, certify, reference, solve
from mklopt import formulations as F
from mklopt.reference.c_zero import (
    box_corner,
    largest_scale,
    zero_point,
    zero_point_by_program,
)
from mklopt.reference.contract_problems import load

WDBC, TARGETS = load("wdbc")
SMALL, SMALL_TARGETS = load("small")
CASES = [
    ("hinge", F.GroupLasso()), ("hinge", F.ElasticNet(0.5)),
    ("logistic", F.GroupLasso()), ("logistic", F.ElasticNet(0.1)),
    ("squared", F.GroupLasso()),
    ("eps_insensitive", F.GroupLasso()), ("quantile", F.BlockPower(1.0)),
    ("huber", F.GroupLasso()), ("multinomial", F.GroupLasso()),
    ("multiclass_hinge", F.GroupLasso()), ("one_class", F.GroupLasso()),
]  # fmt: skip
KINKED = [case for case in CASES
          if F.losses_by_name()[case[0]]().smoothness is None]  # fmt: skip


def problem(loss, formulation, grams=WDBC, targets=TARGETS) -> Problem:
    kind = F.losses_by_name()[loss]()
    y = targets[kind.labels]
    return Problem(grams, y, kind, formulation, 1.0, bias=kind.bias_allowed)


@pytest.mark.parametrize("loss, formulation", CASES, ids=repr)
def test_weights_vanish_up_to_C_zero_and_not_beyond(loss, formulation):
    p = problem(loss, formulation)
    t, alpha = zero_point(p)
    at = p.with_(C=t)
    nothing = np.zeros(p.grams.M)
    assert 0 <= certify(at, dual=alpha, weights=nothing).relative_gap <= 1e-7
    beyond = reference.solve(p.with_(C=1.01 * t), tol=1e-7)
    assert np.max(beyond.norms) > 1e-3
    zero = certify(beyond.certificate.problem, dual=alpha, weights=nothing)
    assert zero.primal > beyond.upper  # w = 0 is not optimal there


@pytest.mark.parametrize("loss, formulation", KINKED, ids=repr)
def test_the_conic_program_finds_the_same(loss, formulation):
    p = problem(loss, formulation, SMALL, SMALL_TARGETS)
    t, alpha = zero_point_by_program(p)
    assert t == pytest.approx(reference.C_zero(p), rel=1e-6)
    shown = certify(p.with_(C=t), dual=alpha, weights=np.zeros(p.grams.M))
    assert 0 <= shown.relative_gap <= 1e-6


def test_a_subdifferential_that_is_no_box_is_left_to_the_conic_program():
    """Ω = max u: ∂Ω(0) is a simplex, and w = 0 ends where Σ_m v_m = 1."""
    largest = F.Declared(_largest)
    assert box_corner(largest, 4) is None
    p = problem("hinge", largest, SMALL, SMALL_TARGETS)
    C = reference.C_zero(p)
    below, above = (reference.solve(p.with_(C=s * C), tol=1e-8) for s in (0.99, 1.01))
    assert np.max(below.norms) < 1e-4 < 1e-3 < np.max(above.norms)


def _largest(u):
    import cvxpy as cp

    return cp.max(u)


@pytest.mark.parametrize("formulation", [F.GroupLasso(), F.ElasticNet(0.5)], ids=repr)
def test_unbalanced_classes_need_the_best_dual_point(formulation):
    """The larger class lies on its margin: α is not unique, and matters."""
    y = TARGETS["binary"]
    assert abs(np.sum(y)) >= 10
    p = problem("hinge", formulation)
    found = mklopt.C_zero(p)
    assert found == pytest.approx(zero_point_by_program(p)[0], rel=1e-6)
    naive = p.feasible(p.costs * y)  # every α on its bound, balanced by rescaling
    v = np.sqrt(p.grams.quad(naive))
    assert largest_scale(formulation, v) < 0.99 * found


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
    uneven = F.Declared(lambda u: u[0] + 2 * u[1] + 3 * u[2])
    assert box_corner(uneven, 3) == pytest.approx([1.0, 2.0, 3.0], rel=1e-6)


def test_the_largest_scale_is_where_the_conjugate_leaves_its_minimum():
    v = np.array([0.5, 0.2])
    assert largest_scale(F.GroupLasso(), v) == pytest.approx(2.0)
    assert largest_scale(F.LpNorm(2.0), v) == 0.0
    assert largest_scale(F.GroupLasso(), np.zeros(2)) == np.inf


def test_C_zero_with_one_C_per_sample_keeps_their_ratios():
    costs = np.linspace(1.0, 2.0, 100)
    p = problem("logistic", F.GroupLasso()).with_(C=costs)
    found = mklopt.C_zero(p)
    assert np.ptp(found / costs) <= 1e-12
    at = solve(p.with_(C=found * (1 - 1e-9)), "spicy", tol=1e-9)
    assert at.converged and np.max(at.certificate.norms) <= 1e-6


# ---- trees of groups ----------------------------------------------------------------

TREE = ([0, 1, 2, 3], [0, 1], [2, 3], [3])


@mklopt.formulation
def tree(u):
    return cp.sum(u) + 0.5 * sum(cp.norm(u[group]) for group in TREE)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "eps_insensitive"])
def test_a_sum_of_norms_over_a_tree_has_a_C_zero_and_a_path(loss):
    """Ω* is not found just outside of its domain; the hinge has an α that costs the
    first kernel nothing, so that its program alone is unbounded."""
    L = np.random.default_rng(0).normal(size=(4, 14, 3))
    y = np.where(np.arange(14) < 5, 1.0, -1.0)
    problem = mklopt.Problem(mklopt.GramStack.from_factors(L), y, loss, tree)
    C = mklopt.C_zero(problem)
    lasso = mklopt.C_zero(problem.with_(formulation=mklopt.formulations.GroupLasso()))
    assert lasso * (1 - 1e-6) <= C <= 3 * lasso  # Σu ≤ Ω ≤ 3Σu
    below, above = (
        mklopt.solve(problem.with_(C=t * C), tol=1e-7) for t in (0.99, 1.05)
    )
    assert not np.any(below.certificate.norms) and np.any(above.certificate.norms)
    if loss == "logistic":
        found = mklopt.path(problem, points=3, span=4.0, tol=1e-6)
        assert (
            found.converged
            and not np.any(found.weights[0])
            and np.any(found.weights[2])
        )


def test_only_a_problem_has_a_C_zero():
    for wrong in (None, 3, tree):
        with pytest.raises(ValueError, match="C_zero takes a Problem, got"):
            mklopt.C_zero(wrong)
