"""The programs: kernels from factors, the primal meets the derived dual, α is read."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mklopt import GramStack, Problem, certify
from mklopt.formulations import FixedWeights, GroupLasso, LpNorm
from mklopt.reference import programs
from mklopt.reference.contract_problems import load
from mklopt.reference.exact import run

GRAMS, TARGETS = load("small")


def value(program) -> float:
    found = run(program, "CLARABEL", {})
    assert found is not None
    return found


def test_factors_make_the_kernels():
    for given, L in zip(GRAMS.factors or [], programs.factors(GRAMS), strict=True):
        np.testing.assert_array_equal(L, given)
    dense = GramStack(GRAMS.dense())
    for m, L in enumerate(programs.factors(dense)):
        assert L.shape[1] == 4 + m  # the rank; what rounding adds is dropped
        np.testing.assert_allclose(L @ L.T, dense.kernel(m), atol=1e-12)
    wide = GramStack.from_factors([np.random.default_rng(0).normal(size=(3, 9))])
    (L,) = programs.factors(wide)
    assert L.shape == (3, 3)
    np.testing.assert_allclose(L @ L.T, wide.kernel(0))


def test_stacked_factors_are_found_again():
    parts = [np.ones((2, 3)), 2 * np.ones((2, 1))]
    L, slices = programs.stacked(parts)
    for part, where in zip(parts, slices):
        np.testing.assert_array_equal(L[:, where], part)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared", "multinomial"])
def test_the_primal_meets_the_derived_dual(loss, bias):
    y = TARGETS["classes" if loss == "multinomial" else "binary"]
    problem = Problem(GRAMS, y, loss, LpNorm(1.5), 0.7, bias=bias)
    primal, dual = programs.primal(problem), programs.dual(problem)
    assert value(primal) == pytest.approx(value(dual), rel=1e-6)
    alpha = dual.dual_point()
    if bias:
        np.testing.assert_allclose(np.sum(alpha, axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(primal.dual_point(), alpha, atol=1e-3)
    v = np.sqrt(GRAMS.quad(alpha))
    found = certify(problem, dual=alpha, weights=primal.norms() / v)
    assert 0 <= found.relative_gap <= 1e-3
    for w, size in zip(primal.weight_vectors(), primal.norms()):
        assert np.linalg.norm(w) == pytest.approx(size)


def test_the_program_at_fixed_weights_is_an_svm():
    theta = np.array([1.0, 0.0, 0.5, 0.2, 0.0, 2.0])
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", FixedWeights(theta), 2.0)
    program = programs.svm_program(problem, theta)
    alpha, y = cp.Variable(40), TARGETS["binary"]
    K = cp.psd_wrap(GRAMS.combine(theta))
    box = [cp.multiply(y, alpha) >= 0, cp.multiply(y, alpha) <= 2.0, cp.sum(alpha) == 0]
    gain = cp.Maximize(y @ alpha - 0.5 * cp.quad_form(alpha, K))
    assert value(program) == pytest.approx(cp.Problem(gain, box).solve(), rel=1e-5)


def test_conjugates_are_stated_for_any_costs():
    problem = Problem(GRAMS, TARGETS["binary"], "squared", GroupLasso())
    alpha = cp.Constant(np.full(40, 0.3))
    objective, cones = programs.conjugate_loss(problem, alpha, np.full(40, 2.0))
    found = cp.Problem(cp.Minimize(objective), cones).solve()
    a = -0.3 / 2.0
    known = 2.0 * np.sum(a**2 / 2 + a * problem.y)
    assert found == pytest.approx(known, rel=1e-6)
    for size, finite in ((0.9, True), (1.1, False)):
        penalty, cones = programs.conjugate_penalty(problem, np.full(6, size))
        best = cp.Problem(cp.Minimize(penalty), cones).solve()
        assert np.isfinite(best) == finite
    assert programs.balance(problem.with_(bias=False), alpha) == []
