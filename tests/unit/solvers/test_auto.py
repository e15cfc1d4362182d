"""auto: which solver it picks, what happens when that one fails, and paths."""

from __future__ import annotations

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
        (F.BlockNorm(np.inf), "hinge", "spicy: it takes every formulation and loss"),
        (F.BlockPower(3.0), "hinge", "analytic: BlockPower uses all kernels"),
        (composite(1.2, 1.5), "hinge", "analytic: Composite uses all kernels"),
        (composite(1.0, 1.5), "hinge", "active: Composite leaves kernels unused"),
        (composite(1.5, 1.0), "hinge", "spicy: it takes every formulation and loss"),
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
