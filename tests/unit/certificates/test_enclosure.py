"""lower ≤ f* ≤ upper in exact arithmetic: every rounding error is covered."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mklopt import Problem, certify
from mklopt.certificates.enclosure import _Products, enclose, finite
from mklopt.formulations import (
    VSKL,
    BlockL1,
    ElasticNet,
    GroupLasso,
    LpNorm,
    Tikhonov,
    losses_by_name,
)
from mklopt.reference.contract_problems import load
from tests.unit.certificates.samples import random_problem

mpmath.mp.dps = 50
INF = float("inf")


def exact_dual(problem, alpha, shrink):
    """The dual value at shrink·α with 50 digits, from textbook formulas."""
    alpha = [mpmath.mpf(float(a)) * mpmath.mpf(shrink) for a in alpha]
    C, y = mpmath.mpf(problem.C), [mpmath.mpf(float(v)) for v in problem.y]
    norms = []
    for K, delta in zip(problem.grams.dense(), problem.grams.shift):
        K = mpmath.matrix(K.tolist())
        column = mpmath.matrix(alpha)
        quad = (column.T * K * column)[0] + mpmath.mpf(float(delta)) * mpmath.fsum(
            a * a for a in alpha
        )
        norms.append(mpmath.sqrt(quad))
    total = mpmath.mpf(0)
    for a, label in zip(alpha, y):
        t = a * label / C
        if problem.loss.name == "hinge":
            assert 0 <= t <= 1
            total += C * t
        elif problem.loss.name == "logistic":
            assert 0 <= t <= 1
            entropy = sum(x * mpmath.log(x) for x in (t, 1 - t) if x > 0)
            total -= C * entropy
        elif problem.loss.name == "squared":
            total += a * label - a * a / (2 * C)
    assert mpmath.fsum(alpha) == 0
    return total - exact_conjugate(problem.formulation, norms)


def exact_conjugate(formulation, v):
    if isinstance(formulation, GroupLasso):
        assert max(v) <= 1
        return mpmath.mpf(0)
    if isinstance(formulation, BlockL1):
        return max(v) ** 2 / 2
    if isinstance(formulation, LpNorm):
        p = mpmath.mpf(formulation.p)
        q = 2 * p / (p - 1)
        return mpmath.fsum(x**q for x in v) ** (2 / q) / 2
    if isinstance(formulation, ElasticNet):
        rho = mpmath.mpf(formulation.l1_ratio)
        return mpmath.fsum(max(x - rho, 0) ** 2 for x in v) / (2 * (1 - rho))
    p = mpmath.mpf(formulation.p)
    q = 2 * p / (p - 1)
    return mpmath.fsum(x**q for x in v) ** (4 / q) / (16 * mpmath.mpf(formulation.mu))


def exact_primal(problem, alpha, theta, bias):
    alpha = mpmath.matrix([mpmath.mpf(float(a)) for a in alpha])
    b, C = mpmath.mpf(bias), mpmath.mpf(problem.C)
    f, u = [b] * len(problem.y), []
    for K, delta, weight in zip(problem.grams.dense(), problem.grams.shift, theta):
        w = mpmath.mpf(float(weight))
        image = mpmath.matrix(K.tolist()) * alpha + mpmath.mpf(float(delta)) * alpha
        u.append(w * mpmath.sqrt((alpha.T * image)[0]))
        f = [x + w * z for x, z in zip(f, image)]
    total = mpmath.mpf(0)
    for x, label in zip(f, problem.y):
        m = x * float(label)
        if problem.loss.name == "hinge":
            total += max(0, 1 - m)
        elif problem.loss.name == "logistic":
            total += mpmath.log(1 + mpmath.exp(-m))
        else:
            total += (x - float(label)) ** 2 / 2
    return C * total + exact_value(problem.formulation, u)


def exact_value(formulation, u):
    if isinstance(formulation, GroupLasso):
        return mpmath.fsum(u)
    if isinstance(formulation, BlockL1):
        return mpmath.fsum(u) ** 2 / 2
    if isinstance(formulation, ElasticNet):
        rho = mpmath.mpf(formulation.l1_ratio)
        return rho * mpmath.fsum(u) + (1 - rho) / 2 * mpmath.fsum(x * x for x in u)
    p = mpmath.mpf(formulation.p)
    q = 2 * p / (p + 1)
    N = mpmath.fsum(x**q for x in u) ** (1 / q)
    if isinstance(formulation, LpNorm):
        return N**2 / 2
    mu = mpmath.mpf(formulation.mu)
    return (
        3
        * mpmath.mpf(2) ** (mpmath.mpf(-4) / 3)
        * mu ** (mpmath.mpf(1) / 3)
        * N ** (mpmath.mpf(4) / 3)
    )


FORMULATIONS = [
    GroupLasso(),
    BlockL1(),
    LpNorm(4 / 3),
    LpNorm(2.0),
    ElasticNet(0.3),
    Tikhonov(2.0, 0.7),
]


@pytest.mark.parametrize("exact", [True, False], ids=["factors", "gram"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_the_enclosure_holds_in_exact_arithmetic(formulation, loss, exact):
    """lower ≤ exact dual value and exact primal value ≤ upper, at 50 digits."""
    for seed in range(3):
        C = (0.1, 1.0, 100.0)[seed]
        problem = random_problem(seed, loss, formulation, C, exact=exact)
        problem.grams.verify_psd()
        rng = np.random.default_rng(seed)
        candidate = C * problem.y * rng.uniform(0, 1, size=12)
        theta = rng.uniform(0, 0.2, size=3)
        certificate = certify(problem, candidate, theta)
        assert certificate.assumptions == []
        domain = problem.loss.domain(problem.y)
        alpha = domain.exact(certificate.alpha, problem.costs, True)
        top = min(certificate.shrink, 1 - 1e-13) if certificate.shrink < 1 else 1.0
        lower_point = exact_dual(problem, alpha, top * (1 - 1e-13 * (top < 1)))
        assert certificate.lower <= lower_point + abs(lower_point) * 1e-12
        assert certificate.lower <= certificate.upper
        # The primal point is allowed to be the stretched one: never above by more.
        upper_point = exact_primal(problem, alpha, theta, certificate.bias)
        assert certificate.upper >= upper_point * (1 - mpmath.mpf(10) ** -12)
        assert abs(certificate.upper - certificate.primal) <= 1e-10 * certificate.primal
        assert abs(certificate.dual - certificate.lower) <= 1e-9 * certificate.primal


def test_multiclass_enclosure_contains_the_reference():
    grams, targets = load("small")
    for name in ("multiclass_hinge", "multinomial"):
        problem = Problem(
            grams,
            targets["classes"],
            losses_by_name()[name](),
            VSKL(((0, 1, 2), (3, 4, 5)), INF),
        )
        rng = np.random.default_rng(0)
        certificate = certify(problem, 0.1 * rng.normal(size=(40, 3)), 0.1 * np.ones(6))
        assert certificate.assumptions == []
        assert certificate.dual - 1e-9 <= certificate.lower <= certificate.dual + 1e-9
        assert certificate.lower < certificate.upper


@pytest.mark.parametrize("theta", [1e100, 1e200, 1e308])
def test_bounds_that_leave_float64_are_infinite_not_nan(theta):
    problem = random_problem(1, formulation=LpNorm(2.0))
    with np.errstate(all="ignore"):
        found = certify(problem, problem.y, np.full(3, theta))
        assert found.lower <= found.upper and not np.isnan(found.upper)


def exact_kernel(grams, m):
    """Kernel m in rational numbers: its entries, or the product of its factors."""
    if grams.factors is None:
        return [[Fraction(float(k)) for k in row] for row in grams.kernel(m)]
    L = [[Fraction(float(x)) for x in row] for row in grams.factors[m]]
    dot = lambda a, b: sum((x * y for x, y in zip(a, b)), Fraction(0))  # noqa: E731
    return [[dot(a, b) for b in L] for a in L]


@pytest.mark.parametrize("per_kernel", [False, True], ids=["weights", "coefficients"])
@pytest.mark.parametrize("exact", [True, False], ids=["factors", "gram"])
def test_error_bounds_cover_the_rounding_that_happened(exact, per_kernel):
    """K A, f and ‖A‖_K in rational arithmetic against what floats made of them."""
    problem = random_problem(9, n=30, exact=exact)
    problem.grams.verify_psd()
    rng = np.random.default_rng(9)
    alpha = rng.normal(size=30) * 10.0 ** rng.integers(-3, 4, size=30)
    B = rng.normal(size=(3, 30)) if per_kernel else None
    theta = None if per_kernel else rng.uniform(0.5, 2.0, size=3)
    source = certify(problem, alpha, theta, coefficients=B)
    A = alpha if B is None else B
    KA = problem.grams.matvec(alpha) if B is None else problem.grams.apply(B)
    products = _Products(problem, A, KA, source)
    f, error, above = products.predictions(0.25)
    bounds = products.roots * products.spread + 2.0**-1022
    exact_f = [Fraction(1, 4)] * 30
    happened = 0
    for m in range(3):
        K = exact_kernel(problem.grams, m)
        a = [Fraction(float(x)) for x in (alpha if B is None else B[m])]
        delta = Fraction(float(problem.grams.shift[m]))
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


def test_a_bound_that_is_no_number_is_infinite():
    def overflow():
        raise OverflowError

    assert finite(lambda: 2.5) == 2.5 and finite(lambda: -INF) == -INF
    assert finite(overflow) == finite(lambda: float("nan")) == INF


@pytest.mark.parametrize("loss", ["hinge", "multinomial"])
def test_the_dual_point_of_an_enclosure_is_exactly_feasible(loss):
    problem = random_problem(4, "hinge", LpNorm(2.0))
    if loss == "multinomial":
        problem = problem.with_(y=np.arange(12) % 3, loss=loss)
    alpha = np.random.default_rng(4).normal(size=problem.shape)
    found = enclose(certify(problem, alpha, np.ones(3)))
    columns = found.alpha.reshape(12, -1).T
    for column in columns:
        assert sum(map(Fraction, column.tolist()), Fraction(0)) == 0
    assert 0 <= found.shrink <= 1 <= found.stretch and found.lower <= found.upper
