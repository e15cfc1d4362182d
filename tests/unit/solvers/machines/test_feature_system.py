"""Newton systems with factors: the same solutions as with the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.grams import stack as gram_stack
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.solvers.machines.feature_system import FactorSum, FeatureSystem, system
from mklopt.solvers.machines.linear import System

CONSTANT, KERNELS, THETA = 0.3, np.array([0, 2]), np.array([0.7, 2.0])


def factors(n, M=3, rank=4, seed=0, repeated=False):
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=(n, rank)) / rank for _ in range(M)]
    if repeated:  # columns depend on each other, and on the constant
        found[2] = np.column_stack([found[0][:, :2], np.ones(n), found[2][:, 0]])
    return found


def parts(grams, k=1, seed=1):
    """X with xᵀKx = 1, KX, an N with a negative eigenvalue, and a right side."""
    rng, n = np.random.default_rng(seed), grams.n
    X = rng.normal(size=(2, n, k))
    KX = grams.subset(KERNELS).apply(X)
    s = np.sqrt(np.sum(X * KX, axis=(1, 2)))[:, None, None]
    N = np.array([[0.9, 0.2], [0.2, 0.5]]) - np.diag(THETA)
    return X / s, KX / s, N, rng.normal(size=n if k == 1 else (n, k))


def both(grams, k=1):
    """The system of the matrix, that of the factors, and a right side."""
    X, KX, N, right = parts(grams, k)
    K = grams.subset(KERNELS).combine(THETA) + CONSTANT
    G = KX.reshape(2, -1).T
    sums = FactorSum(grams.subset(KERNELS), THETA, CONSTANT)
    return System(K, G, N, k), FeatureSystem(sums, X, G, N), right


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_and_diagonal_of_a_sum_of_factors(dtype):
    grams = GramStack.from_factors(factors(50), dtype=dtype)
    theta = np.array([0.7, 0.1, 2.0])
    K, x = grams.combine(theta) + 0.3, np.random.default_rng(2).normal(size=(50, 2))
    found = FactorSum(grams, theta, 0.3)
    assert found @ x == pytest.approx(K @ x, rel=1e-12)
    assert found @ x[:, 0] == pytest.approx(K @ x[:, 0], rel=1e-12)
    assert found.diagonal() == pytest.approx(np.diag(K), rel=1e-12)
    assert len(found) == 50


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("smallest", [1.0, 1e-4, 1e-8])
def test_woodbury_solves_the_system_of_the_matrix(scaled, smallest, repeated):
    """As well as the factorization of the matrix, whose error is ε |A|/D of x."""
    rng, n = np.random.default_rng(3), 60
    grams = GramStack.from_factors(factors(n, repeated=repeated))
    matrix, features, right = both(grams)
    D = np.where(rng.random(n) < 0.5, smallest, 1.0)
    R = rng.uniform(0.2, 1.0, n) if scaled else None
    expected = matrix.solve(right, D, R)
    A = matrix.K + matrix.G @ matrix.N @ matrix.G.T
    conditioning = 1 + float(np.linalg.norm(A, 2)) / smallest
    allowed = 10 * np.finfo(float).eps * conditioning * np.max(np.abs(expected))
    assert allowed <= 1e-4 * np.max(np.abs(expected))
    assert np.max(np.abs(features.solve(right, D, R) - expected)) <= allowed


def left_over(smallest: float) -> tuple[float, float]:
    """What a solution leaves of the right side, relative to it, and ε |A|/D."""
    n = 2000
    grams = GramStack.from_factors(factors(n, repeated=True))
    _, features, right = both(grams)
    D = np.where(np.random.default_rng(3).random(n) < 0.5, smallest, 1.0)
    x = features.solve(right, D)
    bent = features.G @ (features.N @ (features.G.T @ x))
    left = right - D * x - features.K @ x - bent
    size = np.finfo(float).eps * features.trace / smallest
    return float(np.max(np.abs(left)) / np.max(np.abs(right))), size


def test_what_is_left_of_the_right_side_is_rounding():
    found, rounding = left_over(1e-9)
    assert found <= rounding < 1e-2


def test_refinement_that_diverges_is_not_kept():
    """Where |A|/D is 1e16 nothing is known of x; but it is not worse than x = 0."""
    found, rounding = left_over(1e-13)
    assert rounding > 1 > found


@pytest.mark.parametrize("blocks", [False, True])
def test_several_outputs_by_conjugate_gradients(blocks):
    rng, n, k = np.random.default_rng(4), 40, 3
    matrix, features, right = both(GramStack.from_factors(factors(n)), k)
    D = np.einsum("i,ab->iab", rng.uniform(0.5, 1.0, n), np.eye(k) + 0.1)
    R = rng.normal(size=(n, k, k)) if blocks else None
    expected = matrix.solve(right, D, R)
    found = features.solve(right, D, R)
    assert found == pytest.approx(expected, abs=1e-5 * np.max(np.abs(expected)))


def test_the_kind_of_system_follows_from_the_stack(monkeypatch):
    grams = GramStack.from_factors(factors(1500))
    X, KX, N, _ = parts(grams)
    few = system(grams, KERNELS, THETA, CONSTANT, X, KX, N)
    assert isinstance(few, FeatureSystem) and few.K.panel.R == 8  # kernels in use
    monkeypatch.setattr(gram_stack, "FEATURE_SAMPLES", 10**9)
    whole = system(grams, KERNELS, THETA, CONSTANT, X, KX, N)
    assert isinstance(whole, System)
    assert whole.trace == pytest.approx(few.trace, rel=1e-12)


@pytest.mark.parametrize("n", [100, 1500])
def test_a_system_without_kernels(n):
    """Only the bias is left: D + c 11ᵀ."""
    grams = GramStack.from_factors(factors(n))
    none, right = np.zeros((0, n, 1)), np.random.default_rng(5).normal(size=n)
    found = system(
        grams, np.zeros(0, int), np.zeros(0), CONSTANT, none, none, np.zeros((0, 0))
    )
    assert found.trace == pytest.approx(CONSTANT * n)
    x = found.solve(right, np.full(n, 2.0))
    assert 2.0 * x + CONSTANT * np.sum(x) == pytest.approx(right)


@pytest.mark.parametrize("right, D", [(1e300, 1e-300), (1.0, 1e-309), (np.nan, 1.0)])
def test_a_system_that_overflows_says_so(right, D):
    _, features, _ = both(GramStack.from_factors(factors(20)))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="Newton"):
        features.solve(np.full(20, right), np.full(20, D))


@pytest.mark.parametrize("formulation", [GroupLasso(), LpNorm(p=2.0)])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_spicy_forms_no_matrix_on_factors(monkeypatch, loss, formulation):
    L = factors(1500, rank=3)
    y = np.sign(L[0][:, 0] + 0.3 * np.random.default_rng(5).normal(size=1500))
    grams = GramStack.from_factors(L)

    def forbidden(*_):
        raise AssertionError("an n × n matrix was formed")

    monkeypatch.setattr(type(grams), "combine", forbidden)
    result = solve(Problem(grams, y, loss, formulation, 0.1), "spicy", tol=1e-5)
    assert result.status == "converged" and result.certificate.width <= 1e-5
