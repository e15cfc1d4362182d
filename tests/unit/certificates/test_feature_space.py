"""Certificates of feature weights: bounds in exact arithmetic, without n × n matrices.

Factors are rounded to a grid on which L Lᵀ has no rounding errors: the dense kernels
are the same problem, to the last bit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import mklopt
from mklopt import GramStack, Problem, certify
from mklopt.certificates.certificate import Certificate, certify_again
from mklopt.certificates.checker import Refused, check
from mklopt.certificates.feature_space import FeatureBounds, Folded, feature_point
from mklopt.formulations import BlockL1, ElasticNet, GroupLasso, LpNorm
from mklopt.grams import stack as stacks
from tests.unit.certificates.rationals import (
    columns_of,
    digits,
    exact_dual,
    omega,
    rational,
    value,
)

RANKS = (2, 1, 3)
ZERO = Fraction(0)


@pytest.fixture
def feature_space(monkeypatch):
    """Also small stacks of factors work in feature space."""
    monkeypatch.setattr(stacks, "FEATURE_SAMPLES", 1)


def factors(n: int = 12, seed: int = 0, grid: float = 2.0**-10) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.rint(rng.normal(size=(n, r)) / grid) * grid for r in RANKS]


def labels(L: list[np.ndarray]) -> np.ndarray:
    score = L[0][:, 0] + L[2][:, 1]
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[:2] *= -1
    return y


def pair(n: int = 12, seed: int = 0, **more: Any) -> tuple[Problem, Problem]:
    """One problem twice: with factors, and with the matrices L Lᵀ."""
    L = factors(n, seed)
    given: Any = {"loss": "hinge", "formulation": LpNorm(2.0), "C": 1.0, **more}
    y = given.pop("y", labels(L))
    dense = GramStack(np.stack([f @ f.T for f in L]))
    return Problem(GramStack.from_factors(L), y, **given), Problem(dense, y, **given)


def candidates(problem: Problem, seed: int = 1) -> tuple[np.ndarray, np.ndarray, Any]:
    """α, θ and feature weights at random."""
    rng = np.random.default_rng(seed)
    n, C = problem.grams.n, float(problem.costs[0])
    w = 0.3 * rng.normal(size=(sum(RANKS), *problem.shape[1:]))
    if len(problem.shape) == 2:
        return 0.2 * C * rng.normal(size=problem.shape), rng.uniform(0, 0.3, 3), w
    return C * problem.y * rng.uniform(0, 1, size=n), rng.uniform(0, 0.3, size=3), w


def exact_primal(problem: Problem, found: Certificate) -> mpf:
    """Σ C V(f) + Ω(u) at stretch·(w, b), in rationals from the factors alone."""
    assert found.features is not None
    factors_, w = problem.grams.factors or [], columns_of(found.features)
    t = Fraction(float(found.enclosure.stretch))
    rows = [rational(row) for row in np.hstack(factors_)]
    bias = rational(np.broadcast_to(found.bias, len(w)))
    total = mpf(0)
    for row, y, C in zip(rows, problem.y, problem.costs):
        f = [
            t * (b + sum((x * z for x, z in zip(row, column)), ZERO))
            for b, column in zip(bias, w)
        ]
        total += mpf(float(C)) * value(problem.loss, f, y)
    u, start = [], 0
    for L in factors_:
        own = [x for column in w for x in column[start : start + L.shape[1]]]
        u.append(mpmath.sqrt(digits(t * t * sum((x * x for x in own), ZERO))))
        start += L.shape[1]
    return total + omega(problem.formulation, u)


def holds(problem: Problem, found: Certificate) -> None:
    """lower ≤ exact dual value ≤ exact primal value ≤ upper, and not far from them."""
    bounds = found.enclosure
    below = exact_dual(problem, bounds.alpha, bounds.shrink)
    above = exact_primal(problem, found)
    assert bounds.lower <= below <= above <= bounds.upper
    assert below - bounds.lower <= 1e-9 * above
    assert bounds.upper - above <= 1e-9 * above


FORMULATIONS = [GroupLasso(), LpNorm(2.0), LpNorm(4 / 3), ElasticNet(0.3)]


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_bounds_of_feature_weights_hold_in_exact_arithmetic(formulation, bias, C):
    for seed in range(3):
        more: Any = {"formulation": formulation, "C": C, "bias": bias}
        problem, _ = pair(seed=seed, **more)
        alpha, _, w = candidates(problem, seed)
        found = certify(problem, dual=alpha, features=w)
        assert found.assumptions == []
        np.testing.assert_array_equal(found.features, w)
        holds(problem, found)


@pytest.mark.usefixtures("feature_space")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "eps_insensitive"])
def test_bounds_of_weights_hold_in_exact_arithmetic(loss, bias):
    problem, _ = pair(loss=loss, bias=bias)
    assert problem.grams.in_feature_space
    alpha, theta, _ = candidates(problem)
    for found in (
        certify(problem, dual=alpha, weights=theta),
        certify(problem, dual=alpha, weights=theta, remembered=True),
        certify_again(problem, alpha, theta),
    ):
        assert found.features is not None
        holds(problem, found)


@pytest.mark.usefixtures("feature_space")
@pytest.mark.parametrize("loss", ["multiclass_hinge", "multinomial"])
def test_bounds_of_several_columns_hold_in_exact_arithmetic(loss):
    problem, dense = pair(loss=loss, y=np.arange(12.0) % 3)
    alpha, theta, w = candidates(problem)
    for given in ({"weights": theta}, {"features": w}):
        found = certify(problem, dual=alpha, **given)
        assert found.features is not None and found.features.shape == (6, 3)
        holds(problem, found)
    found, same = (
        certify(problem, dual=alpha, weights=theta),
        certify(dense, dual=alpha, weights=theta),
    )
    assert found.upper == pytest.approx(same.upper, rel=1e-10)


@pytest.mark.usefixtures("feature_space")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_points_have_the_bounds_of_the_dense_kernels(formulation, bias):
    """The same α with the same θ, or with coefficients of the same functions."""
    problem, dense = pair(formulation=formulation, bias=bias, C=2.0)
    alpha, theta, _ = candidates(problem)
    B = np.multiply.outer(theta, alpha)
    B[1] = 0.5
    for given in ({"weights": theta}, {"coefficients": B}):
        found, same = (
            certify(problem, dual=alpha, **given),
            certify(dense, dual=alpha, **given),
        )
        assert found.features is not None and same.features is None
        for one in ("lower", "upper", "dual", "primal", "shrink", "bias"):
            expected = pytest.approx(getattr(same, one), rel=1e-9, abs=1e-9)
            assert getattr(found, one) == expected
        np.testing.assert_allclose(found.norms, same.norms, atol=1e-12)


@pytest.mark.usefixtures("feature_space")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_bounds_enclose_the_optimum_of_the_dense_kernels(formulation, bias):
    """Good points and bad ones; f* is enclosed by the dense certificate."""
    problem, dense = pair(n=30, formulation=formulation, bias=bias)
    best = mklopt.solve(dense, tol=1e-8).certificate
    assert best.width < 1e-7
    alpha, theta, w = candidates(problem)
    points = [
        certify(problem, dual=alpha, weights=theta),
        certify(problem, dual=alpha, features=w),
    ]
    points.append(mklopt.solve(problem, tol=1e-8).certificate)
    assert points[-1].width < 1e-7
    for found in points:
        assert found.lower <= best.upper and best.lower <= found.upper


@pytest.mark.usefixtures("feature_space")
def test_the_bounds_of_float32_factors_are_for_the_rounded_numbers():
    rng = np.random.default_rng(4)
    L = [rng.normal(size=(12, r)) for r in RANKS]
    grams = GramStack.from_factors(L, dtype="float32")
    problem = Problem(grams, labels(L), "hinge", LpNorm(2.0), 10.0)
    alpha, theta, w = candidates(problem)
    holds(problem, certify(problem, dual=alpha, weights=theta))
    holds(problem, certify(problem, dual=alpha, features=w))


def test_a_part_of_a_stack_in_another_order():
    whole, _ = pair()
    problem = whole.with_(grams=whole.grams.subset(np.array([2, 0])))
    alpha, _, w = candidates(whole)
    found = certify(problem, dual=alpha, features=w[:5])
    holds(problem, found)
    for zeros in (slice(0, 3), slice(3, 5), slice(0, 5)):
        w = np.array(found.features)
        w[zeros] = 0.0
        holds(problem, certify(problem, dual=alpha, features=w))


# ---- the errors themselves -----------------------------------------------------------


def lengths(problem: Problem, alpha: np.ndarray) -> list[mpf]:
    """‖L_mᵀα‖ from exact squares."""
    found = []
    for L in problem.grams.factors or []:
        h = [
            sum((x * z for x, z in zip(rational(column), rational(alpha))), ZERO)
            for column in L.T
        ]
        found.append(mpmath.sqrt(digits(sum((x * x for x in h), ZERO))))
    return found


def rough(n: int = 40, seed: int = 0) -> Problem:
    """Factors with all their digits: every product has a rounding error."""
    rng = np.random.default_rng(seed)
    L = [rng.normal(size=(n, r)) for r in (9, 1, 5)]
    return Problem(GramStack.from_factors(L), np.sign(L[0][:, 0]), "hinge", LpNorm(2.0))


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_norms_are_bounded_from_above_in_exact_arithmetic(scale):
    for seed in range(5):
        problem, rng = rough(seed=seed), np.random.default_rng(seed)
        alpha = scale * rng.normal(size=40)
        above = FeatureBounds(problem, alpha, np.zeros(15)).above
        for bound, true in zip(above, lengths(problem, alpha)):
            assert true <= bound <= true * (1 + 1e-9)


def test_norms_that_cancel_are_bounded_all_the_same():
    """L_mᵀα is 0 but for rounding errors, of which the bound knows.

    What is computed is too small about every second time.
    """
    problem, rng, too_small = rough(), np.random.default_rng(3), 0
    L = problem.grams.factors or []
    for _ in range(20):
        alpha = rng.normal(size=40)
        for _ in range(2):
            alpha = alpha - np.hstack(L) @ np.linalg.lstsq(np.hstack(L), alpha)[0]
        bounds = FeatureBounds(problem, alpha, np.zeros(15))
        plain = problem.grams.feature_norms(problem.grams.fold(alpha))
        for m, true in enumerate(lengths(problem, alpha)):
            assert true <= bounds.above[m] <= 1e-10
            too_small += plain[m] < true
    assert too_small >= 10


def test_norms_of_zeros_are_zero():
    problem = rough()
    bounds = FeatureBounds(problem, np.zeros(40), np.zeros(15))
    np.testing.assert_array_equal(bounds.above, np.zeros(3))
    f, error, u = bounds.predictions(0.0)
    assert np.all(f == 0) and np.all(u == 0) and np.all(error < 1e-300)


@pytest.mark.parametrize("bias", [0.0, -0.3, 1e5])
@pytest.mark.parametrize("given", [False, True], ids=["computed", "known"])
def test_errors_of_predictions_are_bounded_in_exact_arithmetic(given, bias):
    problem, rng = rough(), np.random.default_rng(2)
    F = np.hstack(problem.grams.factors or [])
    w = rng.normal(size=15)
    w[9] = 0.0  # a kernel that is not read
    known = Folded(F.T @ problem.y, problem.grams.unfold(w)) if given else None
    bounds = FeatureBounds(problem, problem.y, w, known)
    f, error, u = bounds.predictions(bias)
    assert f.shape == error.shape == (40, 1) and u[1] == 0
    for i, row in enumerate(F):
        products = (x * z for x, z in zip(rational(row), rational(w)))
        true = sum(products, Fraction(bias))
        assert abs(Fraction(float(f[i, 0])) - true) <= Fraction(float(error[i, 0]))
    assert np.max(error) <= 1e-13 * (40 + abs(bias))
    for m, own in enumerate((w[:9], w[9:10], w[10:])):
        square = sum((x * x for x in rational(own)), ZERO)
        assert square <= Fraction(float(u[m])) ** 2
        assert u[m] <= np.linalg.norm(own) * (1 + 1e-13)


def test_weights_and_coefficients_become_feature_weights():
    problem, _ = pair()
    alpha, theta, _ = candidates(problem)
    F, B = np.hstack(factors()), np.random.default_rng(0).normal(size=(3, 12))
    h = F.T @ alpha
    w = feature_point(problem, h, theta, None)
    np.testing.assert_array_equal(w, np.repeat(theta, RANKS) * h)
    both = feature_point(problem, np.stack([h, 2 * h], axis=1), theta, None)
    np.testing.assert_array_equal(both, np.stack([w, 2 * w], axis=1))
    w = feature_point(problem, h, None, B)
    own = np.concatenate([L.T @ b for L, b in zip(factors(), B)])
    np.testing.assert_allclose(w, own, atol=1e-13)


@pytest.mark.usefixtures("feature_space")
def test_bounds_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("mklopt.util.threads.MIN_SHARED_WORK", 0)
    L = factors(3000)
    problem = Problem(GramStack.from_factors(L), labels(L), "hinge", LpNorm(2.0))
    alpha, theta, _ = candidates(problem)
    found = []
    for k in (1, 2, 3):
        with mklopt.threads(k):
            one = certify(problem, dual=alpha, weights=theta)
        found.append((one.lower, one.upper, one.dual, one.primal, one.bias))
    assert found[0] == found[1] == found[2]
    assert found[0][1] - found[0][3] <= 1e-10 * found[0][3]


# ---- refusals ------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_in_one_sentence():
    problem, dense = pair()
    alpha, theta, w = candidates(problem)
    with pytest.raises(ValueError, match=r"^features has shape \(5,\); expected \(6,"):
        certify(problem, dual=alpha, features=w[:5])
    with pytest.raises(ValueError, match=r"^features has shape \(6, 1\); expected"):
        certify(problem, dual=alpha, features=w[:, None])
    with pytest.raises(ValueError, match="or one of weights=, coefficients=, w="):
        certify(problem, dual=alpha, weights=theta, features=w)
    with pytest.raises(ValueError, match="are for kernels that are given as"):
        certify(dense, dual=alpha, features=w)
    with pytest.raises(ValueError, match="features has NaN or infinite entries"):
        certify(problem, dual=alpha, features=np.full(6, np.nan))
    with pytest.raises(ValueError, match="no coefficients: use `features`"):
        _ = certify(problem, dual=alpha, features=w).expansion


@pytest.mark.usefixtures("feature_space")
def test_wrong_weights_are_refused_in_feature_space():
    problem, _ = pair()
    alpha, theta, _ = candidates(problem)
    with pytest.raises(ValueError, match=r"^weights has shape \(2,\); expected \(3,"):
        certify(problem, dual=alpha, weights=theta[:2])
    with pytest.raises(ValueError, match="weights has negative entries"):
        certify(problem, dual=alpha, weights=-theta)
    with pytest.raises(ValueError, match=r"^dual has shape \(11,\); expected \(12,"):
        certify(problem, dual=alpha[:11], weights=theta)


# ---- points of two certificates, and files -------------------------------------------


def large(
    loss: str = "hinge", formulation=None, n=40, C=1.0, bias=True, dtype="float64"
):
    F = np.random.default_rng(0).normal(size=(n, 7))
    y = np.sign(F[:, 0] + np.random.default_rng(0).normal(size=n))
    grams = GramStack.from_factors(F.astype(dtype), ranks=[2, 4, 1], dtype=dtype)
    return Problem(grams, y, loss, formulation or LpNorm(2.0), C, bias)


@pytest.mark.usefixtures("feature_space")
def test_the_better_points_of_two_certificates():
    p = large()
    zero, alpha = np.zeros(40), p.feasible(0.01 * p.y)
    good = certify(p, dual=zero, features=0.1 * np.eye(7)[0])
    both = good.best_of(certify(p, dual=alpha, features=10 * np.ones(7)))
    assert both.primal == good.primal and both.dual > good.dual
    np.testing.assert_array_equal(both.features, good.features)
    assert both.upper >= both.lower


@pytest.mark.usefixtures("feature_space")
def test_a_file_of_feature_weights_is_proved_and_a_changed_one_refused(tmp_path):
    from mklopt.certificates.portable import points_of, seal, statement

    p = large(n=25, formulation=BlockL1())
    result = mklopt.solve(p, tol=1e-5)
    assert result.point == "features"
    result.save_certificate(tmp_path / "proof.cert")
    proved = check((tmp_path / "proof.cert").read_bytes())
    assert proved["upper"] == result.certificate.upper
    claim = {**statement(p), **points_of(result.certificate)}
    low = {**claim, "upper": claim["lower"]}
    short = {**claim, "primal": {**claim["primal"], "features": [""] * 3}}
    for wrong in (low, short):
        with pytest.raises(Refused):
            check(seal(wrong))
    result.save(tmp_path / "result.npz")
    again = mklopt.Result.load(tmp_path / "result.npz", p)
    assert again.point == "features" and again.relative_gap == result.relative_gap


@pytest.mark.usefixtures("feature_space")
def test_products_that_underflow_are_not_zero():
    L = np.zeros((12, 2))
    L[:, 0] = 1e-200
    p = Problem(GramStack.from_factors(L, ranks=[1, 1]), np.ones(12), "squared",
                LpNorm(2.0), bias=False)  # fmt: skip
    bounds = FeatureBounds(p, np.full(12, 1e-200), np.zeros(2))
    assert bounds.above[0] > 0 == bounds.above[1]


def test_predictions_that_underflow_have_an_error(feature_space):
    L = np.array([[1e-200], [-1e-200]])
    problem = Problem(GramStack.from_factors([L]), [1.0, -1.0], "hinge", LpNorm(2))
    bounds = FeatureBounds(problem, np.array([1.0, -1.0]), np.array([1e-200]))
    f, error, u = bounds.predictions(0.0)
    assert np.all(f == 0) and np.all(error > 0) and u[0] >= 1e-200
