"""Working sets of kernels: none is missed, and few passes are needed."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, solve
from mklopt import formulations as F
from mklopt.solvers.active import newton_inside
from mklopt.solvers.base import certify_iterate
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.start import weights_of
from mklopt.solvers.steps.fewer_kernels import coarse
from tests.problems import subset_gaussians

K, Y = subset_gaussians(120, 40)
GRAMS = GramStack(K)
HALVES = F.VSKL([tuple(range(20)), tuple(range(20, 40))], 2.0)
SUMS = F.Composite([tuple(range(10)), tuple(range(10, 25)), tuple(range(25, 40))])
SPARSE = [F.BlockL1(), F.GroupLasso(), F.ElasticNet(0.5), HALVES, SUMS]


def problem(formulation, loss="hinge", C=1.0) -> Problem:
    return Problem(GRAMS, Y, loss, formulation, C)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("formulation", SPARSE, ids=repr)
def test_a_start_on_useless_kernels_is_left_behind(formulation, loss):
    """All kernels are priced before each certificate: none is missed."""
    p = problem(formulation, loss)
    best = solve(p, tol=1e-7)
    worst = np.zeros(40)
    worst[np.flatnonzero(best.weights == 0)[:2]] = 1.0
    found = solve(p, "active", start=(worst, best.dual), tol=1e-7)
    assert found.converged
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-6)
    again = solve(p, start=found, tol=1e-6)
    assert again.converged and len(again.trace) <= 2


def test_few_passes_over_all_kernels():
    """Most of the work is on the kernels in use: far fewer passes than iterates."""
    K, y = subset_gaussians(60, 400)
    p = Problem(GramStack(K), y, "hinge", F.GroupLasso(), 1.0)
    found = solve(p, tol=1e-6)
    assert found.converged and found.trace.last("passes") < 8
    assert found.trace.last("passes") < 0.5 * solve(p, "spicy").trace.last("passes")


@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
@pytest.mark.parametrize("C", [1e-6, 1e-3])
def test_where_no_kernel_is_worth_its_price(loss, C):
    """All weights are zero: nothing to divide by, and the optimum all the same."""
    p = problem(F.GroupLasso(), loss).with_(C=C)
    found = solve(p, "active", tol=1e-6)
    assert found.converged
    assert mklopt.C_zero(p) >= p.C and np.max(found.certificate.norms) <= 1e-3


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("formulation", SPARSE, ids=repr)
def test_a_problem_that_is_solved_is_not_solved_again(formulation, loss, monkeypatch):
    """Newton's method goes on from the last α, with a step to other weights."""
    p = problem(formulation, loss)
    machine, asked = machine_for(p, second_order=True), []
    steps = newton_inside(machine, np.full(40, 1 / 40), None, False)
    found = coarse(p, steps, 0.1, 4)
    theta, solve_at = weights_of(found), machine.solve

    def recorded(theta, K=None):
        asked.append(theta)
        return solve_at(theta, K)

    monkeypatch.setattr(machine, "solve", recorded)
    iterate = next(newton_inside(machine, theta, found, True))
    assert asked and not any(np.allclose(t, theta, rtol=1e-6) for t in asked)
    assert certify_iterate(p, iterate).gap < found.gap
