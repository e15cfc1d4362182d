"""Newton's system of k classes: products, preconditioner, conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses.class_terms import bend, total_bend
from mklopt.formulations.losses.multiclass import MulticlassHinge, Multinomial
from mklopt.grams.factors import Panel
from mklopt.solvers.machines.class_newton import (
    ClassNewton,
    Preconditioner,
    conjugate_gradients,
)

rng = np.random.default_rng(1)
N, R, K = 60, 5, 3
FEATURES = rng.normal(size=(N, R)) + 2
Y = np.append(np.arange(K), rng.integers(0, K, N - K))
ROOT = rng.uniform(0.5, 2.0, R)
Z = FEATURES * ROOT
every_case = pytest.mark.parametrize(
    ("loss", "bias"),
    [(l, b) for l in (MulticlassHinge(), Multinomial()) for b in (True, False)],
)


def newton(loss, bias, C=1.0) -> ClassNewton:
    panel = Panel(FEATURES, np.array([[0, R]]))
    terms = loss.class_terms(Y, np.full(N, C))
    return ClassNewton(panel, ROOT, terms, bias, Preconditioner(panel))


def matrix(s: np.ndarray, bias: bool) -> np.ndarray:
    """I + ZᵀDZ with the bias eliminated, from dense blocks."""
    blocks = np.zeros((N, K, N, K))
    for i in range(N):
        block = np.column_stack([bend(s[i : i + 1], e[None])[0] for e in np.eye(K)])
        blocks[i, :, i, :] = block
    D = blocks.reshape(N * K, N * K)
    if bias:
        ones = np.kron(np.ones((N, 1)), np.eye(K))
        D = D - D @ ones @ np.linalg.pinv(total_bend(s), rcond=1e-12) @ ones.T @ D
    wide = np.kron(Z, np.eye(K))
    return np.eye(R * K) + wide.T @ D @ wide


@every_case
def test_the_product_is_that_of_the_matrix(loss, bias):
    at = newton(loss, bias)
    s = at.terms.respond(rng.normal(size=(N, K)))[1]
    curved = at.curved(s)
    assert curved is not None
    P = rng.normal(size=(R, K))
    expected = (matrix(s, bias) @ P.ravel()).reshape(R, K)
    np.testing.assert_allclose(curved.times(P), expected, atol=1e-9)


@every_case
def test_a_direction_solves_the_system(loss, bias):
    at = newton(loss, bias)
    s = at.terms.respond(rng.normal(size=(N, K)))[1]
    right = rng.normal(size=(R, K))
    right -= np.mean(right, axis=1, keepdims=True)
    curved = at.curved(s)
    assert curved is not None
    x, rest = at.solve(curved, s, right, 1e-10)
    expected = np.linalg.solve(matrix(s, bias), right.ravel()).reshape(R, K)
    np.testing.assert_allclose(x, expected, atol=1e-8)
    assert np.linalg.norm(rest) <= 1e-10 * np.linalg.norm(right)
    assert at.iterations <= 2 * R * K


@every_case
def test_the_gap_falls_to_the_goal_and_is_true(loss, bias):
    at = newton(loss, bias, C=10.0)
    found = at.cold(1e-7)
    assert found.gap <= 1e-7
    np.testing.assert_allclose(found.g, Z @ found.x + found.b, atol=1e-9)
    primal = 10 * np.sum(loss.value(found.g, Y)) + 0.5 * np.sum(found.x**2)
    # by rounding α may be just outside of the domain of V*
    alpha = loss.domain(Y).restore(found.alpha, np.full(N, 10.0), False)
    dual = -10 * np.sum(loss.conjugate(-alpha / 10, Y))
    dual -= 0.5 * np.sum((Z.T @ found.alpha) ** 2)
    assert primal - dual == pytest.approx(found.gap, abs=1e-8)
    if bias:
        assert np.max(np.abs(np.sum(found.alpha, axis=0))) <= 1e-9
    assert np.max(np.abs(np.sum(found.x, axis=1))) <= 1e-9


def test_a_warm_start_with_far_too_large_a_penalty():
    """After a solution to many digits σ is huge; at another θ it begins smaller."""
    at = newton(MulticlassHinge(), True)
    found = at.cold(1e-9)
    other = newton(MulticlassHinge(), True)
    other.root = ROOT * np.array([1.0, 0.01, 3.0, 0.1, 2.0])
    found.x, found.sigma = np.zeros((0, K)), 1e8
    folded = other.root[:, None] * (FEATURES.T @ found.alpha)
    assert other.warm(found.alpha, folded, found, 1e-8).gap <= 1e-8


def test_conjugate_gradients_of_a_small_system():
    A = rng.normal(size=(6, 6))
    A, right = A @ A.T + np.eye(6), rng.normal(size=6)
    x, rest, count = conjugate_gradients(lambda p: A @ p, np.copy, right, 1e-12, 50)
    np.testing.assert_allclose(A @ x, right, atol=1e-9)
    np.testing.assert_allclose(right - A @ x, rest, atol=1e-9)
    assert count <= 12
    assert conjugate_gradients(lambda p: A @ p, np.copy, right, 1e-12, 2)[2] == 2


def test_no_sample_moves():
    at = newton(MulticlassHinge(), True)
    assert at.curved(np.zeros((N, K))) is None
    dx, db = at._direction(np.zeros((N, K)), np.ones((R, K)))
    np.testing.assert_array_equal(dx, -1.0)
    assert not np.any(db)


def test_numbers_that_overflow_end_it_at_once():
    """NaN is neither small nor large: no loop goes on until its last iteration."""
    nothing = np.full((3, 2), np.nan)
    assert conjugate_gradients(np.copy, np.copy, nothing, 0.1, 50)[2] == 0
    one = newton(Multinomial(), True)
    with np.errstate(all="ignore"):
        at = one.cold(1e-6)
        at.x = np.full_like(at.x, np.nan)
        at.g = np.full_like(at.g, np.nan)
        begun = one.steps
        assert np.isnan(one.again(at, 1e-9).gap)
    assert one.steps == begun
