"""The stack of kernels: operations, counting, validation, the proof of definiteness."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mklopt import GramStack

rng = np.random.default_rng(7)


def kernels(M=3, n=8, rank=4):
    L = rng.normal(size=(M, n, rank))
    return L @ L.transpose(0, 2, 1)


def test_operations_agree_with_their_definitions():
    K = kernels()
    grams, a = GramStack(K), rng.normal(size=8)
    A, B = rng.normal(size=(8, 2)), rng.normal(size=(3, 8, 2))
    theta = np.array([0.5, 0.0, 2.0])
    np.testing.assert_allclose(grams.matvec(a), [k @ a for k in K])
    np.testing.assert_allclose(grams.quad(A), [np.trace(A.T @ k @ A) for k in K])
    np.testing.assert_allclose(grams.apply(B), [k @ b for k, b in zip(K, B)])
    np.testing.assert_allclose(grams.combine(theta), np.tensordot(theta, K, 1))
    np.testing.assert_allclose(grams.rows(3), K[:, 3])
    np.testing.assert_allclose(grams.diag(), [np.diag(k) for k in K])
    np.testing.assert_allclose(grams.subset([2, 0]).matvec(a), [K[2] @ a, K[0] @ a])


def test_passes_are_counted():
    grams, a = GramStack(kernels()), np.ones(8)
    grams.matvec(a)
    grams.quad(a)
    grams.combine(np.ones(3))
    assert grams.passes == 3


def test_the_stack_is_read_only_and_keeps_no_link_to_its_source():
    K = kernels()
    grams = GramStack(K)
    before = grams.quad(np.ones(8))
    K[:] = 0
    np.testing.assert_array_equal(grams.quad(np.ones(8)), before)
    with pytest.raises(ValueError, match="read-only"):
        grams.K[0, 0, 0] = 1.0


def test_factors_are_the_data():
    L = [rng.normal(size=(8, r)) for r in (2, 5)]
    grams = GramStack.from_factors(L)
    a = rng.normal(size=8)
    np.testing.assert_allclose(grams.quad(a), [np.sum((f.T @ a) ** 2) for f in L])
    assert grams.proof == "factors" and 0 < grams.entry_error < 1e-14
    dyadic = [np.rint(f * 2**10) / 2**10 for f in L]
    assert GramStack.from_factors(dyadic).entry_error == 0.0


def test_quad_from_factors_is_sharp_where_the_product_cancels():
    L = rng.normal(size=(30, 5))
    null = np.linalg.svd(L.T)[2][-1] * 1e3  # Lᵀ null = 0 up to rounding
    grams = GramStack.from_factors([L])
    assert np.sqrt(grams.quad(null)[0]) < 1e-11


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
    for kernel, shift in zip(grams.K, delta):
        assert exact_min_pivot(kernel, float(shift)) >= 0
    assert grams.proof == "Cholesky"


def test_an_indefinite_kernel_is_refused():
    K = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(ValueError, match="kernel 0 is not positive semi-definite"):
        GramStack(K).verify_psd()


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda K: K[0], r"shape \(8, 8\).*single kernel"),
        (lambda K: K[:, :5], "square"),
        (lambda K: np.where(K[1, 2, 3] == K, np.nan, K), "kernel 1 has NaN"),
        (lambda K: K + np.triu(np.ones((8, 8)), 1), "kernel 0 is not symmetric"),
        (lambda K: -K, "negative diagonal"),
        (lambda K: K[:0], "expected"),
    ],
)
def test_bad_kernels_get_one_clear_sentence(spoil, words):
    with pytest.raises(ValueError, match=words):
        GramStack(spoil(kernels()))


def test_bad_factors_get_one_clear_sentence():
    with pytest.raises(ValueError, match="same n"):
        GramStack.from_factors([np.ones((3, 2)), np.ones((4, 2))])
