"""δ of the theorem, against entries in exact and in 60-digit arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from mklopt import GramStack, Problem, kernels, solve
from mklopt.formulations import LpNorm
from mklopt.kernels.psd_theorem import _normalized, psd_shift
from mklopt.util.rounding import U

mpmath.mp.dps = 60
rng = np.random.default_rng(3)
STEPS: list[Any] = [None, "unit_trace", "spherical", ("unit_trace", "spherical")]
STEPS += ["multiplicative", ("spherical", "unit_trace"), ("spherical",) * 2]
FAMILY = (
    kernels.gaussians([0.4, 3.0, 40.0, "mean"])
    + kernels.linear()
    + kernels.polynomials([2, 5], offset=0.3)
)


def points(d, size=1.0):
    """Twelve points, two of them the same and two nearly so."""
    X = size * (rng.normal(size=(12, d)) + 3.0)
    X[1], X[2] = X[0], X[0] * (1 + 1e-8)
    return X


def exactly(fitted, m, K):
    """Kernel m in 60 digits: the stored points, rates, offsets and divisors."""
    degrees, numbers = fitted.rules()
    X = [[mpmath.mpf(float(x)) for x in row] for row in fitted.blocks[""]]
    number, degree, n = mpmath.mpf(float(numbers[m])), int(degrees[m]), len(X)
    out = mpmath.matrix(n)
    for i in range(n):
        for j in range(n):
            if degree:
                t = mpmath.fsum(a * b for a, b in zip(X[i], X[j]))
                out[i, j] = (t + number) ** degree
            else:
                t = mpmath.fsum((a - b) ** 2 for a, b in zip(X[i], X[j]))
                out[i, j] = mpmath.exp(t * number)
    for step, found in zip(fitted.normalize, fitted.learned.steps):
        r = [mpmath.mpf(float(x)) for x in np.broadcast_to(found[m], n)]
        for i in range(n):
            for j in range(n):
                out[i, j] /= r[i] * r[j] if step == "spherical" else r[i]
    return out


def distance(K, exact):
    """‖K − K*‖, by its eigenvalues."""
    E = np.array(
        [[float(mpmath.mpf(float(K[i, j])) - exact[i, j]) for j in range(len(K))]
         for i in range(len(K))]
    )  # fmt: skip
    return float(np.max(np.abs(np.linalg.eigvalsh(E))))


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("d, size", [(1, 1.0), (7, 1e-3), (40, 30.0)])
def test_entries_are_as_near_to_the_exact_kernel_as_it_says(d, size, steps):
    fitted = FAMILY.fit(points(d, size), steps)
    K = list(fitted)
    delta = psd_shift(fitted, np.arange(fitted.M))
    for m in range(fitted.M):
        off = distance(K[m], exactly(fitted, m, K[m]))
        assert 0 <= off <= delta[m] < 5 * (8 * d + 40) * U * np.trace(K[m])


def semi_definite(K, shift):
    """Whether K + δI ⪰ 0, by an elimination in rational numbers."""
    A = [[Fraction(float(x)) for x in row] for row in K]
    n = len(A)
    for i in range(n):
        A[i][i] += Fraction(float(shift))
    for k in range(n):
        if A[k][k] < 0 or (A[k][k] == 0 and any(A[k][k + 1 :])):
            return False
        for i in range(k + 1, n) if A[k][k] else []:
            factor = A[i][k] / A[k][k]
            A[i] = [x - factor * y for x, y in zip(A[i], A[k])]
    return True


@pytest.mark.parametrize("steps", [None, "unit_trace", "spherical"])
def test_shifted_kernels_are_semi_definite_and_others_are_not(steps):
    fitted = FAMILY.fit(points(2)[:7], steps)
    K, delta = list(fitted), psd_shift(fitted, np.arange(fitted.M))
    assert all(map(semi_definite, K, delta))
    assert not all(semi_definite(k, 0.0) for k in K)  # there is something to prove


def test_stacks_of_families_are_proved_without_a_factorization(monkeypatch):
    def never(*arguments):
        raise AssertionError("a Cholesky factorization")

    fitted = FAMILY.fit(points(5), "unit_trace")
    grams = fitted.grams()
    monkeypatch.setattr("mklopt.grams.psd.proved_shift", never)
    expected = psd_shift(fitted, np.arange(fitted.M))
    part = grams.subset(np.array([3, 1]))
    np.testing.assert_array_equal(part.verify_psd(), expected[[3, 1]])
    np.testing.assert_array_equal(grams.verify_psd(), expected)
    assert grams.proof == part.proof == "theorem" and np.all(expected > 0)
    y = np.sign(np.arange(12) - 5.5)
    found = solve(Problem(grams, y, "hinge", LpNorm(2.0)), tol=1e-6)
    assert found.certificate.assumptions == []
    with pytest.raises(AssertionError, match="Cholesky"):
        GramStack(list(fitted)).verify_psd()


def test_what_is_not_known_is_left_to_cholesky():
    X = points(3)
    others = kernels.function(lambda A, B: A @ B.T) + kernels.gaussians(1e151)
    fitted = (FAMILY + others).fit(X)
    delta = psd_shift(fitted, np.arange(fitted.M))
    assert np.array_equal(np.isfinite(delta), [True] * 7 + [False] * 2)
    assert not np.any(np.isfinite(psd_shift(FAMILY.fit(X, "centre"), np.arange(7))))
    single = FAMILY.fit(X).grams(dtype="float32")
    single.verify_psd()
    assert single.proof == "Cholesky"
    zero = kernels.linear().fit(0 * X).grams()
    assert zero.verify_psd() == 0 and zero.proof == "Cholesky"
    huge = kernels.polynomials(3).fit(1e101 * X)
    assert psd_shift(huge, np.array([0])) == np.inf
    tiny = kernels.linear().fit(1e-155 * X, "spherical")
    assert psd_shift(tiny, np.array([0])) == np.inf


def test_underflow_counts():
    """Products of such points lose half of their digits, and a trace of 1 shows it."""
    fitted = kernels.linear().fit(points(2) * 3e-158, "unit_trace")
    (K,) = fitted
    off = distance(K, exactly(fitted, 0, K))
    assert 1e4 * U < off <= psd_shift(fitted, np.array([0])) < 1e-7
    far = kernels.linear().fit(points(2) * 3e-162, "unit_trace")
    assert psd_shift(far, np.array([0])) == np.inf  # nothing is left to bound


def test_kernels_that_have_not_learned_yet_learn_first():
    X = np.random.default_rng(8).normal(size=(12, 3))
    fresh, known = (kernels.gaussians(["mean", 2.0]).fit(X, "unit_trace") for _ in "ab")
    known.learn()
    found = psd_shift(fresh, np.arange(2))
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(found, psd_shift(known, np.arange(2)))


@pytest.mark.parametrize("step, roundings", [("unit_trace", 2), ("spherical", 4)])
def test_every_division_adds_its_roundings(step, roundings):
    fitted = FAMILY.fit(points(3), normalize=step)
    index = np.arange(fitted.M)
    fitted.learn(index)
    kappa, a = np.full(fitted.M, 1e-15), np.zeros(fitted.M)
    found = _normalized(fitted, index, kappa, a)[0]
    assert np.all(found >= 1e-15 + roundings * U) and np.all(found < 1e-15 + 10 * U)
