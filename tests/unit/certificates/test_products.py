"""Products with kernels, in parts or remembered: all errors are covered."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, certify, solve
from mklopt.certificates.certificate import certify_again
from mklopt.certificates.products import Combined, Products, _Part, block_norms
from mklopt.formulations import BlockL1, LpNorm
from mklopt.util.rounding import gamma
from tests.unit.certificates.rationals import exact_kernel, rational
from tests.unit.certificates.samples import random_problem

EPS = Fraction(2) ** -50  # for the roots that the test itself rounds


def of_four_kernels(monkeypatch):
    """Every stack is large, and comes in parts of four kernels."""
    monkeypatch.setattr("mklopt.grams.norms.LARGEST_KEPT", 0)
    monkeypatch.setattr("mklopt.grams.norms.IN_A_PART", 1)


@pytest.mark.parametrize("per_kernel", [False, True], ids=["weights", "coefficients"])
@pytest.mark.parametrize("exact", [True, False], ids=["factors", "gram"])
@pytest.mark.parametrize("in_parts", [False, True], ids=["whole", "parts"])
def test_error_bounds_cover_the_rounding_that_happened(
    exact, per_kernel, in_parts, monkeypatch
):
    """K A, f and ‖A‖_K in rational arithmetic against what floats made of them."""
    M = 9
    problem = random_problem(9, n=30, M=M, exact=exact)
    problem.grams.verify_psd()
    if in_parts:
        of_four_kernels(monkeypatch)
        assert problem.grams.is_large and len(list(problem.grams.parts())) == 3
    rng = np.random.default_rng(9)
    alpha = rng.normal(size=30) * 10.0 ** rng.integers(-3, 4, size=30)
    B = rng.normal(size=(M, 30)) if per_kernel else None
    theta = None if per_kernel else rng.uniform(0.5, 2.0, size=M)
    A = alpha if B is None else B
    KA = problem.grams.matvec(alpha) if B is None else problem.grams.apply(B)
    shift = problem.grams.shift
    f, error, above = Products(problem.grams, A, theta, shift, KA=KA).predictions(0.25)
    part = _Part(problem.grams, A, KA, shift, per_kernel)
    bounds = part.roots * part.spread + 2.0**-1022
    exact_f = [Fraction(1, 4)] * 30
    happened = 0
    for m in range(M):
        delta = Fraction(float(problem.grams.shift[m]))
        K = exact_kernel(problem.grams, m)
        for i, row in enumerate(K):
            row[i] -= delta
        a = [Fraction(float(x)) for x in (alpha if B is None else B[m])]
        weight = Fraction(1) if theta is None else Fraction(float(theta[m]))
        image = [sum((k * x for k, x in zip(row, a)), Fraction(0)) for row in K]
        for i, true in enumerate(image):
            off = abs(Fraction(float(KA[m, i])) - true)
            happened += off > 0
            assert off <= Fraction(float(bounds[m, i]))
            exact_f[i] += weight * (true + delta * a[i])
        square = sum((x * z for x, z in zip(a, image)), Fraction(0))
        square += delta * sum((x * x for x in a), Fraction(0))
        assert Fraction(float(above[m])) ** 2 >= weight**2 * square
    assert happened > 10  # there was rounding to cover
    for predicted, bound, true in zip(f[:, 0], error[:, 0], exact_f):
        assert abs(Fraction(float(predicted)) - true) <= Fraction(float(bound))


@pytest.mark.parametrize("storage", ["packed", "full"])
@pytest.mark.parametrize("per_kernel", [False, True])
def test_norms_cover_the_worst_rounding_of_the_model(storage, per_kernel):
    """K A is off by γ|K||A|, and its product with A by γ|A||KA| on top of that."""
    rng = np.random.default_rng(0)
    L = rng.normal(size=(2, 40, 5))
    grams = GramStack(L @ L.transpose(0, 2, 1), storage=storage)
    A = rng.normal(size=(2, 40) if per_kernel else 40)
    KA = grams.apply(A) if per_kernel else grams.matvec(A)
    products = Products(grams, A, None, grams.shift, KA=KA)
    for m, above in enumerate(products.above):
        a = rational(A[m] if per_kernel else A)
        image = rational(KA[m])
        root = [Fraction(x) for x in np.sqrt(np.diag(grams.kernel(m))).tolist()]
        sums = sum(r * abs(x) for r, x in zip(root, a))
        quad = sum(x * z for x, z in zip(a, image))
        worst = quad + Fraction(gamma(grams.chain(40))) * sums**2 * (1 - EPS)
        worst += Fraction(gamma(40)) * sum(abs(x * z) for x, z in zip(a, image))
        assert Fraction(float(above)) ** 2 >= worst


@pytest.mark.parametrize("remembered", [False, True])
def test_the_sum_over_many_kernels_has_its_own_error(remembered, monkeypatch):
    """1 and many numbers below its last digit: the sum loses most of them."""
    M = 2000
    K = np.full((M, 1, 1), 0.9 * 2.0**-53)
    K[0] = 1.0
    grams, one = GramStack(K), np.ones(1)
    if remembered:
        monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
        grams.quad(one)
        products: Any = Combined(grams, one, np.ones(M), np.arange(M))
    else:
        products = Products(grams, one, np.ones(M), grams.shift)
    f, error, _ = products.predictions(0.0)
    exact = sum(rational(K[:, 0, 0]), Fraction(0))
    lost = abs(Fraction(float(f[0, 0])) - exact)
    assert 5 * Fraction(2) ** -53 < lost <= Fraction(float(error[0, 0]))


@pytest.mark.parametrize("shifted", [False, True])
def test_remembered_sums_cover_the_rounding_that_happened(shifted, monkeypatch):
    """f and ‖α‖_K in rational arithmetic, against Σθ_mK_m and what the stack knows."""
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
    of_four_kernels(monkeypatch)
    M, n = 9, 30
    grams = random_problem(5, n=n, M=M, exact=False).grams
    if shifted:
        grams.verify_psd()
    rng = np.random.default_rng(5)
    alpha = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, size=n)
    theta = rng.uniform(0.5, 2.0, size=M)
    known = partial(Combined.is_known, grams, alpha, theta)
    assert not known(np.arange(M))
    grams.combine(theta)
    grams.quad(0.9 * alpha)
    grams.subset(np.arange(6)).inside(alpha)
    assert known(np.arange(6)) and not known(np.arange(M))  # others are only bounded
    grams.quad(alpha)
    assert known(np.arange(M))
    f, error, u = Combined(grams, alpha, theta, np.arange(M)).predictions(0.25)
    a, exact_f, happened = rational(alpha), [Fraction(1, 4)] * n, 0
    for m in range(M):
        K, weight = exact_kernel(grams, m), Fraction(float(theta[m]))
        image = [sum((k * x for k, x in zip(row, a)), Fraction(0)) for row in K]
        exact_f = [g + weight * x for g, x in zip(exact_f, image)]
        square = sum((x * z for x, z in zip(a, image)), Fraction(0))
        assert Fraction(float(u[m])) ** 2 >= weight**2 * square
    for predicted, bound, true in zip(f[:, 0], error[:, 0], exact_f):
        off = abs(Fraction(float(predicted)) - true)
        happened += off > 0
        assert off <= Fraction(float(bound))
        assert bound <= 1e-9 * np.sum(np.abs(alpha))  # and are of use
    assert happened > 10


def test_a_large_stack_has_the_certificate_of_a_small_one(monkeypatch):
    """In parts, or from what is remembered: the same bounds, but for rounding."""
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
    for formulation in (LpNorm(4 / 3), BlockL1()):
        problem = random_problem(2, "hinge", formulation, 10.0, n=30, M=50, exact=False)
        problem.grams.verify_psd()
        point = solve(problem, tol=1e-8)
        small = certify(problem, dual=point.dual, weights=point.weights)
        with monkeypatch.context() as only_here:
            of_four_kernels(only_here)
            stack = problem.grams.apart()
            large = problem.with_(grams=stack)
            fresh = certify(large, dual=point.dual, weights=point.weights)
            assert stack.passes == pytest.approx(stack.full_read)
            stack.quad(point.dual)
            stack.combine(point.weights)
            before = stack.passes
            again = certify_again(large, point.dual, point.weights)
            assert stack.passes - before < 0.2
        for found in (fresh, again):
            for name in ("primal", "dual", "lower", "upper"):
                there, here = getattr(found, name), getattr(small, name)
                assert there == pytest.approx(here, rel=1e-9)
            assert found.lower <= small.upper and small.lower <= found.upper


def test_norms_that_underflow_are_bounded():
    assert block_norms(np.array([1e-200]), np.array([1e-200]))[0] > 0
    assert block_norms(np.array([0.0, 1.0]), np.array([1.0, 0.0])).tolist() == [0, 0]


def test_a_sum_of_many_shifts_has_its_own_error():
    """Σδ_m loses what is small after a 1; nothing else of f has an error here."""
    M = 2000
    shift = np.full(M, 0.9 * 2.0**-53)
    shift[0] = 1.0
    grams = GramStack(np.zeros((M, 2, 2)))
    A = np.array([1.0, -1.0])
    f, error, _ = Products(grams, A, np.ones(M), shift).predictions(0.0)
    off = abs(Fraction(float(f[0, 0])) - sum(map(Fraction, shift)))
    assert Fraction(12, 2**53) < off <= Fraction(float(error[0, 0]))


def test_errors_count_entries_where_the_diagonal_is_zero(monkeypatch):
    """|K_ij| ≤ √((K_ii + δ)(K_jj + δ)): without δ nothing would be left."""
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
    K = np.diag([0.0, 0.0, 1.0])
    K[0, 1] = K[1, 0] = 1e-17
    grams = GramStack(K[None])
    grams.verify_psd()
    A, theta = np.array([0.1, 0.7, 0.0]), np.array([0.3])
    grams.quad(A)
    found = Combined(grams, A, theta, np.arange(1))
    true = Fraction(0.3) * Fraction(1e-17) * Fraction(0.7)
    off = abs(Fraction(float(found.f[0])) - true)
    assert 0 < off <= Fraction(float(found.error[0, 0]))
