"""Linear systems: with a border, with jitter, factorized or by conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from mklopt.solvers.machines import linear
from mklopt.solvers.machines.linear import (
    System,
    bordered,
    conjugate_gradients,
    jittered_cholesky,
    per_sample,
)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_conjugate_gradients_agree_with_the_factorization(monkeypatch, k, scaled):
    rng, n, m = np.random.default_rng(0), 30, 4
    half = rng.normal(size=(n, n))
    G, N = rng.normal(size=(n * k, m)), np.diag(rng.uniform(0.1, 1, m))
    system = System(half @ half.T / n, G, N, k)
    shape = (n,) if k == 1 else (n, k)
    D, R = rng.uniform(0.5, 2.0, n), None
    if scaled:
        R = rng.uniform(0.2, 1.0, n)
    if k > 1:
        D = np.einsum("i,ab->iab", D, np.eye(k) + 0.3)
        R = None if R is None else np.einsum("i,ab->iab", R, np.eye(k) - 0.2)
    right = rng.normal(size=shape)
    direct = system.solve(right, D, R)
    monkeypatch.setattr(linear, "DENSE", 0)
    monkeypatch.setattr(linear, "ACCURATE", 1e-12)
    assert system.solve(right, D, R) == pytest.approx(direct, abs=1e-8)
    assert np.max(np.abs(direct)) > 1e-2


def test_conjugate_gradients_take_the_same_steps_for_all_columns():
    rng = np.random.default_rng(3)
    half, B = rng.normal(size=(40, 40)), rng.normal(size=(40, 3))
    S, asked = half @ half.T + np.eye(40), []

    def product(X):
        asked.append(X.shape)
        return S @ X

    exact = np.linalg.solve(S, B)
    found = conjugate_gradients(product, B, 1e-12, 300)
    assert found == pytest.approx(exact, abs=1e-9)
    asked.clear()
    rough = B.T @ conjugate_gradients(product, B, 1e-12, 7)
    assert asked == [(40, 3)] * 7
    assert rough == pytest.approx(rough.T, rel=1e-10)
    # the minimum over a subspace: on the whole it is smaller
    assert 0.5 * np.trace(B.T @ exact) < np.trace(rough) < np.trace(B.T @ exact)


def test_a_border_is_kept_where_the_system_is_singular_but_for_it():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(6, 5)) * 10  # rank 5; with Σd = 0 the minimizer is unique
    S, r, border = V @ V.T, rng.normal(size=(6, 1)), np.ones((6, 1))
    d = bordered(S, r, border)
    assert d is not None
    assert abs(np.sum(d)) <= 1e-10 * np.sum(np.abs(d))
    Z = np.linalg.svd(border.T)[2][1:].T  # a basis of Σd = 0
    wanted = Z @ np.linalg.solve(Z.T @ S @ Z, Z.T @ r)
    assert d == pytest.approx(wanted, rel=1e-8)
    shifted = bordered(S, r, border, np.array([0.3]))
    assert shifted is not None and np.sum(shifted) == pytest.approx(0.3, rel=1e-9)
    level = S @ shifted - r
    assert level == pytest.approx(np.full((6, 1), level.mean()), rel=1e-6)


@pytest.mark.parametrize("k", [1, 3])
def test_a_system_is_solved_as_the_matrix_it_stands_for(k):
    rng, n, m = np.random.default_rng(1), 8, 2
    half = rng.normal(size=(n, n))
    K, G = half @ half.T, rng.normal(size=(n * k, m))
    N, D = np.diag([0.5, 2.0]), rng.uniform(1.0, 2.0, n)
    A = np.kron(K, np.eye(k)) + G @ N @ G.T + np.kron(np.diag(D), np.eye(k))
    blocks = D if k == 1 else D[:, None, None] * np.eye(k)
    right = rng.normal(size=(n, k) if k > 1 else n)
    found = System(K, G, N, k).solve(right, blocks)
    assert found.shape == right.shape
    np.testing.assert_allclose(A @ found.ravel(), right.ravel(), atol=1e-9)


def test_jitter_repairs_rounding_and_nothing_worse():
    rng = np.random.default_rng(2)
    V = rng.normal(size=(6, 3))
    singular = V @ V.T - 1e-13 * np.eye(6)
    factor = jittered_cholesky(singular)
    right = singular @ rng.normal(size=6)
    found = scipy.linalg.cho_solve(factor, right)
    np.testing.assert_allclose(singular @ found, right, atol=1e-6)
    assert jittered_cholesky(-np.eye(3)) is None
    assert bordered(-np.eye(3), np.ones((3, 1)), None) is None


def test_an_indefinite_system_gets_a_descent_direction():
    right = np.array([1.0, 1.0])
    found = System(np.diag([1.0, -1.0]), np.zeros((2, 0)), np.zeros((0, 0)), 1).solve(
        right, np.zeros(2)
    )
    assert found[0] == pytest.approx(1.0) and found[1] > 0
    with pytest.raises(ArithmeticError, match="overflows"):
        linear._factorized(np.array([[np.nan]]), np.ones(1))
    with pytest.raises(ArithmeticError, match="overflows"):
        linear._factorized(np.eye(1), np.array([np.inf]))


def test_products_per_sample():
    rng = np.random.default_rng(3)
    x, R = rng.normal(size=(4, 2)), rng.normal(size=(4, 2, 2))
    expected = np.array([r @ row for r, row in zip(R, x)])
    turned = np.array([r.T @ row for r, row in zip(R, x)])
    np.testing.assert_allclose(per_sample(R, x), expected)
    np.testing.assert_allclose(per_sample(R, x, transposed=True), turned)
    np.testing.assert_array_equal(per_sample(None, x), x)
    np.testing.assert_array_equal(per_sample(R[:, 0, 0], x[:, 0]), R[:, 0, 0] * x[:, 0])
