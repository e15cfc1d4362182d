"""The analytic step where kernels fall silent, and the weights that a run returns."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem, solve
from mklopt.formulations import BlockNorm, LpNorm
from mklopt.judge.verdict import judge_run
from mklopt.reference.contract_problems import STORE, small_cells
from mklopt.solvers.steps import fewer_samples
from tests.problems import subset_gaussians

TOL = 1e-6
INF = float("inf")


@pytest.mark.parametrize("p", [4 / 3, 2.0])
def test_few_samples_are_a_start_where_weights_are_far_from_equal(p, monkeypatch):
    """A smaller first gap for p = 4/3, and the same solution; not used for p = 2."""
    K, y = subset_gaussians(960, 8)
    problem = Problem(K, y, "hinge", LpNorm(p=p))
    plain = solve(problem, "analytic", tol=1e-8)
    monkeypatch.setattr(fewer_samples, "WORTH", 0)
    found = solve(problem, "analytic", tol=1e-8)
    assert found.converged
    assert found.certificate.dual == pytest.approx(plain.certificate.dual, rel=1e-7)
    first, before = found.trace["gap"][0], plain.trace["gap"][0]
    assert first == before if p == 2 else first < 0.5 * before


def cell(formulation, loss: str):
    """A contract problem of the smallest set, and its reference."""
    known = (c for c in small_cells() if c.formulation == formulation)
    problem = next(c for c in known if repr(c.loss) == loss).problem()
    return problem, STORE.load(problem)


@pytest.mark.parametrize(
    "loss",
    ["EpsInsensitive(eps=0.1)", "OneClass()", "Quantile(tau=0.2)", "Squared()"],
)
def test_kernels_that_fall_silent_do_not_spoil_the_inner_problem(loss):
    """BlockNorm(∞): K_mα = 0 for one to three of six kernels, θ_m without a bound."""
    problem, found = cell(BlockNorm(INF), loss)
    v = np.sqrt(np.maximum(problem.grams.quad(found.dual), 0.0))
    assert np.sum(v < 1e-8 * np.max(v)) >= 1
    result = solve(problem, "analytic", tol=TOL, max_iter=300)
    verdict = judge_run(result, found, TOL)
    if result.status == "rounding":  # large θ_m make the rounding errors of K_mα large
        assert result.relative_gap <= TOL and result.certificate.width < 20 * TOL
    else:
        assert verdict.holds, verdict.reason


def test_bounded_weights_cost_what_they_may():
    """Ω* at v raised to the bound is within `slack` of Ω*(v)."""
    formulation, v = BlockNorm(INF), np.array([1.0, 0.3, 1e-9, 0.0])
    for slack in (1e-3, 1e-6):
        theta = formulation.reweight(np.ones(4), v, slack)
        raised = v[0] * theta[0] / theta  # θ = ‖v‖₁/v
        more = formulation.conjugate(raised) / formulation.conjugate(v) - 1
        assert 0 < more <= 1.01 * slack
        assert np.max(theta) <= 1.01 * 8 / slack


@pytest.mark.parametrize("solver", ["analytic", "spicy"])
def test_weights_are_a_mean_of_what_both_points_say(solver):
    """Where α is off and w is not, and the other way round, within 3√gap."""
    for loss in ("EpsInsensitive(eps=0.1)", "Quantile(tau=0.5)"):
        problem, found = cell(LpNorm(4 / 3), loss)
        verdict = judge_run(solve(problem, solver, tol=TOL), found, TOL)
        assert verdict.holds, verdict.reason
