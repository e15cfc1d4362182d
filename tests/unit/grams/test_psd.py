"""Proofs of positive semi-definiteness, checked in exact arithmetic; roots."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams.psd import proved_shift, root

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


def test_an_indefinite_kernel_is_refused():
    K = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(ValueError, match="kernel 0 is not positive semi-definite"):
        GramStack(K).verify_psd()


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
