"""auto: which solver it picks, what happens when that one fails, and paths."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, solve
from mklopt import formulations as F
from mklopt.solvers import auto, solvers
from tests.problems import subset_gaussians

K, Y = subset_gaussians(120, 40)
GRAMS = GramStack(K)


def problem(formulation, loss="hinge") -> Problem:
    return Problem(GRAMS, Y, loss, formulation, 1.0)


FIXED = F.FixedWeights(tuple(np.linspace(0.1, 1.0, GRAMS.M)))


@mklopt.formulation
def tree_norm(u, groups=()):
    return sum(cp.norm(u[list(group)]) for group in groups)


FIVES = [list(range(m, m + 5)) for m in range(0, GRAMS.M, 5)]
TREE = tree_norm(groups=[list(range(GRAMS.M)), *FIVES, *([m] for m in range(GRAMS.M))])


def composite(r, s):
    return F.Composite([list(p) for p in np.array_split(np.arange(GRAMS.M), 3)], r, s)


# ---- what is picked ----------------------------------------------------------


@pytest.mark.parametrize(
    "formulation, loss, picked",
    [
        (F.LpNorm(2.0), "hinge", "analytic: LpNorm uses all kernels"),
        (F.LpNorm(4 / 3), "logistic", "analytic: LpNorm uses all kernels"),
        (F.GroupLasso(), "logistic", "active: GroupLasso leaves kernels unused"),
        (F.LpNorm(1.0), "squared", "active: LpNorm leaves kernels unused"),
        (F.BlockNorm(np.inf), "hinge", "spicy: BlockNorm has a prox in closed form"),
        (F.ElasticNet(0.0), "hinge", "analytic: ElasticNet uses all kernels"),
        (FIXED, "squared", "analytic: FixedWeights uses all kernels"),
        (F.BlockPower(3.0), "hinge", "analytic: BlockPower uses all kernels"),
        (composite(1.2, 1.5), "hinge", "analytic: Composite uses all kernels"),
        (composite(1.0, 1.5), "hinge", "active: Composite leaves kernels unused"),
        (composite(1.5, 1.0), "hinge", "spicy: Composite has a prox in closed form"),
        (F.NonIsotropic(np.eye(GRAMS.M) + 0.1), "hinge", "analytic: NonIsotropic has"),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_auto_says_what_it_picked_and_why(formulation, loss, picked, tmp_path):
    found = solve(problem(formulation, loss), tol=1e-4)
    assert found.converged and found.solver == "auto"
    assert found.choice.startswith(picked)
    assert picked in str(found)
    found.save(tmp_path / "found.npz")
    again = mklopt.Result.load(tmp_path / "found.npz", found.problem)
    assert again.choice == found.choice


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_of_a_tree_norm_analytic_makes_the_first_steps_and_spicy_the_zeros(C):
    tree = problem(TREE).with_(C=C)
    rough, found = solve(tree, tol=1.1 * auto.ROUGH), solve(tree, tol=1e-6)
    assert rough.choice.startswith("analytic: the first steps")
    assert found.converged and found.choice.startswith("spicy: tree_norm has a prox")
    alone = solve(tree, "spicy", tol=1e-6)
    assert np.array_equal(found.weights > 0, alone.weights > 0)
    assert 0 < np.sum(found.weights > 0) < GRAMS.M
    assert found.trace.last("passes") <= alone.trace.last("passes")


def test_from_a_start_and_for_smooth_losses_spicy_begins():
    hinge, smooth = problem(TREE), problem(TREE, "squared")
    stages = auto.plan(hinge), auto.plan(hinge, warm=True), auto.plan(smooth)
    names = [[stage.solver.name for stage in one] for one in stages]
    alone = ["spicy", "analytic"]
    assert names == [["analytic", *alone], alone, alone]


def test_whether_all_kernels_are_used_is_seen_from_the_prox():
    assert auto.uses_all(problem(FIXED)) and auto.uses_all(problem(F.ElasticNet(0.0)))
    assert not auto.uses_all(problem(F.FixedWeights((0.0, *FIXED.theta[1:]))))
    assert not auto.uses_all(problem(F.ElasticNet(0.1)))
    assert not auto.uses_all(problem(TREE)) and not auto.uses_all(
        problem(F.GroupLasso())
    )


def test_a_solver_that_was_named_has_no_choice_to_report():
    found = solve(problem(F.LpNorm(2.0)), "analytic")
    assert found.choice == "" and "\n  \n" not in str(found)


def breaks(error):
    def steps(problem, *, start=None):
        yield next(solvers()["analytic"].steps(problem))
        raise error

    return steps


def stands_still(problem, *, start=None):
    iterate = next(solvers()["analytic"].steps(problem))
    while True:
        yield iterate


def ends(problem, *, start=None):
    return
    yield


@pytest.mark.parametrize(
    "steps", [breaks(ArithmeticError("no")), breaks(np.linalg.LinAlgError()),
              stands_still, ends],
)  # fmt: skip
def test_another_solver_goes_on_where_the_first_choice_fails(steps, monkeypatch):
    broken = auto.active.__class__("active", steps, frozenset(), frozenset({"any"}),
                                   frozenset({True, False}), 1e-6, "", "")  # fmt: skip
    monkeypatch.setattr(auto, "active", broken)
    if steps is stands_still:
        monkeypatch.setattr(auto, "PATIENCE", 3)
    found = solve(problem(F.BlockL1()))
    assert found.converged
    assert found.choice == "spicy: it takes every formulation and loss; active failed"


# ---- paths -----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_a_path_is_warm_started_and_certified_point_by_point(loss):
    path = mklopt.path(problem(F.GroupLasso(), loss), points=6, span=30.0, tol=1e-6)
    assert path.converged and np.all(np.diff(path.C) > 0)
    for found in list(path)[1::2]:
        cold = solve(found.problem, tol=1e-6)
        both = sorted([found.certificate, cold.certificate], key=lambda c: c.dual)
        assert both[1].dual <= both[0].primal  # intervals of the same optimum
        assert found.trace.last("passes") <= cold.trace.last("passes") + 1


def test_bad_input_is_said_in_a_sentence():
    p = problem(F.GroupLasso())
    with pytest.raises(ValueError, match="give a result of solve, or a pair"):
        solve(p, start="here")
    with pytest.raises(ValueError, match="auto has no option accelerate"):
        solve(p, accelerate=None)
    with pytest.raises(mklopt.solvers.Unsupported, match="a simplex of kernel weights"):
        solve(problem(F.LpNorm(2.0)), "active")
