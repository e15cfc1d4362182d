"""Users' own declarations: constants, changed surroundings, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

from mklopt import Problem, certify, formulation, loss, reference
from mklopt.formulations import Formulation, GroupLasso, LpNorm
from mklopt.formulations.losses.residual import Huber
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
Y = TARGETS["binary"]


def shifted(u):
    return cp.sum(u) + 5


def shifted_with_auxiliaries(u):
    t = cp.Variable(u.shape)
    return cp.sum(t) + 5, [t >= u]


@pytest.mark.parametrize("declare", [shifted, shifted_with_auxiliaries])
def test_additive_constants_are_kept(declare):
    mine = formulation(declare)
    assert mine.value(np.ones(4)) == pytest.approx(9)
    assert mine.conjugate(np.full(4, 0.5)) == pytest.approx(-5)
    plain = reference.solve(Problem(GRAMS, Y, formulation=GroupLasso()))
    moved = reference.solve(Problem(GRAMS, Y, formulation=mine))
    assert moved.lower <= plain.upper + 5 and plain.lower + 5 <= moved.upper
    derived = reference.solve_dual(Problem(GRAMS, Y, formulation=mine))
    assert derived.bound == pytest.approx(plain.upper + 5, rel=1e-8)


def test_additive_constants_of_a_loss_are_kept():
    @loss
    def pseudo_huber(f, y):
        return cp.norm(cp.vstack([f - y, np.ones(len(y))]), 2, axis=0) - 1

    y = TARGETS["real"]
    a = np.linspace(-0.9, 0.9, len(y))
    by_hand = a * y - np.sqrt(1 - a**2) + 1
    np.testing.assert_allclose(pseudo_huber.conjugate(a, y), by_hand, atol=1e-7)
    found = reference.solve(Problem(GRAMS, y, pseudo_huber, LpNorm(2.0)))
    assert 0 <= found.relative_gap <= 1e-6


def test_a_loss_with_auxiliary_variables_is_the_same_loss():
    @loss
    def huber(f, y):
        s = cp.Variable(f.shape[0])
        return 0.5 * cp.square(s) + cp.abs(f - y - s), []

    y = TARGETS["real"]
    mine = reference.solve(Problem(GRAMS, y, huber, LpNorm(2.0)))
    known = reference.solve(Problem(GRAMS, y, Huber(1.0), LpNorm(2.0)))
    assert mine.lower <= known.upper and known.lower <= mine.upper
    assert 0 <= mine.relative_gap <= 1e-6


def test_what_a_declaration_refers_to_may_change():
    scale = 1.0
    mine = formulation(lambda u: scale * cp.sum(u))
    first = reference.solve(Problem(GRAMS, Y, formulation=mine))
    scale = 3.0
    second = reference.solve(Problem(GRAMS, Y, formulation=mine))
    truth = reference.solve(Problem(GRAMS, Y, formulation=GroupLasso(), C=1 / 3))
    assert first.upper < second.lower
    assert second.lower <= 3 * truth.upper and 3 * truth.lower <= second.upper


def test_intervals_of_derived_operators_never_cross():
    @formulation
    def k_support(u):
        theta = cp.Variable(u.shape)
        ratio = sum(cp.quad_over_lin(u[m], theta[m]) for m in range(u.shape[0]))
        return 0.5 * ratio, [theta <= 1, cp.sum(theta) <= 2]

    for name in ("hinge", "logistic", "squared"):
        found = reference.solve(Problem(GRAMS, Y, name, k_support))
        assert 0 < found.relative_gap <= 1e-7


def test_certify_survives_candidates_for_which_nothing_can_be_derived():
    @formulation
    def barrier(u):
        theta = cp.Variable(u.shape, nonneg=True)
        ratio = sum(cp.quad_over_lin(u[m], theta[m]) for m in range(u.shape[0]))
        return 0.5 * ratio + cp.sum(theta) - 0.2 * cp.sum(cp.log(theta)), []

    problem = Problem(GRAMS, Y, formulation=barrier)
    for size in (0.01, 0.1, 1.0):
        found = certify(problem, size * Y, np.ones(6))
        assert found.lower <= found.upper


@pytest.mark.parametrize(
    "declare, words",
    [
        (lambda u: cp.sum_squares(u - 1), r"falls from .* when u_0 grows"),
        (lambda u: -cp.sum(u), "must increase"),
        (lambda u: u, r"shape \(6,\); it must be one number"),
        (lambda u: None, "returned NoneType"),
        (lambda u: np.sum(u), "cp.sum and not np.sum"),
        (lambda u: cp.sum(u) + u[7], r"shape \(6,\) \(IndexError"),
        (lambda u: cp.sum(cp.sqrt(u)), "not a convex CVXPY expression"),
        (lambda u: cp.sum(cp.Variable(6, boolean=True)) + cp.sum(u), "integer"),
    ],
)
def test_a_wrong_formulation_is_refused_when_the_problem_is_made(declare, words):
    with pytest.raises(ValueError, match=words):
        Problem(GRAMS, Y, formulation=formulation(declare))


@pytest.mark.parametrize(
    "declare, words",
    [
        (lambda f, y: f, "not bounded below"),
        (lambda f, y: cp.sum(cp.abs(f)), "must be 40 numbers"),
        (lambda f, y: cp.sqrt(cp.abs(f)), "not a convex CVXPY expression"),
    ],
)
def test_a_wrong_loss_is_refused_when_the_problem_is_made(declare, words):
    with pytest.raises(ValueError, match=words):
        Problem(GRAMS, Y, loss(declare), GroupLasso())


def test_what_is_not_a_function_is_refused():
    for make in (formulation, loss):
        with pytest.raises(ValueError, match="takes a function"):
            make(3)


def test_classes_with_parameters_must_be_dataclasses():
    class Scaled(Formulation):
        scale: float

        def __init__(self, scale):
            object.__setattr__(self, "scale", scale)

        def penalty(self, u):
            return self.scale * cp.sum(u)

    with pytest.raises(ValueError, match="no dataclass"):
        Problem(GRAMS, Y, formulation=Scaled(2.0))

    @dataclass(frozen=True)
    class Weighted(Formulation):
        scale: object

        def penalty(self, u):
            return cp.sum(cp.multiply(self.scale, u))

    with pytest.raises(ValueError, match="cannot be hashed"):
        Problem(GRAMS, Y, formulation=Weighted(np.ones(6)))
    found = reference.solve(Problem(GRAMS, Y, formulation=Weighted(1.0)))
    assert 0 <= found.relative_gap <= 1e-7


def test_closed_forms_mind_their_domain():
    block = LpNorm(2.0)
    assert block.conjugate(np.array([0.4, -0.8])) == block.conjugate(
        np.array([0.4, 0.0])
    )
    assert block.prox(np.array([1.0, -2.0]), 0.5)[1] == 0
    with pytest.raises(ValueError, match="u ≥ 0"):
        block.value(np.array([-1.0]))
    with pytest.raises(ValueError, match="positive steps"):
        block.prox(np.array([1.0]), -0.5)


def test_an_indefinite_kernel_is_refused_with_a_sentence():
    K = GRAMS.dense() - 0.3 * np.eye(40)
    K = K + np.maximum(0, -np.min(np.einsum("mii->mi", K)))[..., None] * np.eye(40)
    K[0] -= 0.4 * (np.ones((40, 40)) - np.eye(40))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        reference.solve(Problem(K, Y, formulation=LpNorm(2.0)))


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(tol=-1.0), "must be positive"),
        (dict(options={"max_iter": 5}), "name it with solver="),
        (dict(solver=5), "not installed"),
    ],
)
def test_wrong_arguments_of_solve_get_one_clear_sentence(given, words):
    problem = Problem(GRAMS, Y, formulation=GroupLasso())
    with pytest.raises(ValueError, match=words):
        reference.solve(problem, **given)


def test_an_unbounded_problem_says_so():
    problem = Problem(GRAMS, Y, formulation=GroupLasso())
    with pytest.raises(RuntimeError, match="OSQP"):
        reference.solve(problem, solver="OSQP")


def test_a_subclass_with_another_declaration_inherits_no_closed_forms():
    """`penalty` is the declaration: change it, and what followed from it is gone."""
    from dataclasses import dataclass

    import cvxpy as cp

    @dataclass(frozen=True)
    class Plus(LpNorm):
        def penalty(self, u):
            return super().penalty(u) + 5 * cp.sum(u)

    u = np.array([1.0, 2.0])
    plus = Plus(2.0)
    assert plus.value(u) == pytest.approx(LpNorm(2.0).value(u) + 15.0, rel=1e-7)
    assert plus.traits == frozenset() and not plus.exact
