"""What each solver claims about itself, seen on its trace."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from mklopt import Problem, solve
from mklopt.formulations import BlockNorm, GroupLasso, LpNorm, Tikhonov
from mklopt.reference.contract_problems import load
from mklopt.solvers import Iterate, solver, solvers
from mklopt.solvers.base import REGISTRY
from mklopt.solvers.lp_newton import newton_step
from mklopt.solvers.machines.factory import machine_for

GRAMS, TARGETS = load("wdbc")


def problem(formulation, loss="hinge", C=1.0, bias=True) -> Problem:
    y = TARGETS["binary" if loss == "hinge" else "real"]
    return Problem(GRAMS, y, loss, formulation, C, bias)


def rises(values) -> float:
    """The largest relative step up."""
    return float(np.max(np.diff(values) / np.abs(values[:-1]), initial=0.0))


@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize(
    "formulation", [LpNorm(1.0), LpNorm(4 / 3), LpNorm(4.0), GroupLasso(), Tikhonov()]
)
def test_the_analytic_step_never_raises_the_objective(formulation, C):
    p = problem(formulation, C=C)
    found = solve(p, "analytic", accelerate=None, tol=1e-4)
    assert len(found.trace) > 3
    assert rises(found.trace.primal) <= 1e-6


@pytest.mark.parametrize("q", [3.0, 5.0, np.inf])
def test_for_q_above_2_the_step_from_the_dual_ascends(q):
    found = solve(problem(BlockNorm(q)), "analytic", accelerate=None, tol=1e-4)
    assert found.converged and rises(-found.trace.dual) <= 1e-6


@pytest.mark.parametrize("p", [1.01, 4 / 3, 4.0])
def test_the_newton_step_never_raises_the_objective(p):
    found = solve(problem(LpNorm(p)), "lp_newton", tol=1e-4)
    assert rises(found.trace.primal) <= 1e-6


def test_newton_steps_end_at_the_analytic_one():
    rng = np.random.default_rng(0)
    w, theta = rng.uniform(0.1, 2, size=7), rng.uniform(0.1, 1, size=7)
    for p in (1.05, 4 / 3, 2.0, 8.0):
        t = theta
        for _ in range(3000):
            t = newton_step(t, w, p)
        np.testing.assert_allclose(t, LpNorm(p).weights(w), rtol=1e-6)


@pytest.mark.parametrize("name, p", [("smo_mkl", 4 / 3), ("smo_mkl", 4.0)])
def test_the_dual_rises_in_every_move(name, p):
    found = solve(problem(LpNorm(p), C=10.0), name, tol=1e-6)
    assert found.converged and rises(-found.trace.dual) <= 1e-9


def test_the_dual_rises_in_every_quasi_newton_step():
    p = problem(LpNorm(4 / 3), "squared", bias=False)
    found = solve(p, "lbfgs")
    assert found.converged and rises(-found.trace.dual) <= 1e-9


def test_second_order_steps_converge_at_once_near_the_solution():
    """From a gap of 1e-3 HessianMKL needs two or three steps to 1e-9."""
    p = problem(LpNorm(1.0), C=10.0)
    found = solve(p, "hessian", tol=1e-9)
    assert found.converged
    late = np.sum(found.trace.gap < 1e-3)
    assert late <= 5
    assert len(found.trace) < 0.5 * len(solve(p, "simple", tol=1e-4).trace)


def test_acceleration_saves_iterates():
    p = problem(LpNorm(4 / 3), C=100.0)
    plain, anderson, newton = (
        solve(p, "analytic", accelerate=a) for a in (None, "anderson", "newton")
    )
    assert plain.converged and anderson.converged and newton.converged
    assert len(newton.trace) < len(anderson.trace) <= 0.5 * len(plain.trace)
    with pytest.raises(ValueError, match="choose 'newton', 'anderson' or None"):
        solve(p, "analytic", accelerate=True)


@pytest.mark.parametrize(
    "formulation", [LpNorm(4 / 3), LpNorm(4.0), BlockNorm(3.0), Tikhonov(2.0)]
)
def test_newton_in_the_weights_is_of_second_order(formulation):
    """From a gap below 1e-3 on, each step squares it, up to a constant."""
    found = solve(problem(formulation, C=10.0), "analytic", tol=1e-11)
    assert found.relative_gap <= 1e-11  # rounding errors are about as large
    late = found.trace.gap[found.trace.gap < 1e-3]
    assert len(late) <= 4


@pytest.mark.parametrize("q, converges", [(2.5, True), (4.0, False)])
def test_eq_31_of_kloft_diverges_for_q_above_3(q, converges):
    """log θ ← (2 − q)(log θ + log v): a contraction only while |2 − q| < 1.

    The printed update, rightly normalized, is θ = (u/‖u‖_q)^{2−q}, our `weights`.
    """

    def printed(problem):
        theta, machine = np.ones(GRAMS.M), machine_for(problem)
        while True:
            machine.solve(theta)
            machine.set_tolerance((yield Iterate(machine.point, theta)))
            theta = problem.formulation.weights(theta * machine.v)

    try:
        method = solver("printed", needs={"reweighted"})(printed)
        with np.errstate(over="ignore", invalid="ignore"):
            found = solve(problem(BlockNorm(q)), method, tol=1e-6, max_iter=60)
    finally:
        REGISTRY.pop("printed", None)
    assert found.converged == converges
    if not converges:  # the weights run apart, and every iterate is worse than the last
        assert found.trace.primal[-1] > 10 * found.trace.primal[0]
        assert solve(problem(BlockNorm(q)), "analytic").converged


def test_every_solver_states_where_it_comes_from_and_what_it_promises():
    for name, method in solvers().items():
        assert method.name == name and method.reference and method.guarantee
        home = importlib.import_module(f"mklopt.solvers.{name}")
        lines = home.__doc__ or ""
        assert method.about == lines.split("\n")[0]
        for part in ("Problem.", "Algorithm", "Guarantee."):
            assert part in lines, (name, part)
