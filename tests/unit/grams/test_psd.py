"""Proofs of positive semi-definiteness, checked in exact arithmetic; roots."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams.psd import indefinite, proved_shift, root

rng = np.random.default_rng(7)


def kernels(M=3, n=8, rank=4):
    L = rng.normal(size=(M, n, rank))
    return L @ L.transpose(0, 2, 1)


def exact_min_pivot(K: np.ndarray, shift: float) -> Fraction:
    """The smallest pivot of exact Gaussian elimination: ≥ 0 iff positive definite."""
    A = [[Fraction(float(x)) for x in row] for row in K]
    n = len(A)
    for i in range(n):
        A[i][i] += Fraction(shift)
    smallest = A[0][0]
    for k in range(n):
        smallest = min(smallest, A[k][k])
        if A[k][k] <= 0:
            return smallest
        for i in range(k + 1, n):
            factor = A[i][k] / A[k][k]
            A[i] = [x - factor * z for x, z in zip(A[i], A[k])]
    return smallest


def test_the_proof_of_definiteness_is_true_in_exact_arithmetic():
    K = kernels(M=4, n=9, rank=3)  # singular up to rounding: a shift is needed
    K[0] += np.eye(9)  # and one for which it is not
    grams = GramStack(K)
    delta = grams.verify_psd()
    assert delta[0] == 0.0 and np.all(delta[1:] > 0) and np.all(delta < 1e-11)
    for kernel, shift in zip(grams.dense(), delta):
        assert exact_min_pivot(kernel, float(shift)) >= 0
    assert grams.proof == "Cholesky"


def test_an_indefinite_kernel_is_refused_by_the_proof():
    with pytest.raises(ValueError, match="kernel 0 is not positive semi-definite"):
        proved_shift(np.array([[1.0, 2.0], [2.0, 1.0]]), "kernel 0")


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1.0, 1e300, 1.5e307])
def test_a_kernel_of_any_size_is_proved(size):
    K = size * (np.eye(5) + np.ones((5, 5)))
    assert proved_shift(K, "kernel 0") == 0.0
    low_rank = size * np.ones((5, 5))
    shift = proved_shift(low_rank, "kernel 0")
    assert 0 < shift <= 1e-12 * size + 5e-324
    assert exact_min_pivot(low_rank, shift) >= 0
    with pytest.raises(ValueError, match="not positive semi-definite"):
        proved_shift(size * (np.ones((5, 5)) - 0.5 * np.eye(5)), "kernel 0")


def sigmoid(n):
    X = np.random.default_rng(n).normal(size=(n, 5))
    return np.tanh(0.3 * X @ X.T + 0.5)


def bad_pair(n):
    K = np.eye(n)
    K[0, -1] = K[-1, 0] = 1.01
    return K


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("n", [5, 40, 400])
@pytest.mark.parametrize("bad", [sigmoid, bad_pair])
def test_a_stack_names_an_indefinite_kernel(bad, n, size):
    """It says which one, and a value of zᵀKz that the kernel really has."""
    K = np.stack([np.eye(n), np.ones((n, n)), size * bad(n), np.eye(n)])
    for storage, dtype in (("packed", "float64"), ("full", "float64")):
        with pytest.raises(ValueError, match="kernel 2 is not positive") as caught:
            GramStack(K, storage=storage, dtype=dtype)
        said = float(re.findall(r"zᵀKz = (\S+) for a unit", str(caught.value))[0])
        lowest = size * np.linalg.eigvalsh(bad(n))[0]
        assert 1.001 * lowest <= said < 0 and "clip" in str(caught.value)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 400])
@pytest.mark.parametrize("kind", [float, np.float32])
def test_kernels_that_are_indefinite_by_rounding_pass(n, kind):
    X = np.random.default_rng(n).normal(size=(n, 2))
    near = np.exp(-1e-4 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    given = [near, np.ones((n, n)), X @ X.T, 0 * near, 1e-300 * near, 1e300 * near]
    K = np.array(given[: 4 if kind is np.float32 else 6]).astype(kind)
    assert n < 60 or np.linalg.eigvalsh(K[0].astype(float))[0] < 0
    assert len(K) == GramStack(K).M
    assert GramStack(K, dtype="float32" if kind is np.float32 else "float64")


def test_what_is_not_a_negative_form_is_not_named():
    store = GramStack(kernels(M=3, n=70, rank=5))._store
    assert indefinite(store, 1e-6) == ""
    store.screen = lambda which, rounding: np.zeros(3, bool)  # wrong about all
    assert indefinite(store, 1e-6) == ""
    del store.screen
    store.P[1, store.starts[-1]] = -1.0
    assert "kernel 1 is" in indefinite(store, 1e-6)


@pytest.mark.parametrize("n", [60, 400])
def test_small_negative_eigenvalues_are_found(n):
    """Noise of 1e-4 on a smooth kernel: its eigenvalues are 1e-5 of the trace."""
    draw = np.random.default_rng(0)
    x, noise = draw.normal(size=n), 1e-4 * draw.normal(size=(n, n))
    K = np.exp(-((x[:, None] - x) ** 2)) + noise + noise.T
    with pytest.raises(ValueError, match="kernel 1 is not positive"):
        GramStack([np.eye(n), K])


@pytest.mark.parametrize("shift", [0.0, 0.25])
def test_a_root_is_a_factor_of_the_rank_of_the_kernel(shift):
    K = kernels(M=1, rank=3)[0]
    L = root(K, shift)
    np.testing.assert_allclose(L @ L.T, K + shift * np.eye(8), atol=1e-12)
    assert L.shape == (8, 8 if shift else 3)


def test_the_root_of_nothing_is_zero_and_of_an_indefinite_matrix_refused():
    np.testing.assert_array_equal(root(np.zeros((3, 3))), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="smallest eigenvalue is -1, its largest 3"):
        root(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_a_shift_is_needed_only_where_rounding_spoils_the_proof():
    assert proved_shift(np.eye(4), "K") == 0.0
    assert proved_shift(np.zeros((4, 4)), "K") == 0.0
    assert 0 < proved_shift(np.ones((4, 4)), "K") < 1e-13
    wrong = pytest.raises(ValueError, match="K is too large for float64")
    with np.errstate(over="ignore"), wrong:
        proved_shift(1e308 * np.eye(4), "K")


def test_a_kernel_that_is_indefinite_by_less_than_rounding_is_not_proved_as_it_is():
    """d = b²/a, rounded: where a d < b² Cholesky may run all the same."""
    draw = np.random.default_rng(0)
    for a, b in draw.uniform(1, 2, size=(200, 2)):
        K = np.array([[a, b], [b, b * b / a]])
        assert exact_min_pivot(K, proved_shift(K, "kernel 0")) >= 0
