"""References: other solvers, fixed weights, users' own declarations."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

from mklopt import Problem, certify, formulation, loss, reference
from mklopt.formulations import (
    FixedWeights,
    GroupLasso,
    LpNorm,
    formulations,
    losses_by_name,
    stripped,
    stripped_loss,
)
from mklopt.reference.contract_problems import STORE, load, small_cells

GRAMS, TARGETS = load("small")


def overlap(a, b) -> bool:
    return a.lower <= b.upper and b.lower <= a.upper


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
def test_any_installed_solver_by_name(solver):
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} has no wheels for this Python or system")
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", GroupLasso())
    found = reference.solve(problem, solver=solver)
    assert found.solver == solver and found.seconds > 0
    assert 0 <= found.relative_gap <= 1e-6
    assert overlap(found, reference.solve(problem))


def test_a_solver_that_is_not_there_gets_one_clear_sentence():
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", GroupLasso())
    with pytest.raises(ValueError, match="not installed; choose one of"):
        reference.solve(problem, solver="GUROBEE")


def test_a_lying_status_does_not_matter():
    """Few iterations give a poor point: the interval is wide, and still true."""
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", LpNorm(2.0))
    sloppy = reference.solve(
        problem, solver="SCS", options={"max_iters": 20, "eps_abs": 1e-1}
    )
    good = reference.solve(problem)
    assert sloppy.relative_gap > 1e-6
    assert sloppy.lower <= good.lower and good.upper <= sloppy.upper


def test_fixed_weights_are_an_svm_with_osqp_and_with_libsvm():
    theta = np.array([1.0, 0.0, 0.5, 0.2, 0.0, 2.0])
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", GroupLasso(), C=3.0)
    found = reference.at_weights(problem, theta)
    assert found.solver == "OSQP" and 0 <= found.relative_gap <= 1e-6
    machine = SVC(C=3.0, kernel="precomputed", tol=1e-8)
    machine.fit(GRAMS.combine(theta), TARGETS["binary"])
    alpha = np.zeros(40)
    alpha[machine.support_] = machine.dual_coef_[0]
    other = certify(
        problem.with_(formulation=FixedWeights(theta)), dual=alpha, weights=theta
    )
    assert overlap(found, other) and other.relative_gap <= 1e-5


@pytest.mark.parametrize("name", ["squared", "eps_insensitive", "huber", "quantile"])
def test_fixed_weights_for_regression(name):
    problem = Problem(GRAMS, TARGETS["real"], name, GroupLasso())
    found = reference.at_weights(problem, np.ones(6))
    assert 0 <= found.relative_gap <= 1e-5


def test_fixed_weights_say_when_osqp_cannot():
    problem = Problem(GRAMS, TARGETS["binary"], "logistic", GroupLasso())
    with pytest.raises(ValueError, match="pass solver='CLARABEL'"):
        reference.at_weights(problem, np.ones(6))
    assert (
        reference.at_weights(problem, np.ones(6), solver="CLARABEL").relative_gap < 1e-8
    )


# ---- declarations alone ------------------------------------------------------


def test_a_made_up_formulation_gets_everything():
    @formulation
    def elastic(u):
        return cp.sum(u) + 0.1 * cp.sum_squares(u)

    problem = Problem(GRAMS, TARGETS["binary"], "hinge", elastic)
    found = reference.solve(problem)
    assert found.relative_gap <= 1e-7
    derived = reference.solve_dual(problem)
    assert derived.value == pytest.approx(found.upper, rel=1e-7)
    again = certify(problem, dual=found.dual, weights=found.weights)
    assert again.relative_gap <= 1e-5
    assert not again.assumptions  # its terms are known, in closed form
    derived_only = problem.with_(formulation=stripped(elastic))
    hidden = certify(derived_only, dual=found.dual, weights=found.weights)
    assert "numerically derived operators" in hidden.assumptions[0]
    # By hand: slope 1 + 0.2u, so θ = u/(1 + 0.2u), and θ = ‖w‖/‖α‖_K at the optimum.
    u = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(elastic.weights(u), u / (1 + 0.2 * u), rtol=1e-5)
    v = np.sqrt(GRAMS.quad(found.dual))
    used = found.weights > 1e-4
    u_star = (found.weights * v)[used]
    np.testing.assert_allclose(
        elastic.weights(found.weights * v)[used], found.weights[used], rtol=1e-3
    )
    assert np.all(u_star > 0) and used.any()


def test_a_formulation_with_kernel_weights_as_variables():
    @formulation
    def barrier(u):
        theta = cp.Variable(u.shape, nonneg=True)
        ratio = sum(cp.quad_over_lin(u[m], theta[m]) for m in range(u.shape[0]))
        return 0.5 * ratio + cp.sum(theta) - 0.01 * cp.sum(cp.log(theta)), []

    problem = Problem(GRAMS, TARGETS["binary"], "logistic", barrier)
    found = reference.solve(problem, tol=1e-8)
    assert 0 <= found.relative_gap <= 1e-6
    assert np.all(found.weights > 0)  # the barrier keeps every kernel alive


def test_a_made_up_loss_gets_everything():
    @loss(labels="binary")
    def squared_hinge(f, y):
        return cp.square(cp.pos(1 - cp.multiply(y, f)))

    y = TARGETS["binary"]
    domain = squared_hinge.domain(y)
    assert np.all(np.isinf(np.where(y > 0, domain.low, domain.high)))
    # By hand: V*(a) = a y + a²/4 on a y ≤ 0.
    a = -0.7 * y
    np.testing.assert_allclose(
        squared_hinge.conjugate(a, y), a * y + a**2 / 4, rtol=1e-7
    )
    problem = Problem(GRAMS, y, squared_hinge, LpNorm(2.0))
    found = reference.solve(problem)
    assert 0 <= found.relative_gap <= 1e-7
    assert reference.solve_dual(problem).value == pytest.approx(found.upper, rel=1e-7)


def test_a_made_up_multiclass_loss():
    @loss(labels="classes")
    def softened(f, y):
        Y = np.eye(f.shape[1])[y]
        return cp.log_sum_exp(f + 1 - Y, axis=1) - cp.sum(cp.multiply(Y, f), axis=1)

    problem = Problem(GRAMS, TARGETS["classes"], softened, GroupLasso())
    found = reference.solve(problem, tol=1e-7)
    assert 0 <= found.relative_gap <= 1e-5


SCALAR = [name for name, cls in losses_by_name().items() if cls.labels != "classes"]
EXAMPLES = [f for cls in formulations().values() for f in cls.examples(6)]


@pytest.mark.parametrize(
    "which", range(len(EXAMPLES)), ids=[repr(f)[:40] for f in EXAMPLES]
)
def test_with_all_closed_forms_deleted(which, cell_counter):
    """Nothing but the two declarations: the same answer, from derived operators."""
    name = SCALAR[which % len(SCALAR)]
    cls = losses_by_name()[name]
    cell = next(
        c
        for c in small_cells()
        if c.formulation == EXAMPLES[which] and isinstance(c.loss, cls)
    )
    problem = cell.problem()
    bare = problem.with_(
        loss=stripped_loss(problem.loss), formulation=stripped(problem.formulation)
    )
    stored = STORE.load(problem)
    assert stored is not None
    derived = reference.solve_dual(bare)
    assert derived.value == pytest.approx(stored.upper, rel=1e-8, abs=1e-8)
    assert derived.bound <= stored.upper * (1 + 1e-7)
    again = certify(bare, dual=stored.dual, coefficients=stored.coefficients)
    assert abs(again.relative_gap) <= 1e-6
    cell_counter("run")


def test_a_declaration_that_is_not_convex_gets_one_clear_sentence():
    @formulation
    def concave(u):
        return cp.sum(cp.sqrt(u))

    with pytest.raises(ValueError, match="not a convex CVXPY expression"):
        concave.conjugate(np.ones(3))
